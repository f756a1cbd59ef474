//! Reading the files of a store that was shut down cleanly.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use tempfile::TempDir;
use tokaido_store::{
    NewRecord, OpenError, ReadError, Store, WriteError, transact,
    tree::{self, Reader, ReaderError, TreeStore},
};

use crate::support::fast_directory;

const RECORDS: usize = 3000;
const LARGE_LEN: usize = 100_000;

fn options() -> tree::Options {
    tree::Options { size_max: 1 << 30, log_left_bytes_max: 0, ..tree::Options::default() }
}

fn open(directory: &Path) -> TreeStore {
    tree::open(directory, options()).unwrap()
}

fn key(n: usize) -> String {
    format!("key:{n:05}")
}

/// A key that is too long for LMDB.
fn long_key(n: usize) -> Vec<u8> {
    [&[b'l'; 600][..], key(n).as_bytes()].concat()
}

/// Puts `value` under every key.
fn put_all(store: &TreeStore, value: &str) {
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| {
        for n in 0..RECORDS {
            tx.put(main, key(n).as_bytes(), NewRecord::of(value.as_bytes()))?;
        }
        for n in 0..3 {
            tx.put(main, &long_key(n), NewRecord::of(value.as_bytes()))?;
        }
        tx.put(main, b"expired", NewRecord::of(b"gone").expiring(Some(1)))?;
        tx.put(main, b"large", NewRecord::of(&[b'x'; LARGE_LEN]))
    })
    .unwrap();
}

/// A store that was shut down with an empty log and has not been opened since.
fn shut_down(value: &str) -> TempDir {
    let directory = fast_directory();
    put_all(&open(directory.path()), value);
    fs::remove_file(directory.path().join("lock.mdb")).unwrap();
    directory
}

fn value_of(reader: &Reader, database: &str, key: &[u8]) -> Option<String> {
    let mut database = reader.database(database).unwrap()?;
    let record = database.get(key).unwrap()?;
    Some(String::from_utf8(record.value.to_vec()).unwrap())
}

fn refusal(directory: &Path) -> ReaderError {
    Reader::open(directory).map(drop).expect_err("it reads")
}

#[test]
fn every_record_is_found_and_nothing_is_written() {
    let directory = shut_down("old");
    let reader = Reader::open(directory.path()).unwrap();
    let mut main = reader.database("main").unwrap().unwrap();
    for n in 0..RECORDS {
        let record = main.get(key(n).as_bytes()).unwrap().unwrap();
        assert_eq!((record.value, record.version), (&b"old"[..], 1));
    }
    assert_eq!(main.get(b"large").unwrap().unwrap().value.len(), LARGE_LEN);
    assert!(matches!(main.get(b""), Err(ReadError::KeyLength { .. })));
    assert!(main.get(b"expired").unwrap().is_none());
    assert!(main.get(b"nothing").unwrap().is_none());
    assert_eq!(value_of(&reader, "main", &long_key(2)).as_deref(), Some("old"));
    assert_eq!(value_of(&reader, "main", &long_key(3)), None);
    assert!(reader.database("other").unwrap().is_none());
    drop(reader);
    assert!(!directory.path().join("lock.mdb").exists(), "LMDB was opened");
    assert!(tree::check(directory.path()).unwrap().is_sound());
}

#[test]
fn each_of_many_databases_has_its_own_records() {
    let directory = fast_directory();
    let name = |n: usize| format!("{n:_>64}").replace('_', "x");
    let store = open(directory.path());
    transact(&mut *store.writer().unwrap(), |tx| {
        for n in 0..200 {
            let id = store.database(&name(n)).expect("there is room");
            tx.put(id, b"n", NewRecord::of(n.to_string().as_bytes()))?;
        }
        tx.clear(store.database(&name(3)).expect("there is room"))?;
        Ok::<_, WriteError>(())
    })
    .unwrap();
    drop(store);
    let reader = Reader::open(directory.path()).unwrap();
    for n in [0, 77, 199] {
        assert_eq!(value_of(&reader, &name(n), b"n").unwrap(), n.to_string());
    }
    assert_eq!(value_of(&reader, &name(3), b"n"), None);
}

#[test]
fn an_empty_store_has_no_database() {
    let directory = fast_directory();
    drop(open(directory.path()));
    assert!(Reader::open(directory.path()).unwrap().database("main").unwrap().is_none());
}

