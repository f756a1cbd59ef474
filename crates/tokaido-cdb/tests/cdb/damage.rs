//! Damaged, truncated and hostile files: refused, or read without harm.

use proptest::prelude::*;
use tokaido_cdb::{Damaged, OpenError, Reader, View};

use crate::{
    checks,
    support::{Pair, encode_pairs, pair},
};

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let bytes = || prop::collection::vec(b'a'..b'f', 0..4);
    prop::collection::vec((bytes(), bytes()), 0..12)
}

/// Numbers at the edge of something, or just anywhere in a small file.
fn number() -> impl Strategy<Value = u32> {
    let edge =
        [0, 1, 7, 8, 2047, 2048, 2049, 1 << 29, 1 << 31, u32::MAX - 8, u32::MAX - 1, u32::MAX];
    prop_oneof![prop::sample::select(edge.to_vec()), 2040..2500u32, any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_file_that_was_cut_is_refused(pairs in pairs()) {
        let bytes = encode_pairs(&pairs);
        prop_assert_eq!(checks::check_bytes(&bytes), Ok(()));
        for len in (0..bytes.len()).filter(|len| len % 97 == 0 || *len > 2000) {
            prop_assert!(View::new(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn changed_numbers_do_no_harm(
        pairs in pairs(),
        changes in prop::collection::vec(
            (any::<bool>(), any::<prop::sample::Index>(), number()),
            1..6,
        ),
    ) {
        let mut bytes = encode_pairs(&pairs);
        for (is_in_header, place, number) in changes {
            let (header, rest) = bytes.split_at_mut(2048);
            let part = if is_in_header || rest.is_empty() { header } else { rest };
            let place = place.index(part.len() - 3);
            part[place..place + 4].copy_from_slice(&number.to_le_bytes());
        }
        let _ = checks::check_bytes(&bytes);
    }

    #[test]
    fn noise_does_no_harm(
        table in (number(), number()),
        noise in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let pair = [table.0.to_le_bytes(), table.1.to_le_bytes()].concat();
        let mut bytes = pair.repeat(256);
        bytes.extend(noise);
        let _ = checks::check_bytes(&bytes);
    }
}

/// A file whose only table has every slot filled with the same record.
fn full_table(key: &[u8], hash: u32) -> Vec<u8> {
    let record = [&(key.len() as u32).to_le_bytes()[..], &1u32.to_le_bytes(), key, b"v"].concat();
    let tables = (2048 + record.len() as u32).to_le_bytes();
    let header = [tables, 64u32.to_le_bytes()].concat().repeat(256);
    let slot = [hash.to_le_bytes(), 2048u32.to_le_bytes()].concat();
    [header, record, slot.repeat(64)].concat()
}

#[test]
fn a_table_without_an_empty_slot_is_searched_once() {
    let other = full_table(b"key", 0);
    let view = View::new(&other).unwrap();
    assert_eq!(view.get(b"key"), Ok(None));
    let hash = b"key".iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(*byte));
    let same = full_table(b"key", hash);
    let view = View::new(&same).unwrap();
    assert_eq!(view.get_all(b"key").count(), 64);
    assert_eq!(view.get(b"kex"), Ok(None));
}

#[test]
fn the_first_fault_is_named() {
    let good = encode_pairs(&[pair("key", "value")]);
    let with = |place: usize, number: u32| {
        let mut bytes = good.clone();
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let opened = |bytes: &[u8]| View::new(bytes).map(drop);
    let what = |what, position| Err(Damaged { what, position });
    assert_eq!(opened(&good[..2047]), what("the header is cut short", 2047));
    assert_eq!(opened(&with(0, 0)), what("the header was not written", 0));
    assert_eq!(opened(&with(0, 2047)), what("the header was not written", 0));
    let behind = "a hash table behind the end of the file";
    assert_eq!(opened(&with(0, 9999)), what(behind, good.len() as u64));
    assert_eq!(opened(&with(8, 9999)), Ok(()), "a table without slots may be anywhere");

    let hash = b"key".iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(*byte));
    let table = hash as usize % 256 * 8;
    assert_eq!(opened(&with(table, 2050)), what("a hash table among the records", table as u64));
    assert_eq!(opened(&with(table + 4, 3)), what(behind, good.len() as u64));

    let record = |bytes: &[u8]| {
        let got = View::new(bytes).unwrap().get(b"key").map(drop);
        let iterated = View::new(bytes).unwrap().iter().find_map(Result::err);
        assert_eq!(got.clone().err(), iterated);
        got
    };
    assert_eq!(record(&with(2048, 9)), what("a record whose key is too long", 2048));
    assert_eq!(record(&with(2052, 6)), what("a record whose value is too long", 2048));
    let slot = (2048 + 16..good.len()).step_by(8).find(|at| good[*at..*at + 8] != [0; 8]).unwrap();
    for position in [1, 2047, 2060, 99_999, u32::MAX] {
        let bytes = with(slot + 4, position);
        let got = View::new(&bytes).unwrap().get(b"key");
        let expected = Damaged {
            what: if position == 2060 {
                "a record whose key is too long"
            } else {
                "a record that is not among the records"
            },
            position: u64::from(position),
        };
        assert_eq!(got.map_err(|damaged| damaged.position), Err(expected.position));
        if position != 2060 {
            assert_eq!(View::new(&bytes).unwrap().get(b"key"), Err(expected));
        }
    }
}

#[test]
fn a_file_that_is_no_cdb_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let error = || Reader::open(&path).unwrap_err();
    assert!(matches!(error(), OpenError::Io { .. }));
    std::fs::write(&path, b"").unwrap();
    assert_eq!(
        error().to_string(),
        format!(
            "{}: no sound cdb file: the header is cut short at byte 0; make the file anew from its \
             source",
            path.display()
        )
    );
    std::fs::write(&path, "text ".repeat(1000)).unwrap();
    assert!(matches!(error(), OpenError::Damaged { .. }), "{}", error());
    std::fs::write(&path, vec![0; 5000]).unwrap();
    assert!(error().to_string().contains("the header was not written"), "{}", error());
    let error = Reader::open(directory.path()).unwrap_err();
    assert!(error.to_string().ends_with("it is no file"), "{error}");
}
