//! Looking for keys, for the protocols that can: expressions over bytes, and a visit of records.

use std::ops::{Bound, ControlFlow};

use regex::bytes::{Regex, RegexBuilder};
use tokaido_store::{DatabaseId, Direction, Entry, ReadError, ReadTransaction};

/// Maximum size of a compiled expression, and of what it remembers while it runs.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Records of an unordered database that are looked at in one step.
const PAGE_RECORDS: usize = 256;

/// Whether a visit goes on behind a record.
pub(crate) type Visited<E> = Result<ControlFlow<()>, E>;

/// Keys are bytes, which need not be UTF-8; neither need what an expression finds in them.
pub(crate) fn compile(pattern: &[u8], ignores_case: bool) -> Option<Regex> {
    let pattern = std::str::from_utf8(pattern).ok()?;
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(ignores_case);
    builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX);
    // A class of characters above ASCII is one of Unicode.
    builder.build().or_else(|_| builder.unicode(true).build()).ok()
}

/// Visits the records of a database from here on, in the order of their keys. The inner result is that of
/// the visit.
pub(crate) fn visit_from<E>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    from: Bound<&[u8]>,
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<Result<(), E>, ReadError> {
    let mut outcome = Ok(());
    tx.scan(database, from, Direction::Forward, &mut |entry| {
        visit(entry).unwrap_or_else(|error| {
            outcome = Err(error);
            ControlFlow::Break(())
        })
    })?;
    Ok(outcome)
}

/// Visits the records of a database whose keys begin with `prefix`, in their order if they have one.
pub(crate) fn visit<E: From<ReadError>>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<(), E> {
    let from = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
    let scanned = visit_from(tx, database, from, &mut |entry| {
        if entry.key.starts_with(prefix) { visit(entry) } else { Ok(ControlFlow::Break(())) }
    });
    match scanned {
        Err(ReadError::Unordered) => {}
        scanned => return scanned?,
    }
    let (mut outcome, mut cursor) = (Ok(ControlFlow::Continue(())), Some(0));
    while let (Some(at), Ok(ControlFlow::Continue(()))) = (cursor, &outcome) {
        cursor = tx.page(database, at, PAGE_RECORDS, &mut |entry| {
            let goes_on = matches!(outcome, Ok(ControlFlow::Continue(())));
            if goes_on && entry.key.starts_with(prefix) {
                outcome = visit(entry);
            }
        })?;
    }
    outcome.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_over_bytes() {
        let found = |pattern: &str, key: &[u8]| {
            compile(pattern.as_bytes(), false).map(|regex| regex.is_match(key))
        };
        assert_eq!(found("^a.c$", b"a\xffc"), Some(true));
        assert_eq!(found("日", "本日".as_bytes()), Some(true));
        assert_eq!(found("[日月]", "本日".as_bytes()), Some(true));
        assert_eq!(found("A", b"a"), Some(false));
        assert_eq!(found("(", b""), None);
        assert_eq!(found("(a{1000}){1000}", b""), None);
        assert!(compile(b"A", true).is_some_and(|regex| regex.is_match(b"a")));
    }
}