#[test]
fn a_store_with_something_in_its_log_is_refused() {
    let directory = shut_down("old");
    let keeping = tree::Options { log_left_bytes_max: 1 << 20, ..options() };
    let store = tree::open(directory.path(), keeping).unwrap();
    let main = store.database("main").unwrap();
    let late = NewRecord::of(b"here");
    transact(&mut *store.writer().unwrap(), |tx| tx.put(main, b"late", late)).unwrap();
    drop(store);
    let error = refusal(directory.path());
    assert!(matches!(error, ReaderError::LogNotEmpty { .. }), "{error}");
    open(directory.path()).checkpoint().unwrap();
    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(value_of(&reader, "main", b"late").as_deref(), Some("here"));
}

fn segment_path(directory: &Path, segment: u64) -> PathBuf {
    directory.join(format!("log/{segment:020}"))
}

fn last_segment(directory: &Path) -> u64 {
    let segments = fs::read_dir(directory.join("log")).unwrap();
    let names = segments.map(|segment| segment.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.parse().unwrap()).max().unwrap()
}

/// If a log has no segments, like that of a backup, it does not begin again before the segment that
/// the base names: that segment, created later and empty, would be taken for the only one.
#[test]
fn numbers_of_segments_go_on_where_there_is_none() {
    let directory = shut_down("old");
    let last = last_segment(directory.path());
    fs::remove_file(segment_path(directory.path(), last)).unwrap();
    let keeping = tree::Options { log_left_bytes_max: 1 << 20, ..options() };
    put_all(&tree::open(directory.path(), keeping).unwrap(), "new");
    assert!(last_segment(directory.path()) >= last);
    let error = refusal(directory.path());
    assert!(matches!(error, ReaderError::LogNotEmpty { .. }), "{error}");
}

/// The base names the first segment that it needs. If that one has no frames, or does not exist,
/// this is no proof if there is a later one.
#[test]
fn frames_in_any_segment_are_found() {
    let directory = shut_down("old");
    let path = |segment| segment_path(directory.path(), segment);
    let last = last_segment(directory.path());
    Reader::open(directory.path()).unwrap();
    for (is_last_there, other) in [(true, last + 1), (false, last + 1), (false, last + 5)] {
        if !is_last_there && path(last).exists() {
            fs::remove_file(path(last)).unwrap();
        }
        fs::write(path(other), [0; 49]).unwrap();
        let error = refusal(directory.path());
        assert!(matches!(error, ReaderError::LogNotEmpty { .. }), "{error}");
        fs::remove_file(path(other)).unwrap();
        Reader::open(directory.path()).unwrap();
    }
}

#[test]
fn a_reader_keeps_nobody_out_and_reads_what_was_there_or_nothing() {
    let directory = shut_down("old");
    let readers = [(); 2].map(|()| Reader::open(directory.path()).unwrap());
    let keeping = tree::Options { log_left_bytes_max: 1 << 20, ..options() };
    let store = tree::open(directory.path(), keeping).unwrap();
    put_all(&store, "new");
    for (reader, key) in readers.iter().zip([b"key:00001", b"key:02999"]) {
        assert_eq!(value_of(reader, "main", key).as_deref(), Some("old"));
    }
    let error = refusal(directory.path());
    assert!(matches!(error, ReaderError::LogNotEmpty { .. }), "{error}");
    store.checkpoint().unwrap();
    let mut main = readers[0].database("main").unwrap().unwrap();
    let error = main.get(b"key:00002").map(drop).unwrap_err();
    assert!(error.to_string().contains("written to meanwhile"), "{error}");
    let error = readers[1].database("other").map(drop).unwrap_err();
    assert!(error.to_string().contains("written to meanwhile"), "{error}");
    drop(store);
    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(value_of(&reader, "main", b"key:00002").as_deref(), Some("new"));
}

#[test]
fn a_reader_that_outlives_a_compaction_says_so() {
    let directory = shut_down("old");
    let reader = Reader::open(directory.path()).unwrap();
    tree::compact(directory.path(), options()).unwrap();
    let mut main = reader.database("main").unwrap().unwrap();
    let error = main.get(b"key:00001").map(drop).unwrap_err();
    assert!(error.to_string().contains("written to meanwhile"), "{error}");
    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(value_of(&reader, "main", b"key:00001").as_deref(), Some("old"));
}

