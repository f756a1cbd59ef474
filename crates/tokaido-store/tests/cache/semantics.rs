//! What each operation does, as in memcached, and what is refused.

use tokaido_store::{
    Condition, IncrementError, NewRecord, ReadError, WriteError,
    cache::{Cache, CasOutcome, Cursor, Options, OptionsError, ScanPage},
    limits,
};

use crate::support::{cache, get, value};

const MIB: usize = 1 << 20;

fn of(value: &[u8]) -> NewRecord<'_> {
    NewRecord::of(value)
}

#[test]
fn conditional_writes_ask_for_what_is_there() {
    let cache = cache(MIB, 1);
    assert_eq!(cache.replace(b"k", of(b"1")), Ok(None));
    assert_eq!(cache.append(b"k", b"1"), Ok(None));
    assert_eq!(cache.prepend(b"k", b"1"), Ok(None));
    assert_eq!(cache.cas(b"k", 1, of(b"1")), Ok(CasOutcome::NotFound));
    assert_eq!(get(&cache, b"k"), None);

    let first = cache.add(b"k", of(b"1")).unwrap().unwrap();
    assert_eq!(cache.add(b"k", of(b"2")), Ok(None));
    let second = cache.replace(b"k", of(b"2")).unwrap().unwrap();
    assert!(second > first);
    assert_eq!(cache.cas(b"k", first, of(b"3")), Ok(CasOutcome::Exists));
    assert_eq!(value(&cache, b"k").unwrap(), b"2");
    let CasOutcome::Stored(third) = cache.cas(b"k", second, of(b"3")).unwrap() else { panic!() };
    assert_eq!(get(&cache, b"k").unwrap().1.version, third);

    assert_eq!(cache.set_if(b"k", Condition::Value(b"2"), of(b"4")), Ok(None));
    assert!(cache.set_if(b"k", Condition::Value(b"3"), of(b"4")).unwrap().is_some());
    assert_eq!(cache.delete_version(b"k", third), Ok(CasOutcome::Exists));
    assert_eq!(cache.delete(b"k"), Ok(true));
    assert_eq!(cache.delete(b"k"), Ok(false));
}

#[test]
fn a_version_is_never_used_twice() {
    let cache = cache(MIB, 4);
    let mut versions = Vec::new();
    for round in 0..3 {
        for n in 0..100u32 {
            versions.push(cache.set(&n.to_le_bytes(), of(b"v")).unwrap());
        }
        if round == 1 {
            cache.flush_all(0);
        }
    }
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), count);
}

#[test]
fn append_and_prepend_keep_flags_and_expiry() {
    let cache = cache(MIB, 1);
    let new = NewRecord { flags: 7, ..NewRecord::of(b"b").expiring(Some(5_000)) };
    let set = cache.set(b"k", new).unwrap();
    let appended = cache.append(b"k", b"c").unwrap().unwrap();
    let prepended = cache.prepend(b"k", b"a").unwrap().unwrap();
    assert!(set < appended && appended < prepended);
    for _ in 0..100 {
        cache.append(b"k", b"0123456789").unwrap();
    }
    let (value, metadata) = get(&cache, b"k").unwrap();
    assert_eq!(value, [&b"abc"[..], &b"0123456789".repeat(100)].concat());
    assert_eq!((metadata.flags, metadata.expires_at_ms), (7, Some(5_000)));
}

#[test]
fn unsigned_counters_wrap_above_and_stop_at_zero() {
    let cache = cache(MIB, 1);
    assert_eq!(cache.increment(b"k", 1).unwrap(), None);
    assert_eq!(cache.decrement(b"k", 1).unwrap(), None);
    let new = NewRecord { flags: 7, ..NewRecord::of(b"9").expiring(Some(5_000)) };
    let set = cache.set(b"k", new).unwrap();
    assert_eq!(cache.increment(b"k", 1).unwrap(), Some(10));
    let (value, metadata) = get(&cache, b"k").unwrap();
    assert_eq!((&value[..], metadata.flags, metadata.expires_at_ms), (&b"10"[..], 7, Some(5_000)));
    assert!(metadata.version > set);
    assert_eq!(cache.decrement(b"k", 11).unwrap(), Some(0));
    assert_eq!(cache.increment(b"k", u64::MAX).unwrap(), Some(u64::MAX));
    assert_eq!(cache.increment(b"k", 2).unwrap(), Some(1));

    cache.set(b"k", of(b"x")).unwrap();
    assert!(matches!(cache.increment(b"k", 1), Err(IncrementError::NotANumber)));
    assert_eq!(get(&cache, b"k").unwrap().0, b"x");
}

#[test]
fn signed_counters_are_made_and_do_not_overflow() {
    let cache = cache(MIB, 1);
    assert_eq!(cache.increment_signed(b"k", -3).unwrap(), -3);
    assert_eq!(cache.increment_signed(b"k", 5).unwrap(), 2);
    assert_eq!(value(&cache, b"k").unwrap(), b"2");
    assert!(matches!(cache.increment_signed(b"k", i64::MAX), Err(IncrementError::Overflow)));
    assert_eq!(cache.increment_signed(b"k", i64::MIN).unwrap(), i64::MIN + 2);
    cache.set(b"k", of(b"18446744073709551615")).unwrap();
    assert!(matches!(cache.increment_signed(b"k", 1), Err(IncrementError::NotANumber)));
}

