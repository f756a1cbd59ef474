//! What the Kyoto Tycoon and Tokyo Tyrant dialects need from Rust; none of it touches a database.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use tokaido_wire::kyoto::Fixed;

use super::context::{Context, Fault, NO, YES};
use crate::{
    cabinet::{self, CodecError, Expression, Groups, Replacement},
    watchdog,
};

/// The expression is invalid; `lua/kyoto` and `lua/tyrant` have the same.
const NO_EXPRESSION: i32 = 2;

/// Maximum number of expressions of a kind that stay compiled; one more, and all are dropped.
const EXPRESSIONS_MAX: usize = 64;

/// Maximum length of an expression, in bytes; a longer one cannot be compiled.
const EXPRESSION_LEN_MAX: usize = 4096;

/// Maximum product of the lengths of two texts whose distance is computed. It takes some tenths of a second,
/// in which no time limit is checked.
const DISTANCE_WORK_MAX: usize = 1 << 26;

/// Maximum length of each of the two, in bytes, since one row of numbers is as long as one text.
const DISTANCE_LEN_MAX: usize = 1 << 20;

/// Maximum length of the result of replacing matches, in bytes.
const REPLACED_LEN_MAX: usize = 64 << 20;

/// A regular expression.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'p> {
    pub(super) text: &'p [u8],
    pub(super) ignores_case: bool,
}

/// Compiled expressions by their text, those that ignore case separately; `None` for an invalid one.
#[derive(Default)]
pub(crate) struct Expressions([HashMap<Box<[u8]>, Option<Expression>>; 2]);

impl Expressions {
    fn get(&mut self, Pattern { text, ignores_case }: Pattern<'_>) -> Option<&Expression> {
        if text.len() > EXPRESSION_LEN_MAX {
            return None;
        }
        let compiled = &mut self.0[usize::from(ignores_case)];
        if !compiled.contains_key(text) {
            if compiled.len() == EXPRESSIONS_MAX {
                compiled.clear();
            }
            compiled.insert(text.into(), Expression::new(text, ignores_case));
        }
        compiled.get(text)?.as_ref()
    }
}

/// The time of day in seconds, as the reply's number.
pub(super) fn cabinet_time(context: &mut Context) -> Result<i32, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    context.reply.number = since.map_or(0.0, |since| since.as_secs_f64());
    Ok(YES)
}

/// A 48-bit hash, by MurmurHash (0) or FNV, as the reply's number.
pub(super) fn cabinet_hash(context: &mut Context, kind: i32, text: &[u8]) -> Result<i32, Fault> {
    let hash = if kind == 0 { cabinet::murmur(text) } else { cabinet::fnv(text) };
    context.reply.number = hash as f64;
    Ok(YES)
}

/// The edit distance of two texts, as the reply's number.
pub(super) fn cabinet_distance(
    context: &mut Context,
    a: &[u8],
    b: &[u8],
    is_utf8: i32,
) -> Result<i32, Fault> {
    let is_long = a.len().max(b.len()) > DISTANCE_LEN_MAX;
    if is_long || a.len().saturating_mul(b.len()) > DISTANCE_WORK_MAX {
        let message = "the texts are too long for their distance to be told";
        return Err(Fault::refused(message));
    }
    let characters = |text| cabinet::characters(text, is_utf8 != 0);
    context.reply.number = cabinet::distance(&characters(a), &characters(b)) as f64;
    Ok(YES)
}

/// An encoded or decoded text, as the reply's data; `NO` if it is not in that encoding.
pub(super) fn cabinet_codec(context: &mut Context, mode: &[u8], text: &[u8]) -> Result<i32, Fault> {
    made(context, cabinet::codec(mode, text))
}

/// What a codec made, as the reply's data; `NO` if the text was not in that encoding.
pub(super) fn made(context: &mut Context, made: Result<Vec<u8>, CodecError>) -> Result<i32, Fault> {
    match made {
        Ok(made) => {
            context.scratch = made;
            context.reply.data(&context.scratch);
            Ok(YES)
        }
        Err(CodecError::Broken) => Ok(NO),
        Err(error) => Err(Fault::refused(error)),
    }
}

/// Whether an expression matches; with a replacement, the text with all matches replaced, as the reply's
/// data. `NO` means no match.
pub(super) fn cabinet_regex(
    context: &mut Context,
    text: &[u8],
    pattern: &[u8],
    by: Option<&[u8]>,
) -> Result<i32, Fault> {
    let pattern = Pattern { text: pattern, ignores_case: false };
    regex(context, text, pattern, by, Groups::Dollar)
}

/// The same for any expression, and with any names of groups.
pub(super) fn regex(
    context: &mut Context,
    text: &[u8],
    pattern: Pattern<'_>,
    by: Option<&[u8]>,
    groups: Groups,
) -> Result<i32, Fault> {
    let Some(expression) = context.expressions.get(pattern) else { return Ok(NO_EXPRESSION) };
    let Some(by) = by else {
        let is_match = expression.is_match(text).map_err(Fault::refused)?;
        return Ok(if is_match { YES } else { NO });
    };
    let replacement = Replacement { by, groups, len_max: REPLACED_LEN_MAX };
    let made = expression.replace(text, replacement, watchdog::is_stopping);
    let made = made.map_err(Fault::refused)?;
    context.scratch = made;
    context.reply.data(&context.scratch);
    Ok(YES)
}

/// The sum of a 16-byte number and another number: as the reply's number, and its bytes as the data. Without
/// bytes, `by` is added to `origin`. `NO` if there is no sum.
pub(super) fn cabinet_sum(
    context: &mut Context,
    old: &[u8],
    origin: f64,
    by: f64,
) -> Result<i32, Fault> {
    let old = if old.is_empty() { Some(Fixed::of(origin)) } else { Fixed::read(old) };
    let Some(old) = old else { return Ok(NO) };
    let (by_zero, by) = (by == 0.0, Fixed::of(by));
    let sum = match (old.is_finite(), by.is_finite()) {
        // An infinite value stays infinite.
        (false, _) => old,
        (true, _) if by_zero => old,
        (true, false) => by,
        (true, true) => old.plus(by),
    };
    if sum.value().is_nan() {
        return Ok(NO);
    }
    context.reply.number = sum.value();
    Ok(context.answer(|out| out.extend_from_slice(&sum.bytes())))
}
