//! Random operations compared with a map, with time, in a cache that never evicts.

use std::collections::HashMap;

use proptest::prelude::*;
use tokaido_store::{
    Condition, NewRecord,
    cache::{Cache, CasOutcome, Cursor, ScanPage},
};

use crate::support::{TestClock, clocked_cache};

#[derive(Clone, Debug)]
enum Operation {
    Get,
    GetAndTouch(Option<u64>),
    Set(Vec<u8>, u32, Option<u64>),
    Add(Vec<u8>),
    Replace(Vec<u8>),
    /// With the record's version, or with one that never existed.
    Cas(bool, Vec<u8>),
    SetIfValue(Vec<u8>, Vec<u8>),
    Append(Vec<u8>),
    Prepend(Vec<u8>),
    Delete,
    Touch(Option<u64>),
    Increment(u64),
    Decrement(u64),
    IncrementSigned(i64),
    Flush,
    FlushLater(u64),
    RemoveExpired(usize),
    Advance(u64),
    Scan(usize),
}

/// Values of lengths that stay in place, move, and get their own segment; some are numbers.
fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..40),
        2 => any::<u64>().prop_map(|n| n.to_string().into_bytes()),
        2 => (0..200u8).prop_map(|n| n.to_string().into_bytes()),
        1 => (0..5000usize).prop_map(|len| vec![b'x'; len]),
    ]
}

fn expiries() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(0..3_000u64)
}