#[test]
fn many_keys_are_read_in_order() {
    let cache = cache(MIB, 4);
    cache.set(b"a", of(b"1")).unwrap();
    cache.set(b"c", NewRecord { flags: 3, ..of(b"33") }).unwrap();
    let mut seen = Vec::new();
    let mut buffer = Vec::new();
    let keys = [&b"a"[..], b"b", b"c"];
    cache
        .get_many(&keys, &mut buffer, |i, record| {
            // No lock is held here, so the cache may be used.
            cache.set(b"a", of(b"2")).unwrap();
            seen.push((i, record.map(|r| (r.value.to_vec(), r.flags))));
        })
        .unwrap();
    let expected = [(0, Some((b"1".to_vec(), 0))), (1, None), (2, Some((b"33".to_vec(), 3)))];
    assert_eq!(seen, expected);
}

#[test]
fn the_longest_keys_and_values_fit_and_longer_ones_are_refused() {
    let cache = cache(256 * MIB, 1);
    let key = vec![b'k'; limits::KEY_LEN_MAX];
    let long = vec![b'v'; limits::VALUE_LEN_MAX + 1];
    cache.set(&key, of(&long[1..])).unwrap();
    assert_eq!(value(&cache, &key).unwrap(), long[1..]);

    let error = WriteError::ValueLength { len: long.len(), max: limits::VALUE_LEN_MAX };
    assert_eq!(cache.set(&key, of(&long)), Err(error.clone()));
    assert_eq!(cache.append(&key, b"x"), Err(error));
    for key in [&b""[..], &[0; limits::KEY_LEN_MAX + 1]] {
        let error = ReadError::KeyLength { len: key.len(), max: limits::KEY_LEN_MAX };
        assert_eq!(cache.get(key, &mut Vec::new()), Err(error.clone()));
        let error = WriteError::from(error);
        assert_eq!(cache.set(key, of(b"")), Err(error.clone()));
        assert_eq!(cache.append(key, b""), Err(error.clone()));
        assert_eq!(cache.delete(key), Err(error.clone()));
        assert_eq!(cache.touch(key, None), Err(error));
        assert!(matches!(cache.increment(key, 1), Err(IncrementError::Write(WriteError::Read(_)))));
    }
    assert_eq!(value(&cache, &key).unwrap().len(), limits::VALUE_LEN_MAX, "what was there stays");
}

#[test]
fn a_record_longer_than_half_a_shard_is_refused_and_one_as_long_fits() {
    for shards in [1, 2, 16] {
        let cache = cache(MIB, shards);
        let refused = cache.set(b"k", of(&vec![b'v'; MIB / 2])).unwrap_err();
        let WriteError::RecordTooLarge { len, max } = refused else { panic!("{refused}") };
        assert!(len > max && max > MIB / shards / 4, "{refused}");
        assert!(refused.to_string().contains("raise its `bytes_max`"));
        let longest = vec![b'v'; max - 25];
        for n in 0..100u32 {
            cache.set(&n.to_le_bytes()[..1], of(&longest)).unwrap();
            assert_eq!(value(&cache, &n.to_le_bytes()[..1]).unwrap(), longest);
            assert!(cache.statistics().bytes_used <= MIB as u64);
        }
        assert!(matches!(cache.append(&[99], &[0; 8]), Err(WriteError::RecordTooLarge { .. })));
        assert_eq!(value(&cache, &[99]).unwrap(), longest);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refused = |bytes_max, shards| {
        let options = Options { bytes_max, shards, ..Options::default() };
        Cache::new(options).err().unwrap()
    };
    assert!(matches!(refused(MIB, 3), OptionsError::Shards { .. }));
    assert!(matches!(refused(1000, 0), OptionsError::TooSmall { .. }));
    assert!(matches!(refused(1 << 40, 1), OptionsError::TooLarge { .. }));
}

#[test]
fn a_scan_meets_every_record_once_when_nobody_writes() {
    let cache = cache(8 * MIB, 4);
    for n in 0..10_000u32 {
        cache.set(&n.to_le_bytes(), of(&n.to_be_bytes())).unwrap();
    }
    let (mut seen, mut pages) = (Vec::new(), 0);
    let (mut cursor, mut page) = (Some(Cursor::default()), ScanPage::default());
    while let Some(at) = cursor {
        cursor = cache.scan(Cursor::from_number(at.to_number()), 100, &mut page);
        pages += 1;
        assert!(page.entries().count() < 150);
        for entry in page.entries() {
            let n = u32::from_le_bytes(entry.key.try_into().unwrap());
            assert_eq!(entry.record.value, n.to_be_bytes());
            seen.push(n);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
    assert!(pages > 60);
    assert_eq!(cache.scan(Cursor::from_number(u64::MAX), 10, &mut page), None);
}

#[test]
fn a_cache_takes_no_longer_keys_and_values_than_it_was_told() {
    let options = Options { key_len_max: 4, value_len_max: 5, ..Options::default() };
    let cache = Cache::new(options).unwrap();
    let key_error = ReadError::KeyLength { len: 5, max: 4 };
    assert_eq!(cache.set(b"12345", NewRecord::of(b"")), Err(key_error.into()));
    assert!(cache.increment_signed(b"12345", 1).is_err());
    let value_error = WriteError::ValueLength { len: 6, max: 5 };
    assert_eq!(cache.set(b"1234", NewRecord::of(b"123456")), Err(value_error.clone()));
    cache.set(b"1234", NewRecord::of(b"99999")).unwrap();
    assert_eq!(cache.append(b"1234", b"6"), Err(value_error));
    assert!(cache.increment_signed(b"1234", 1).is_err());
    assert_eq!(value(&cache, b"1234").unwrap(), b"99999");
}
