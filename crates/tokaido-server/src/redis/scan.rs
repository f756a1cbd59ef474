//! KEYS and SCAN, and the table of cursors.
//!
//! Keys are ordered here, so the position where a scan stopped *is* its last key. But clients read
//! cursors as integers, so the server stores the key under a number. Caches and constant databases
//! have no order; their cursors are numbers already.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
    sync::{Mutex, PoisonError},
};

use tokaido_store::{DatabaseId, Entry, ReadTransaction, ScanRange, Scanner};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    glob,
    keys::type_name,
    number::parse_integer,
    written::Written,
};

pub(super) const COMMANDS: &[Command] = rows! {
"keys" 2 Read(keys), NO_KEY [DANGEROUS LONG] Generic "1.0.0"
    "pattern"
    "Returns the keys that match a pattern.";
"scan" -2 Read(scan), NO_KEY [] Generic "2.8.0"
    "cursor [MATCH pattern] [COUNT count] [TYPE type]"
    "Returns some keys, in order, and the cursor to continue with.";
};

/// How many keys a SCAN without COUNT visits.
pub(super) const COUNT_DEFAULT: usize = 10;

/// Where scans stopped, by number.
#[derive(Debug)]
pub(crate) struct Cursors {
    stopped: Mutex<Stopped>,
    /// Above this number, the oldest are forgotten.
    cursors_max: usize,
}

#[derive(Debug)]
struct Stopped {
    next: u64,
    scans: BTreeMap<u64, StoppedScan>,
}

#[derive(Debug)]
struct StoppedScan {
    database: DatabaseId,
    last_key: Vec<u8>,
    /// The cursor that led here. It is kept until this one is used, so that a client whose
    /// connection broke can repeat the request. So a scan takes two cursors, however long it is.
    from: u64,
}

impl Cursors {
    /// Cursors of a server that started at `started_at_ms` differ from those of its earlier runs,
    /// and fit into the 53 bits that every client can read.
    pub(crate) fn new(started_at_ms: u64, cursors_max: usize) -> Self {
        let next = ((started_at_ms / 1000) << 20 & ((1 << 52) - 1)) + 1;
        Self { stopped: Mutex::new(Stopped { next, scans: BTreeMap::new() }), cursors_max }
    }

    /// Records where a scan that came from cursor `from` has stopped.
    fn stop(&self, database: DatabaseId, last_key: Vec<u8>, from: u64) -> u64 {
        let stopped = &mut *self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if stopped.scans.len() >= self.cursors_max {
            stopped.scans.pop_first();
        }
        let cursor = stopped.next;
        stopped.next += 1;
        stopped.scans.insert(cursor, StoppedScan { database, last_key, from });
        cursor
    }

    /// The last key seen before `cursor` was returned.
    fn resume(&self, database: DatabaseId, cursor: u64) -> Option<Vec<u8>> {
        let stopped = &mut *self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let scan = stopped.scans.get(&cursor).filter(|scan| scan.database == database)?;
        let (key, from) = (scan.last_key.clone(), scan.from);
        stopped.scans.remove(&from);
        Some(key)
    }
}

/// The keys that can match `pattern`.
fn range_of(pattern: &[u8]) -> ScanRange {
    let prefix = glob::literal_prefix(pattern);
    if prefix.len() == pattern.len() {
        // Without special characters, the pattern is a single key.
        let key = Bound::Included(prefix);
        return ScanRange { low: key.clone(), high: key, ..ScanRange::all() };
    }
    ScanRange::prefix(&prefix)
}

fn keys(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let pattern = call.arg(1);
    let results_max = call.shared.limits().keys_results_max;
    if !call.capabilities().is_ordered {
        let found = unordered_keys(call, tx, pattern)?;
        write_keys(call, &found);
        return Ok(());
    }
    let mut scanner = Scanner::new(call.database, range_of(pattern), usize::MAX);
    let (mut found, mut count) = (Written::begin(call.reply), 0);
    scanner.visit(tx, |entry| {
        if !glob::matches(pattern, entry.key) {
            return ControlFlow::Continue(());
        }
        count += 1;
        if count > results_max { ControlFlow::Break(()) } else { found.bulk(entry.key) }
    })?;
    if count > results_max {
        return Err(too_many_keys(results_max));
    }
    found.end(|reply, len| reply.array(len));
    Ok(())
}

fn too_many_keys(results_max: usize) -> Failure {
    Failure::other(format!("more than {results_max} keys match; go through them with SCAN"))
}

fn write_keys(call: &mut Call<'_>, keys: &[Vec<u8>]) {
    call.reply.array(keys.len());
    for key in keys {
        call.reply.bulk(key);
    }
}

