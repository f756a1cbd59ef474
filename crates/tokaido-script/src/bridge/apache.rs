//! What the mod_lua dialect needs from Rust; none of it touches a database.

use std::{
    os::unix::fs::MetadataExt as _,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    context::{Context, Fault, NO, YES},
    openresty::regex::compile_regex,
};
use crate::{
    Settings,
    apache::{
        DocumentRoot, FileError, Operation, StoredValue, matches_wildcard, pairs_of_arguments,
        pairs_of_form, pairs_of_multipart, parse_date, transform,
    },
    openresty::regex::Dollar,
};

/// Kinds of value; `lua/apache/server.lua` has the same.
const TEXT: i32 = 1;
const NUMBER: i32 = 2;
const BOOLEAN: i32 = 3;

/// Maximum product of the lengths of a text and the wildcard pattern that it is matched against. It takes some
/// tenths of a second, in which no time limit is checked.
const WORK_MAX: usize = 1 << 26;

/// What the dialect knows besides the request.
#[derive(Default)]
pub(crate) struct Apache {
    settings: Arc<Settings>,
    root: Option<DocumentRoot>,
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

/// The result of an operation on a text, as the reply's data; `NO` if there is none.
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

/// The seconds of a date, as the reply's number; `NO` if it is not a date.
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

/// Whether a text matches a pattern with wildcards.
pub(super) fn apache_wildcard(
    _context: &mut Context,
    text: &[u8],
    pattern: &[u8],
    ignores_case: i32,
) -> Result<i32, Fault> {
    check_work(text, pattern)?;
    Ok(if matches_wildcard(text, pattern, ignores_case != 0) { YES } else { NO })
}

/// Compiles an expression as Apache does: `.` is any byte, and `$` only the end of the text. The flags and the reply are those
/// of `regex_compile`.
pub(super) fn apache_regex_compile(
    context: &mut Context,
    pattern: &[u8],
    flags: &[u8],
) -> Result<i32, Fault> {
    compile_regex(context, pattern, flags, Dollar::End)
}

/// The time in microseconds, as the reply's number.
pub(super) fn apache_clock(context: &mut Context) -> Result<i32, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    context.reply.number = since.map_or(0.0, |since| since.as_micros() as f64);
    Ok(YES)
}

/// When the server started, in seconds, as the reply's number.
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

/// Prepares the pairs of a query (0), a form (1) or a multipart form (2), and gives how many there are.
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

/// A value that another request left: its kind, and the value as the reply's data or number.
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

/// Leaves a value for other requests, or removes it.
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

/// The path of the document root, as the reply's data; `NO` if the operator has not set one.
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

/// What the file system knows about a file: its size, three times in microseconds and its kind, as text in the reply's
/// data; `NO` if there is no such file.
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
