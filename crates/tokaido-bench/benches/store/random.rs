//! A million records with random keys: written in small transactions, got, and scanned.

use std::{fs, ops::ControlFlow, path::Path};

use tokaido_store::{
    DatabaseId, NewRecord, ScanRange, Scanner, Store, transact,
    tree::{self, Options, SyncMode, TreeStore},
};

use crate::{
    Outcome,
    subject::{Place, Took},
};

pub(crate) const KEYS: u64 = 1_000_000;
const BATCH: usize = 50;
pub(crate) const VALUE: [u8; 64] = [b'v'; 64];

/// Room for all of it.
const LARGE_MEMTABLE_BYTES: usize = 1 << 30;

pub(crate) type Key = [u8; 16];

/// Numbers in no order, the same on both sides: the finaliser of SplitMix64.
pub(crate) fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// A key of 16 hexadecimal digits.
pub(crate) fn key(n: u64) -> Key {
    let digits = |nibble: u64| b"0123456789abcdef"[(nibble & 15) as usize];
    let scattered = scatter(n);
    std::array::from_fn(|i| digits(scattered >> (60 - 4 * i)))
}

/// Made before the clock runs.
pub(crate) fn keys() -> Vec<Key> {
    (1..=KEYS).map(key).collect()
}

fn options() -> Options {
    Options { sync: SyncMode::Os, ..Options::default() }
}

pub(crate) fn put(place: &Place) -> Outcome<Took> {
    let keys = keys();
    let store = tree::open(&place.empty("random")?, options())?;
    let main = store.database("main")?;
    Took::timed(KEYS, || fill(&store, main, &keys).map(|()| 0))
}

fn fill(store: &TreeStore, main: DatabaseId, keys: &[Key]) -> Outcome {
    let mut writer = store.writer()?;
    for batch in keys.chunks(BATCH) {
        transact(&mut *writer, |transaction| {
            batch.iter().try_for_each(|key| transaction.put(main, key, NewRecord::of(&VALUE)))
        })?;
    }
    Ok(())
}

/// A store whose records are all in the base. It is made once.
pub(crate) fn at_rest(place: &Place, keys: &[Key]) -> Outcome<TreeStore> {
    let directory = place.directory.join("at-rest");
    if !directory.exists() {
        make_at_rest(&place.empty("at-rest.new")?, keys)?;
        fs::rename(place.directory.join("at-rest.new"), &directory)?;
    }
    Ok(tree::open(&directory, options())?)
}

fn make_at_rest(directory: &Path, keys: &[Key]) -> Outcome {
    let store = tree::open(directory, options())?;
    fill(&store, store.database("main")?, keys)?;
    Ok(store.checkpoint()?)
}

pub(crate) fn get_from_base(place: &Place) -> Outcome<Took> {
    let keys = keys();
    get_all(&at_rest(place, &keys)?, &keys)
}

pub(crate) fn get_from_memtable(place: &Place) -> Outcome<Took> {
    let keys = keys();
    let options = Options { memtable_bytes: LARGE_MEMTABLE_BYTES, ..options() };
    let store = tree::open(&place.empty("memtable")?, options)?;
    fill(&store, store.database("main")?, &keys)?;
    get_all(&store, &keys)
}

pub(crate) fn get_all(store: &TreeStore, keys: &[Key]) -> Outcome<Took> {
    let main = store.database("main")?;
    let mut snapshot = store.snapshot()?;
    Took::timed(KEYS, || {
        let mut sum = 0;
        for n in 0..KEYS {
            let key = &keys[(scatter(n + 7) % KEYS) as usize];
            let record = snapshot.get(main, key)?.ok_or("a key is not there")?;
            sum += record.value.len() as u64 + u64::from(record.value[0]);
        }
        Ok(sum)
    })
}

pub(crate) fn scan(place: &Place) -> Outcome<Took> {
    let store = at_rest(place, &keys())?;
    let main = store.database("main")?;
    let mut snapshot = store.snapshot()?;
    let mut scanner = Scanner::new(main, ScanRange::all(), usize::MAX);
    Took::timed(KEYS, || {
        let mut sum = 0;
        scanner.visit(&mut *snapshot, |entry| {
            sum += (entry.key.len() + entry.record.value.len()) as u64;
            ControlFlow::Continue(())
        })?;
        Ok(sum)
    })
}
