//! What the dialect of Apache's mod_lua asks of Rust; none of it touches a database.

use std::{
    collections::HashMap,
    os::unix::fs::MetadataExt as _,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use regex::bytes::{Regex, RegexBuilder};

use super::context::{Context, Fault, NO, YES};
use crate::{
    Settings,
    apache::{
        DocumentRoot, FileError, Operation, StoredValue, matches_wildcard, pairs_of_arguments,
        pairs_of_form, pairs_of_multipart, parse_date, transform,
    },
    cabinet::{check_len, steps_of},
};

/// There is no such expression; `lua/apache/texts.lua` has the same.
const NO_EXPRESSION: i32 = 2;

/// Kinds of values; `lua/apache/server.lua` has the same.
const TEXT: i32 = 1;
const NUMBER: i32 = 2;
const BOOLEAN: i32 = 3;

/// Flags of expressions, as Apache has them.
const IGNORES_CASE: i32 = 1;
const IS_OF_LINES: i32 = 2;

/// Maximum number of expressions that stay compiled; one more, and all are forgotten.
const EXPRESSIONS_MAX: usize = 64;

/// Maximum length of an expression, in bytes.
const EXPRESSION_LEN_MAX: usize = 4096;

/// Maximum size of a compiled expression, and of what it remembers while it runs.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// Maximum product of the lengths of a text and the expression or pattern that is looked for in it: some
/// tenths of a second, in which no time limit is looked at.
const WORK_MAX: usize = 1 << 26;

/// Expressions by their text and flags, compiled, with the steps that a search may take at each byte; or why that
/// cannot be.
type Expressions = HashMap<(Box<[u8]>, i32), Result<(Regex, usize), String>>;

/// What the dialect knows beside the request.
#[derive(Default)]
pub(crate) struct Apache {
    settings: Arc<Settings>,
    root: Option<DocumentRoot>,
    expressions: Expressions,
    captures: Vec<Option<Vec<u8>>>,
}

impl Apache {
    pub(crate) fn configure(&mut self, settings: &Arc<Settings>) {
        self.settings = Arc::clone(settings);
        self.root = settings.document_root.as_deref().map(DocumentRoot::new);
    }

    fn root(&self) -> Result<&DocumentRoot, Fault> {
        self.root.as_ref().ok_or_else(|| Fault::refused("this server has no document root"))
    }
}

/// A text made of another one, as the reply's data; `NO` if there is none.
pub(super) fn apache_text(
    context: &mut Context,
    operation: i32,
    text: &[u8],
) -> Result<i32, Fault> {
    let operation = usize::try_from(operation).ok().and_then(|place| Operation::ALL.get(place));
    let Some(made) = operation.and_then(|&operation| transform(operation, text)) else {
        return Ok(NO);
    };
    context.scratch = made;
    context.reply.data(&context.scratch);
    Ok(YES)
}

/// The seconds of a date, as the reply's number; `NO` if it is none.
pub(super) fn apache_date(context: &mut Context, text: &[u8]) -> Result<i32, Fault> {
    let Some(seconds) = parse_date(text) else { return Ok(NO) };
    context.reply.number = seconds as f64;
    Ok(YES)
}

fn check_work(text: &[u8], pattern: &[u8]) -> Result<(), Fault> {
    if text.len().saturating_mul(pattern.len()) > WORK_MAX {
        let message = "the text is too long for such a pattern; look for a shorter one, or in parts of the text";
        return Err(Fault::refused(message));
    }
    Ok(())
}

/// Whether a text matches a pattern with stars.
pub(super) fn apache_wildcard(
    _context: &mut Context,
    text: &[u8],
    pattern: &[u8],
    ignores_case: i32,
) -> Result<i32, Fault> {
    check_work(text, pattern)?;
    Ok(if matches_wildcard(text, pattern, ignores_case != 0) { YES } else { NO })
}

/// Where an expression first matches: the number of its groups and one more, as the reply's number.
pub(super) fn apache_regex(
    context: &mut Context,
    text: &[u8],
    pattern: &[u8],
    flags: i32,
) -> Result<i32, Fault> {
    let apache = &mut context.apache;
    let key = (Box::from(pattern), flags);
    if !apache.expressions.contains_key(&key) {
        if apache.expressions.len() == EXPRESSIONS_MAX {
            apache.expressions.clear();
        }
        apache.expressions.insert(key.clone(), compile(pattern, flags));
    }
    match apache.expressions.get(&key) {
        Some(Ok((regex, steps))) => {
            check_len(text, *steps).map_err(Fault::refused)?;
            apache.captures.clear();
            let Some(found) = regex.captures(text) else { return Ok(NO) };
            let groups = found.iter().map(|group| group.map(|group| group.as_bytes().to_vec()));
            apache.captures.extend(groups);
            context.reply.number = apache.captures.len() as f64;
            Ok(YES)
        }
        Some(Err(why)) => {
            context.scratch = why.clone().into_bytes();
            context.reply.data(&context.scratch);
            Ok(NO_EXPRESSION)
        }
        None => Ok(NO),
    }
}

fn compile(pattern: &[u8], flags: i32) -> Result<(Regex, usize), String> {
    let regex = compile_within(pattern, flags, EXPRESSION_BYTES_MAX)?;
    Ok((regex, steps_of(|bytes| compile_within(pattern, flags, bytes).is_ok())))
}

fn compile_within(pattern: &[u8], flags: i32, bytes_max: usize) -> Result<Regex, String> {
    if pattern.len() > EXPRESSION_LEN_MAX {
        return Err(format!("an expression has at most {EXPRESSION_LEN_MAX} bytes"));
    }
    let pattern = str::from_utf8(pattern).map_err(|error| error.to_string())?;
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(flags & IGNORES_CASE != 0);
    builder.dot_matches_new_line(true).multi_line(flags & IS_OF_LINES != 0);
    builder.size_limit(bytes_max).dfa_size_limit(EXPRESSION_BYTES_MAX);
    // A class of characters above ASCII is one of Unicode.
    let built = builder.build().or_else(|_| builder.unicode(true).build());
    built.map_err(|error| error.to_string())
}

/// What a group has matched, as the reply's data; `NO` if it has not.
pub(super) fn apache_capture(context: &mut Context, place: i32) -> Result<i32, Fault> {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    let Some(Some(group)) = context.apache.captures.get(place) else { return Ok(NO) };
    context.reply.data(group);
    Ok(YES)
}

/// The time in microseconds, as the reply's number.
pub(super) fn apache_clock(context: &mut Context) -> Result<i32, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    context.reply.number = since.map_or(0.0, |since| since.as_micros() as f64);
    Ok(YES)
}

