//! The options of XADD and XTRIM.

use tokaido_collections::Trim;

use super::ids::{self, NewId};
use crate::redis::{call::Call, failure::Failure, number::parse_integer};

/// Default maximum number of entries that trimming with `~` deletes at once.
const TRIMMED_MAX: u64 = 10_000;

/// The options of XADD or XTRIM.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) only_if_there: bool,
    /// Which entries to delete; none with `MINID 0`.
    pub(super) trim: Option<Option<Trim>>,
    /// Maximum number of entries to delete.
    pub(super) count: u64,
    pub(super) id: Option<NewId>,
    /// The index after the id.
    pub(super) end: usize,
}

/// Reads the options from the third argument on. For XADD, an id follows them.
pub(super) fn read(call: &Call<'_>, is_add: bool) -> Result<Options, Failure> {
    let mut options = Options::default();
    let (mut at, mut limit, mut is_about) = (2, None, false);
    while at < call.len() {
        let has_more = at + 1 < call.len();
        if is_add && call.arg(at) == b"*" {
            options.id = Some(NewId::Auto);
        } else if has_more && (call.is_word(at, "MAXLEN") || call.is_word(at, "MINID")) {
            if options.trim.is_some() {
                let message =
                    "syntax error, MAXLEN and MINID options at the same time are not compatible";
                return Err(Failure::other(message));
            }
            let is_of_len = call.is_word(at, "MAXLEN");
            is_about = at + 2 < call.len() && call.arg(at + 1) == b"~";
            let has_sign = is_about || at + 2 < call.len() && call.arg(at + 1) == b"=";
            at += 1 + usize::from(has_sign);
            options.trim = Some(if is_of_len { max_len(call, at)? } else { min_id(call, at)? });
            at += 1;
            continue;
        } else if has_more && call.is_word(at, "LIMIT") {
            limit = Some(not_negative(call, at + 1, "The LIMIT argument must be >= 0.")?);
            at += 2;
            continue;
        } else if is_add && call.is_word(at, "NOMKSTREAM") {
            options.only_if_there = true;
            at += 1;
            continue;
        } else if is_add {
            options.id = Some(ids::parse_new(call.arg(at))?);
        } else {
            return Err(Failure::Syntax);
        }
        at += 1;
        break;
    }
    options.end = at;
    options.count = count(&options, limit, is_about, is_add)?;
    Ok(options)
}

fn max_len(call: &Call<'_>, index: usize) -> Result<Option<Trim>, Failure> {
    Ok(Some(Trim::ToLen(not_negative(call, index, "The MAXLEN argument must be >= 0.")?)))
}

fn min_id(call: &Call<'_>, index: usize) -> Result<Option<Trim>, Failure> {
    Ok(ids::parse(call.arg(index), 0)?.previous().map(Trim::UpTo))
}

fn not_negative(call: &Call<'_>, index: usize, message: &str) -> Result<u64, Failure> {
    let number = parse_integer(call.arg(index)).ok_or(Failure::NotAnInteger)?;
    u64::try_from(number).map_err(|_| Failure::other(message))
}

fn count(
    options: &Options,
    limit: Option<u64>,
    is_about: bool,
    is_add: bool,
) -> Result<u64, Failure> {
    let message = match (&options.trim, limit) {
        (None, Some(1..)) => "LIMIT cannot be used without specifying a trimming strategy",
        (None, _) if !is_add => "XTRIM must be called with a trimming strategy",
        (_, Some(_)) if !is_about => "LIMIT cannot be used without the special ~ option",
        (_, Some(0)) => return Ok(u64::MAX),
        (_, Some(limit)) => return Ok(limit),
        (_, None) => return Ok(if is_about { TRIMMED_MAX } else { u64::MAX }),
    };
    Err(Failure::other(format!("syntax error, {message}")))
}