fn operations() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let usual = prop_oneof![
        4 => Just(Get),
        1 => expiries().prop_map(GetAndTouch),
        6 => (values(), any::<u32>(), expiries()).prop_map(|(v, f, e)| Set(v, f, e)),
        1 => values().prop_map(Add),
        1 => values().prop_map(Replace),
        1 => (any::<bool>(), values()).prop_map(|(is_right, v)| Cas(is_right, v)),
        1 => (values(), values()).prop_map(|(old, new)| SetIfValue(old, new)),
        1 => values().prop_map(Append),
        1 => values().prop_map(Prepend),
        2 => Just(Delete),
        1 => expiries().prop_map(Touch),
        1 => any::<u64>().prop_map(Increment),
        1 => (0..300u64).prop_map(Decrement),
        1 => any::<i64>().prop_map(IncrementSigned),
        1 => (0..1_000usize).prop_map(RemoveExpired),
        1 => (0..400u64).prop_map(Advance),
        1 => (1..50usize).prop_map(Scan),
    ];
    // A flush after every twentieth operation would leave too little to work on.
    prop_oneof![
        200 => usual,
        1 => Just(Flush),
        1 => (0..500u64).prop_map(FlushLater),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Held {
    value: Vec<u8>,
    flags: u32,
    expires_at_ms: Option<u64>,
    version: u64,
}

/// memcached's rules, on a map.
#[derive(Default)]
struct Model {
    records: HashMap<Vec<u8>, Held>,
    now_ms: u64,
    flush_at_ms: Option<u64>,
    version_max: u64,
}

impl Model {
    /// Removes what has expired or been flushed by now.
    fn settle(&mut self) {
        if self.flush_at_ms.is_some_and(|at| at <= self.now_ms) {
            self.flush_at_ms = None;
            self.records.clear();
        }
        self.records.retain(|_, held| held.expires_at_ms.is_none_or(|at| at > self.now_ms));
    }

    /// The cache has put a value: it goes into the model, too, with a version that must be new.
    fn put(&mut self, key: &[u8], value: Vec<u8>, version: u64) {
        assert!(version > self.version_max, "versions of one shard grow");
        self.version_max = version;
        let (flags, expires_at_ms) = match self.records.get(key) {
            Some(held) => (held.flags, held.expires_at_ms),
            None => (0, None),
        };
        self.records.insert(key.to_vec(), Held { value, flags, expires_at_ms, version });
    }

    /// Like `put`, replacing the whole record.
    fn set(&mut self, key: &[u8], new: &NewRecord<'_>, version: u64) {
        self.records.remove(key);
        self.put(key, new.value.to_vec(), version);
        let held = self.records.get_mut(key).unwrap();
        (held.flags, held.expires_at_ms) = (new.flags, new.expires_at_ms);
    }

    fn number(&self, key: &[u8]) -> Option<Option<u64>> {
        let held = self.records.get(key)?;
        let text = String::from_utf8(held.value.trim_ascii_end().to_vec()).unwrap_or_default();
        let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        Some(text.parse().ok().filter(|_| is_digits && text.len() <= 20))
    }
}

fn read(cache: &Cache, key: &[u8]) -> Option<Held> {
    let mut value = Vec::new();
    let found = cache.get(key, &mut value).unwrap()?;
    assert_eq!(found.value_len, value.len());
    let (flags, expires_at_ms, version) = (found.flags, found.expires_at_ms, found.version);
    Some(Held { value, flags, expires_at_ms, version })
}

fn scan(cache: &Cache, records_max: usize) -> HashMap<Vec<u8>, Held> {
    let (mut all, mut page) = (HashMap::new(), ScanPage::default());
    let mut cursor = Some(Cursor::default());
    while let Some(at) = cursor {
        cursor = cache.scan(at, records_max, &mut page);
        for entry in page.entries() {
            let r = entry.record;
            let (flags, expires_at_ms, version) = (r.flags, r.expires_at_ms, r.version);
            let held = Held { value: r.value.to_vec(), flags, expires_at_ms, version };
            assert_eq!(all.insert(entry.key.to_vec(), held), None, "met twice");
        }
    }
    all
}

/// Checks that a conditional write happened if and only if the model says so.
fn agree(model: &mut Model, key: &[u8], holds: bool, new: &NewRecord<'_>, stored: Option<u64>) {
    assert_eq!(stored.is_some(), holds);
    if let Some(version) = stored {
        model.set(key, new, version);
    }
}

/// Runs one operation on both. `None`: it is no change of a value.
fn step(cache: &Cache, model: &mut Model, clock: &TestClock, key: &[u8], operation: Operation) {
    use Operation::*;
    let held = model.records.get(key).cloned();
    let old = held.as_ref().map(|held| held.value.clone());
    match operation {
        Get => assert_eq!(read(cache, key), held),
        Set(value, flags, expires_at_ms) => {
            let new = NewRecord { flags, expires_at_ms, ..NewRecord::of(&value) };
            let version = cache.set(key, new).unwrap();
            model.set(key, &new, version);
        }
        Add(value) => {
            let new = NewRecord::of(&value);
            agree(model, key, held.is_none(), &new, cache.add(key, new).unwrap());
        }
        Replace(value) => {
            let new = NewRecord::of(&value);
            agree(model, key, held.is_some(), &new, cache.replace(key, new).unwrap());
        }
        Cas(is_right, value) => {
            let new = NewRecord::of(&value);
            let version = held.as_ref().map_or(0, |held| held.version) * u64::from(is_right);
            match cache.cas(key, version, new).unwrap() {
                CasOutcome::Stored(version) => {
                    agree(model, key, held.is_some() && is_right, &new, Some(version));
                }
                CasOutcome::Exists => assert!(held.is_some() && !is_right),
                CasOutcome::NotFound => assert!(held.is_none()),
            }
        }
        SetIfValue(wanted, value) => {
            let new = NewRecord::of(&value);
            let stored = cache.set_if(key, Condition::Value(&wanted), new).unwrap();
            agree(model, key, old.as_ref() == Some(&wanted), &new, stored);
        }
        Append(suffix) => {
            let version = cache.append(key, &suffix).unwrap();
            assert_eq!(version.is_some(), held.is_some());
            version.inspect(|&v| model.put(key, [&old.unwrap()[..], &suffix].concat(), v));
        }
        Prepend(prefix) => {
            let version = cache.prepend(key, &prefix).unwrap();
            assert_eq!(version.is_some(), held.is_some());
            version.inspect(|&v| model.put(key, [&prefix[..], &old.unwrap()].concat(), v));
        }
        Delete => assert_eq!(cache.delete(key).unwrap(), model.records.remove(key).is_some()),
        Increment(by) => {
            let expected = model.number(key).map(|n| n.map(|n| n.wrapping_add(by)));
            count(cache, model, key, expected, cache.increment(key, by));
        }
        Decrement(by) => {
            let expected = model.number(key).map(|n| n.map(|n| n.saturating_sub(by)));
            count(cache, model, key, expected, cache.decrement(key, by));
        }
        IncrementSigned(by) => {
            let text = old.map_or(Some("0".to_owned()), |old| String::from_utf8(old).ok());
            let number = text.and_then(|t| t.parse::<i64>().ok().filter(|n| n.to_string() == t));
            let expected = number.and_then(|n| n.checked_add(by));
            assert_eq!(cache.increment_signed(key, by).ok(), expected);
            if let Some(new) = expected {
                let version = cache.metadata(key).unwrap().unwrap().version;
                model.put(key, new.to_string().into_bytes(), version);
            }
        }
        other => step_in_time(cache, model, clock, key, other),
    }
}

fn count(
    cache: &Cache,
    model: &mut Model,
    key: &[u8],
    expected: Option<Option<u64>>,
    result: Result<Option<u64>, tokaido_store::IncrementError>,
) {
    match (expected, result) {
        (None, Ok(None)) | (Some(None), Err(_)) => {}
        (Some(Some(expected)), Ok(Some(new))) => {
            assert_eq!(new, expected);
            let version = cache.metadata(key).unwrap().unwrap().version;
            model.put(key, new.to_string().into_bytes(), version);
        }
        (expected, result) => panic!("expected {expected:?}, not {result:?}"),
    }
}

/// The operations that involve time, or all records.
fn step_in_time(
    cache: &Cache,
    model: &mut Model,
    clock: &TestClock,
    key: &[u8],
    operation: Operation,
) {
    use Operation::*;
    let touch = |model: &mut Model, expires_at_ms| {
        let held = model.records.get_mut(key)?;
        held.expires_at_ms = expires_at_ms;
        Some(held.clone())
    };
    match operation {
        GetAndTouch(expires_at_ms) => {
            let mut value = Vec::new();
            let found = cache.get_and_touch(key, expires_at_ms, &mut value).unwrap();
            let expected = touch(model, expires_at_ms);
            assert_eq!(found.map(|_| value), expected.map(|held| held.value));
        }
        Touch(expires_at_ms) => {
            let expected = touch(model, expires_at_ms).is_some();
            assert_eq!(cache.touch(key, expires_at_ms).unwrap(), expected);
        }
        Flush => {
            cache.flush_all(0);
            model.flush_at_ms = None;
            model.records.clear();
        }
        FlushLater(delay_ms) => {
            cache.flush_all(delay_ms);
            model.flush_at_ms = Some(model.now_ms + delay_ms);
        }
        RemoveExpired(records_max) => {
            cache.remove_expired(records_max);
        }
        Advance(ms) => {
            clock.advance(ms);
            model.now_ms += ms;
        }
        Scan(records_max) => assert_eq!(scan(cache, records_max), model.records),
        other => unreachable!("{other:?} is for `step`"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_cache_does_what_a_map_with_memcacheds_rules_does(
        steps in proptest::collection::vec((0..60u8, operations()), 1..600),
    ) {
        let clock = TestClock::at(0);
        let cache = clocked_cache(64 << 20, 1, clock.clone());
        let mut model = Model::default();
        for (key, operation) in steps {
            model.settle();
            step(&cache, &mut model, &clock, &[b'k', key], operation);
        }
        model.settle();
        prop_assert_eq!(scan(&cache, 10), model.records);
        prop_assert_eq!(cache.statistics().evicted, 0);
    }
}
