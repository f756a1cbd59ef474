//! Files that the writer makes, compared with a vector of pairs: the bytes, and what reads find.

use std::collections::HashMap;

use proptest::prelude::*;
use tokaido_cdb::{Duplicates, Put, Reader, Record, Writer};

use crate::{
    checks,
    support::{Pair, encode, make, model, options, pair},
};

const ALL: [Duplicates; 6] = [
    Duplicates::Keep,
    Duplicates::Report,
    Duplicates::Refuse,
    Duplicates::Replace,
    Duplicates::ZeroFill,
    Duplicates::KeepFirst,
];

/// A few different keys, some of them empty or long, and values of various lengths, some of them
/// around the length of the writer's buffer.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let key = prop_oneof![
        8 => prop::collection::vec(b'a'..b'd', 0..3),
        2 => prop::collection::vec(any::<u8>(), 0..6),
        1 => (b'x'..=b'z', 4090..4100usize).prop_map(|(byte, len)| long_key(byte, len)),
    ];
    let value = prop_oneof![
        16 => prop::collection::vec(any::<u8>(), 0..12),
        1 => (any::<u8>(), (250 << 10)..(262usize << 10)).prop_map(|(byte, len)| vec![byte; len]),
    ];
    prop::collection::vec((key, value), 0..40)
}

/// A key that is not periodic.
fn long_key(byte: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| byte ^ (at / 64) as u8).collect()
}

fn check(pairs: &[Pair], duplicates: Duplicates) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let said = make(&path, pairs, &options(duplicates));
    let expected = model(pairs, duplicates);
    assert!(std::fs::read(&path).unwrap() == encode(&expected), "other bytes for {duplicates:?}");

    for (number, (key, _)) in pairs.iter().enumerate() {
        let is_duplicate = pairs[..number].iter().any(|earlier| earlier.0 == *key);
        let is_looked_for = duplicates != Duplicates::Keep;
        let put = if is_duplicate && is_looked_for { Put::Duplicate } else { Put::Added };
        assert_eq!(said[number], put);
    }

    let reader = Reader::open(&path).unwrap();
    let records: Vec<Record<'_>> = reader.iter().map(Result::unwrap).collect();
    let all = expected.iter().map(|record| Record { key: &record.key, value: &record.value });
    assert!(records == all.collect::<Vec<_>>());
    for (key, _) in pairs {
        let values: Vec<&[u8]> = reader.get_all(key).map(Result::unwrap).collect();
        let found = expected.iter().filter(|record| record.is_found && record.key == *key);
        let found: Vec<&[u8]> = found.map(|record| &record.value[..]).collect();
        assert!(values == found);
        assert_eq!(reader.get(key).unwrap(), found.first().copied());
    }
    assert_eq!(reader.get(b"a key that is not there").unwrap(), None);
    assert_eq!(reader.statistics().unwrap().records, expected.len() as u64);
    checks::check_bytes(&std::fs::read(&path).unwrap()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn files_are_what_the_model_says(pairs in pairs()) {
        for duplicates in ALL {
            check(&pairs, duplicates);
        }
    }
}

#[test]
fn a_file_may_have_no_records() {
    for duplicates in ALL {
        check(&[], duplicates);
    }
}

#[test]
fn long_keys_are_compared_to_the_end() {
    let keys = [4095, 4096, 4097, 9000].map(|len| long_key(b'k', len));
    let pairs: Vec<Pair> = keys.iter().chain(&keys).map(|key| pair(key, "value")).collect();
    for duplicates in ALL {
        check(&pairs, duplicates);
    }
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    let mut by_hash: HashMap<u32, Vec<[u8; 2]>> = HashMap::new();
    for key in (0..=u16::MAX).map(u16::to_be_bytes) {
        let hash = key.iter().fold(5381u32, |hash, byte| (hash * 33) ^ u32::from(*byte));
        by_hash.entry(hash).or_default().push(key);
    }
    let same_hash = by_hash.values().max_by_key(|keys| keys.len()).unwrap();
    assert!(same_hash.len() > 2, "{same_hash:?}");
    let pairs: Vec<Pair> = same_hash.iter().cycle().take(20).map(|key| pair(key, key)).collect();
    for duplicates in ALL {
        check(&pairs, duplicates);
    }
}

#[test]
fn many_records_and_a_value_of_megabytes() {
    let mut pairs: Vec<Pair> =
        (0..20_000u32).map(|n| pair(n.to_string(), (n * 7).to_string())).collect();
    pairs.push(pair("large", vec![b'v'; 3 << 20]));
    check(&pairs, Duplicates::Keep);
    pairs.push(pair("large", "small"));
    pairs.push(pair("17", "again"));
    let directory = tempfile::tempdir().unwrap();
    for duplicates in [Duplicates::Replace, Duplicates::ZeroFill] {
        let path = directory.path().join("a.cdb");
        let mut writer = Writer::create(&path, &options(duplicates)).unwrap();
        for (key, value) in &pairs {
            writer.put(key, value).unwrap();
        }
        assert_eq!(writer.records(), 20_001);
        writer.finish().unwrap();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.get(b"large").unwrap(), Some(&b"small"[..]));
        assert_eq!(reader.get(b"17").unwrap(), Some(&b"again"[..]));
        assert_eq!(reader.get(b"18").unwrap(), Some(&b"126"[..]));
        assert_eq!(reader.get_all(b"17").count(), 1);
    }
}