/// When the server was started, in seconds, as the reply's number.
pub(super) fn apache_started(context: &mut Context) -> Result<i32, Fault> {
    let since = context.apache.settings.started.duration_since(UNIX_EPOCH);
    context.reply.number = since.map_or(0.0, |since| since.as_secs() as f64);
    Ok(YES)
}

/// The maximum length of a request's body, as the reply's number.
pub(super) fn apache_body_max(context: &mut Context) -> Result<i32, Fault> {
    context.reply.number = context.apache.settings.body_bytes_max as f64;
    Ok(YES)
}

/// Readies the pairs of a query (0), a form (1) or one in parts (2), and answers how many there are.
pub(super) fn apache_pairs(
    context: &mut Context,
    kind: i32,
    text: &[u8],
    boundary: &[u8],
) -> Result<i32, Fault> {
    let pairs_max = context.limits.query_pairs_max;
    let count = match kind {
        0 => context.exchange.set_pairs(pairs_of_arguments(text).take(pairs_max)),
        1 => context.exchange.set_pairs(pairs_of_form(text).take(pairs_max)),
        _ => context.exchange.set_pairs(pairs_of_multipart(text, boundary).take(pairs_max)),
    };
    context.reply.number = count as f64;
    Ok(YES)
}

/// A value that another request has left: its kind, and itself as the reply's data or number.
pub(super) fn apache_value(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    match context.apache.settings.shared_values.get(name) {
        None => Ok(NO),
        Some(StoredValue::Boolean(value)) => {
            context.reply.number = f64::from(u8::from(value));
            Ok(BOOLEAN)
        }
        Some(StoredValue::Number(value)) => {
            context.reply.number = value;
            Ok(NUMBER)
        }
        Some(StoredValue::Text(text)) => {
            context.answer(|out| out.extend_from_slice(&text));
            Ok(TEXT)
        }
    }
}

/// Leaves a value for other requests, or takes it away.
pub(super) fn apache_set_value(
    context: &mut Context,
    name: &[u8],
    kind: i32,
    number: f64,
    text: &[u8],
) -> Result<i32, Fault> {
    let value = match kind {
        TEXT => Some(StoredValue::Text(text.into())),
        NUMBER => Some(StoredValue::Number(number)),
        BOOLEAN => Some(StoredValue::Boolean(number != 0.0)),
        _ => None,
    };
    context.apache.settings.shared_values.set(name, value).map_err(Fault::refused)?;
    Ok(YES)
}

/// The path of the document root, as the reply's data; `NO` if the operator has named none.
pub(super) fn apache_root(context: &mut Context) -> Result<i32, Fault> {
    let Some(root) = &context.apache.root else { return Ok(NO) };
    context.reply.data(root.path().as_os_str().as_encoded_bytes());
    Ok(YES)
}

/// The content of a file below the document root, as the reply's data; `NO` if it cannot be read.
pub(super) fn apache_file(context: &mut Context, path: &[u8]) -> Result<i32, Fault> {
    let len_max = context.limits.response_len_max;
    match context.apache.root()?.read(path, len_max) {
        Ok(content) if content.len() > len_max => Err(Fault::Refused(format!(
            "a response has at most {len_max} bytes, and the file has more"
        ))),
        Ok(content) => {
            context.scratch = content;
            context.reply.data(&context.scratch);
            Ok(YES)
        }
        Err(FileError::Missing(_)) => Ok(NO),
        Err(error @ FileError::Outside(_)) => Err(Fault::refused(error)),
    }
}

/// What the file system says of a file: its size, three times in microseconds and its kind, as text in the reply's
/// data; `NO` if it is not there.
pub(super) fn apache_stat(context: &mut Context, path: &[u8]) -> Result<i32, Fault> {
    let file = match context.apache.root()?.open(path) {
        Ok(file) => file,
        Err(FileError::Missing(_)) => return Ok(NO),
        Err(error @ FileError::Outside(_)) => return Err(Fault::refused(error)),
    };
    let Ok(metadata) = file.metadata() else { return Ok(NO) };
    let micros = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000) + nanos / 1000;
    let modified = micros(metadata.mtime(), metadata.mtime_nsec());
    let accessed = micros(metadata.atime(), metadata.atime_nsec());
    let changed = micros(metadata.ctime(), metadata.ctime_nsec());
    let kind = match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => 1,
        (_, true) => 2,
        _ => 7,
    };
    let text = format!("{} {modified} {accessed} {changed} {kind}", metadata.len());
    Ok(context.answer(|out| out.extend_from_slice(text.as_bytes())))
}