/// A counter is written and checkpointed again and again. A reader must return a number that the
/// counter has had since the reader began to open the store.
#[test]
fn a_reader_beside_a_writer_gives_a_state_that_was_there() {
    const WRITES: u64 = 2000;
    let directory = shut_down("old");
    let begun = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let (mut answers, mut refusals) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let store = open(directory.path());
            let main = store.database("main").unwrap();
            for n in 1..=WRITES {
                begun.store(n, Ordering::SeqCst);
                transact(&mut *store.writer().unwrap(), |tx| {
                    // Pages are freed and taken, so that those of the reader are reused.
                    let filling = vec![n as u8; (n as usize * 997) % 20_000];
                    tx.put(main, b"filling", NewRecord::of(&filling))?;
                    tx.put(main, b"counter", NewRecord::of(n.to_string().as_bytes()))
                })
                .unwrap();
                store.checkpoint().unwrap();
                done.store(n, Ordering::SeqCst);
            }
        });
        while done.load(Ordering::SeqCst) < WRITES {
            let least = done.load(Ordering::SeqCst);
            let read = Reader::open(directory.path()).ok().and_then(|reader| {
                let mut main = reader.database("main").ok()??;
                // With two or more checkpoints, pages of the reader are reused.
                let target = WRITES.min(done.load(Ordering::SeqCst) + least % 5);
                while done.load(Ordering::SeqCst) < target {
                    thread::yield_now();
                }
                let found = main.get(b"counter").ok()?;
                Some(found.map_or(0, |record| {
                    str::from_utf8(record.value).unwrap().parse::<u64>().unwrap()
                }))
            });
            match read {
                Some(n) => {
                    let most = begun.load(Ordering::SeqCst);
                    assert!((least..=most).contains(&n), "{n} was read, not {least} to {most}");
                    answers += 1;
                }
                None => refusals += 1,
            }
        }
    });
    println!("{answers} answers, {refusals} refusals");
    assert!(refusals > 0, "the reader was never in the writer's way");
}

#[test]
fn what_is_no_store_is_refused() {
    let directory = shut_down("old");
    let data = directory.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    // One of the two meta pages.
    for page in 0..2 {
        let mut bytes = whole.clone();
        bytes[page * 4096 + 16] ^= 1;
        fs::write(&data, &bytes).unwrap();
        let error = refusal(directory.path());
        assert!(matches!(error, ReaderError::Open(OpenError::Damaged { .. })), "{error}");
    }
    let mut bytes = whole;
    let version_1 = b"format\x01";
    for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(version_1)).collect::<Vec<_>>()
    {
        bytes[at + version_1.len() - 1] = 9;
    }
    fs::write(&data, &bytes).unwrap();
    let error = refusal(directory.path());
    let is_of_version =
        |error: &_| matches!(error, ReaderError::Open(OpenError::Version { found: 9, .. }));
    assert!(is_of_version(&error), "{error}");
    fs::remove_file(&data).unwrap();
    for nowhere in [directory.path(), &directory.path().join("nowhere")] {
        let error = refusal(nowhere);
        assert!(matches!(error, ReaderError::Open(OpenError::Io { .. })), "{error}");
    }
}

/// Whatever is on its pages, a store is read without a panic.
#[test]
fn damaged_pages_give_an_error_or_another_answer() {
    let directory = shut_down("old");
    let data = directory.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let (mut errors, mut answers) = (0, 0);
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&data, &bytes).unwrap();
        let Ok(reader) = Reader::open(directory.path()) else {
            errors += 1;
            continue;
        };
        for n in [0, RECORDS / 2, RECORDS - 1] {
            let found = reader.database("main").and_then(|database| {
                let Some(mut database) = database else { return Ok(()) };
                database.get(key(n).as_bytes()).map(drop)
            });
            match found {
                Err(ReadError::Damaged { .. }) => errors += 1,
                Err(error) => panic!("byte {at}: {error}"),
                Ok(()) => answers += 1,
            }
        }
    }
    assert!(errors > 0 && answers > errors, "{errors} errors, {answers} answers");
}

/// An older program has left a seal in the lock file.
#[test]
fn an_old_seal_counts_for_nothing_and_goes_at_the_next_opening() {
    let directory = shut_down("old");
    let lock = directory.path().join("tokaido.lock");
    let seal = [&b"TOKAIDOS"[..], &[1; 200]].concat();
    fs::write(&lock, &seal).unwrap();
    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(value_of(&reader, "main", b"key:00001").as_deref(), Some("old"));
    drop(reader);
    assert!(tree::check(directory.path()).unwrap().is_sound());
    assert_eq!(fs::read(&lock).unwrap(), seal, "who only reads changes nothing");
    let store = open(directory.path());
    assert_eq!(fs::read(&lock).unwrap(), b"");
    put_all(&store, "new");
    drop(store);
    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(value_of(&reader, "main", b"key:00001").as_deref(), Some("new"));
}