/// The matching keys of a database without an order, sorted and without duplicates.
fn unordered_keys(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    pattern: &[u8],
) -> Result<Vec<Vec<u8>>, Failure> {
    let (database, limits) = (call.database, call.shared.limits());
    let (mut found, mut room) = (Vec::new(), call.room());
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        cursor = tx.page(database, from, limits.scan_count_max, &mut |entry| {
            if glob::matches(pattern, entry.key) && room.take(entry.key.len()).is_continue() {
                found.push(entry.key.to_vec());
            }
        })?;
        call.check_room(&room)?;
        if found.len() > limits.keys_results_max {
            return Err(too_many_keys(limits.keys_results_max));
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// How many keys or elements a scan visits at a time: the argument at `index`.
pub(super) fn count_at(call: &Call<'_>, index: usize) -> Result<usize, Failure> {
    match usize::try_from(call.integer(index)?) {
        Ok(count @ 1..) => Ok(count.min(call.shared.limits().scan_count_max)),
        _ => Err(Failure::Syntax),
    }
}

/// What a SCAN asks for.
struct Options<'c> {
    pattern: &'c [u8],
    count: usize,
    /// The requested type.
    type_name: Option<&'c [u8]>,
}

impl<'c> Options<'c> {
    fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let count = COUNT_DEFAULT.min(call.shared.limits().scan_count_max);
        let mut options = Self { pattern: b"*", count, type_name: None };
        if !call.len().is_multiple_of(2) {
            return Err(Failure::Syntax);
        }
        for at in (2..call.len()).step_by(2) {
            if call.is_word(at, "MATCH") {
                options.pattern = call.arg(at + 1);
            } else if call.is_word(at, "COUNT") {
                options.count = count_at(call, at + 1)?;
            } else if call.is_word(at, "TYPE") {
                options.type_name = Some(call.arg(at + 1));
            } else {
                return Err(Failure::Syntax);
            }
        }
        Ok(options)
    }

    fn admits(&self, entry: &Entry<'_>) -> bool {
        let type_of =
            |name: &[u8]| name.eq_ignore_ascii_case(type_name(entry.record.kind).as_bytes());
        self.type_name.is_none_or(type_of) && glob::matches(self.pattern, entry.key)
    }
}

fn scan(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let cursor = parse_integer(call.arg(1))
        .and_then(|cursor| u64::try_from(cursor).ok())
        .ok_or_else(|| Failure::other("invalid cursor"))?;
    let options = Options::read(call)?;
    let database = call.database;
    if !call.capabilities().is_ordered {
        let mut found = Vec::new();
        let next = tx.page(database, cursor, options.count, &mut |entry| {
            if options.admits(&entry) {
                found.push(entry.key.to_vec());
            }
        })?;
        write_scan(call, next.unwrap_or(0), &found);
        return Ok(());
    }
    let mut scanner = Scanner::new(database, range_of(options.pattern), options.count);
    if cursor != 0 {
        let last_key = call.shared.cursors.resume(database, cursor).ok_or_else(|| {
            Failure::other(format!("cursor {cursor} is not known any more; start again with 0"))
        })?;
        scanner = scanner.after(&last_key);
    }
    let mut visited = 0;
    let mut last_key = Vec::new();
    let mut found = Vec::new();
    scanner.visit(tx, |entry| {
        visited += 1;
        if visited == options.count {
            last_key = entry.key.to_vec();
        }
        if options.admits(&entry) {
            found.push(entry.key.to_vec());
        }
        ControlFlow::Continue(())
    })?;
    let is_over = visited < options.count;
    let next = if is_over { 0 } else { call.shared.cursors.stop(database, last_key, cursor) };
    write_scan(call, next, &found);
    Ok(())
}

fn write_scan(call: &mut Call<'_>, next: u64, found: &[Vec<u8>]) {
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    write_keys(call, found);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> DatabaseId {
        DatabaseId::from_index(0)
    }

    #[test]
    fn a_cursor_can_be_used_again_until_its_successor_is() {
        let cursors = Cursors::new(1_700_000_000_000, 4096);
        let a = cursors.stop(database(), b"a".to_vec(), 0);
        assert_eq!(cursors.resume(database(), a), Some(b"a".to_vec()));
        let b = cursors.stop(database(), b"b".to_vec(), a);
        assert_eq!(cursors.resume(database(), a), Some(b"a".to_vec()));
        assert_eq!(cursors.resume(database(), b), Some(b"b".to_vec()));
        assert_eq!(cursors.resume(database(), a), None);
        assert_eq!(cursors.resume(DatabaseId::from_index(1), b), None);
    }

    #[test]
    fn the_oldest_cursors_are_forgotten() {
        let cursors = Cursors::new(0, 10);
        let first = cursors.stop(database(), b"first".to_vec(), 0);
        let second = cursors.stop(database(), b"second".to_vec(), 0);
        for _ in 2..=10 {
            cursors.stop(database(), b"x".to_vec(), 0);
        }
        assert_eq!(cursors.resume(database(), first), None);
        assert_eq!(cursors.resume(database(), second), Some(b"second".to_vec()));
    }

    #[test]
    fn a_plain_pattern_is_one_key() {
        assert_eq!(range_of(b"a\\*"), ScanRange::prefix(b"a*"));
        assert_eq!(range_of(b"a*"), ScanRange::prefix(b"a"));
        assert_eq!(range_of(b"*"), ScanRange::prefix(b""));
        assert_eq!(range_of(b"ab").high, Bound::Included(b"ab".to_vec()));
    }
}
