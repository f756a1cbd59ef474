//! What the options of a store change, as far as it is visible from outside.

use std::{fs, path::Path};

use tokaido_store::{
    Kind, NewRecord, ReadError, Store, TransactError, WriteError, limits, transact,
    tree::{self, Options, TreeStore},
};

use crate::support::fast_directory;

fn open(directory: &Path, options: Options) -> TreeStore {
    tree::open(directory, Options { size_max: 1 << 30, ..options }).unwrap()
}

fn put(store: &TreeStore, key: &[u8], value: &[u8]) -> Result<(), TransactError<WriteError>> {
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| tx.put(main, key, NewRecord::of(value)))
}

fn log_bytes_on_disk(directory: &Path) -> u64 {
    let files = fs::read_dir(directory.join("log")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_transaction_writes_no_more_than_it_may() {
    let directory = fast_directory();
    let options =
        Options { transaction_writes_max: 3, transaction_bytes_max: 20, ..Options::default() };
    let store = open(directory.path(), options);
    let main = store.database("main").unwrap();
    let write = |count: u8, value: &[u8]| {
        transact(&mut *store.writer().unwrap(), |tx| {
            (0..count).try_for_each(|n| tx.put(main, &[n], NewRecord::of(value)))
        })
    };
    write(3, b"").unwrap();
    write(2, b"123456789").unwrap();
    for (count, value) in [(4, &b""[..]), (2, b"1234567890")] {
        let error = write(count, value).unwrap_err().to_string();
        assert!(error.contains("may write 3 records and 20 bytes"), "{error}");
    }
}

#[test]
fn longer_keys_and_values_than_are_written_are_still_read_and_deleted() {
    let directory = fast_directory();
    let store = open(directory.path(), Options::default());
    put(&store, b"long key", b"long value").unwrap();
    drop(store);
    let options = Options { key_len_max: 4, value_len_max: 5, ..Options::default() };
    let store = open(directory.path(), options);
    put(&store, b"1234", b"12345").unwrap();
    assert!(matches!(
        put(&store, b"12345", b"").unwrap_err(),
        TransactError::Body(WriteError::Read(ReadError::KeyLength { len: 5, max: 4 }))
    ));
    assert!(matches!(
        put(&store, b"1234", b"123456").unwrap_err(),
        TransactError::Body(WriteError::ValueLength { len: 6, max: 5 })
    ));
    let main = store.database("main").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(main, b"long key").unwrap().unwrap().value, b"long value");
    let deleted =
        transact::<_, WriteError>(&mut *store.writer().unwrap(), |tx| tx.delete(main, b"long key"));
    assert!(deleted.unwrap());
}

#[test]
fn options_do_not_go_beyond_what_the_files_hold() {
    let directory = fast_directory();
    let options = Options { key_len_max: 1 << 20, ..Options::default() };
    let store = open(directory.path(), options);
    let key = vec![b'k'; limits::KEY_LEN_MAX + 1];
    let refused = put(&store, &key, b"v").unwrap_err().to_string();
    assert!(refused.contains("1 to 4096 bytes"), "{refused}");
}

#[test]
fn closing_leaves_as_much_of_the_log_as_was_asked_for() {
    for (log_left_bytes_max, is_left) in [(0, false), (64 << 10, true), (u64::MAX, true)] {
        let directory = fast_directory();
        let options = Options { log_left_bytes_max, ..Options::default() };
        let store = open(directory.path(), options.clone());
        put(&store, b"k", &[7; 10_000]).unwrap();
        drop(store);
        let left = open(directory.path(), options).usage().log_bytes;
        assert_eq!(left > 10_000, is_left, "{left} bytes of {log_left_bytes_max}");
    }
}

#[test]
fn whoever_only_reads_leaves_little_of_the_log_to_be_read_again() {
    let directory = fast_directory();
    let store = open(directory.path(), Options::default());
    put(&store, b"k", &[7; 200_000]).unwrap();
    drop(store);
    let store = open(directory.path(), Options::default());
    assert!(store.usage().log_bytes > 200_000);
    drop(store);
    let store = open(directory.path(), Options::default());
    assert!(store.usage().log_bytes < 10_000);
    let main = store.database("main").unwrap();
    let found = store.snapshot().unwrap().get(main, b"k").unwrap().map(|found| found.value.len());
    assert_eq!(found, Some(200_000));
}

#[test]
fn the_log_grows_by_what_was_asked_for() {
    for growth in [0, 4 << 10, 3 << 20] {
        let directory = fast_directory();
        let options = Options { log_growth_bytes: growth, ..Options::default() };
        let store = open(directory.path(), options.clone());
        put(&store, b"k", &[7; 100]).unwrap();
        let len = log_bytes_on_disk(directory.path());
        assert!((growth..growth + 1000).contains(&len), "{len} bytes by {growth}");
        for n in 0..100u8 {
            put(&store, &[n], &[7; 100]).unwrap();
        }
        drop(store);
        let store = open(directory.path(), options);
        let main = store.database("main").unwrap();
        assert_eq!(store.snapshot().unwrap().statistics(main).unwrap().records, 101);
    }
}

/// Writes a record with an element into each of `count` databases, each in its own transaction.
fn fill_databases(store: &TreeStore, count: usize) {
    for number in 0..count {
        transact::<_, WriteError>(&mut *store.writer().unwrap(), |tx| {
            let database = tx.open_database(&number.to_string(), count)?;
            let collection = tx.new_collection().unwrap();
            let element = [&collection.prefix()[..], b"e"].concat();
            tx.put(database.elements(), &element, NewRecord::of(b"v"))?;
            let (kind, collection) = (Kind::Hash, Some(collection));
            tx.put(database, b"k", NewRecord { kind, collection, ..NewRecord::default() })
        })
        .unwrap();
    }
}

/// LMDB is opened with places for the trees of `databases_max` databases: there must be places for
/// the existing ones, including their second trees, wherever they are.
#[test]
fn a_store_keeps_the_databases_that_are_more_than_it_may_be_given() {
    const COUNT: usize = 20;
    let small = Options { databases_max: 3, ..Options::default() };
    for checkpoints_made in [false, true] {
        for elements_made in [false, true] {
            let directory = fast_directory();
            let memtable_bytes = if checkpoints_made { 1 } else { small.memtable_bytes };
            let options = Options { memtable_bytes, databases_max: COUNT, ..small.clone() };
            let store = open(directory.path(), options);
            match elements_made {
                true => fill_databases(&store, COUNT),
                false => transact::<_, WriteError>(&mut *store.writer().unwrap(), |tx| {
                    (0..COUNT).try_for_each(|number| {
                        let database = tx.open_database(&number.to_string(), COUNT)?;
                        tx.put(database, b"k", NewRecord::of(b"v"))
                    })
                })
                .unwrap(),
            }
            drop(store);
            let store = open(directory.path(), Options { memtable_bytes: 1, ..small.clone() });
            fill_databases(&store, COUNT);
            let refused = transact::<_, WriteError>(&mut *store.writer().unwrap(), |tx| {
                Ok(tx.open_database("one more", COUNT + 1).is_err())
            });
            assert!(refused.unwrap());
            drop(store);
            let store = open(directory.path(), small.clone());
            let mut snapshot = store.snapshot().unwrap();
            for number in 0..COUNT {
                let database = store.database(&number.to_string()).unwrap();
                let record = snapshot.get(database, b"k").unwrap().unwrap();
                let element = [&record.collection.unwrap().prefix()[..], b"e"].concat();
                let element = snapshot.get(database.elements(), &element).unwrap();
                assert_eq!(element.unwrap().value, b"v");
            }
        }
    }
}
