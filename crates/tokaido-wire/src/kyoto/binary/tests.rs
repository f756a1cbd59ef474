//! The binary protocol against its specification, in pieces, and with random bytes.

use proptest::prelude::*;

use super::*;

const LEN_MAX: usize = 1 << 16;

/// A `set_bulk` of these records.
fn set_bulk(flags: u32, records: &[(u16, &[u8], &[u8], i64)]) -> Vec<u8> {
    let mut bytes = vec![0xb8];
    bytes.extend(flags.to_be_bytes());
    bytes.extend((records.len() as u32).to_be_bytes());
    for (database, key, value, xt) in records {
        bytes.extend(database.to_be_bytes());
        bytes.extend((key.len() as u32).to_be_bytes());
        bytes.extend((value.len() as u32).to_be_bytes());
        bytes.extend(xt.to_be_bytes());
        bytes.extend([*key, *value].concat());
    }
    bytes
}

#[track_caller]
fn complete(input: &[u8]) -> (usize, bool, Request<'_>) {
    match Decoder::new(LEN_MAX).decode(input) {
        Ok(Decoded::Complete { consumed, is_quiet, request }) => (consumed, is_quiet, request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_what_the_specification_says() {
    let set = set_bulk(1, &[(0, b"k", b"value", 10), (7, b"", b"", i64::MAX)]);
    let (consumed, is_quiet, request) = complete(&set);
    let Request::SetBulk(items) = request else { panic!("{request:?}") };
    assert_eq!((consumed, is_quiet, items.left()), (set.len(), true, 2));
    let expected = [
        Item { database: 0, key: b"k", value: b"value", xt: 10 },
        Item { database: 7, key: b"", value: b"", xt: i64::MAX },
    ];
    assert_eq!(items.collect::<Vec<_>>(), expected);

    for (magic, rest) in [(0xb9, "next"), (0xba, "")] {
        let mut bytes = vec![magic, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 2, b'a', b'b'];
        bytes.extend(rest.as_bytes());
        let (consumed, is_quiet, request) = complete(&bytes);
        let (Request::RemoveBulk(items) | Request::GetBulk(items)) = request else { panic!() };
        assert_eq!((consumed, is_quiet), (17, false));
        let items: Vec<_> = items.map(|item| (item.database, item.key)).collect();
        assert_eq!(items, [(3, &b"ab"[..])]);
    }

    let script = b"\xb4\0\0\0\0\0\0\0\x04\0\0\0\x01echo\0\0\0\x01\0\0\0\x02kvv";
    let (consumed, _, request) = complete(script);
    let Request::PlayScript { name, mut pairs } = request else { panic!("{request:?}") };
    let pair = pairs.next().expect("a pair");
    assert_eq!(
        (consumed, name, pair.key, pair.value),
        (script.len(), &b"echo"[..], &b"k"[..], &b"vv"[..])
    );

    let replication = b"\xb1\0\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    assert!(matches!(complete(replication), (15, false, Request::Replication)));
}

#[test]
fn what_is_too_long_is_refused_before_it_comes() {
    let too_long = Err(BinaryError::TooLong { max: 100 });
    let decode = |input: &[u8]| Decoder::new(100).decode(input).map(|_| ());
    assert_eq!(decode(b"\xba\0\0\0\0\xff\xff\xff\xff"), too_long, "a count");
    assert_eq!(decode(b"\xba\0\0\0\0\0\0\0\x01\0\0\xff\xff\xff\xff"), too_long, "a key");
    assert_eq!(decode(b"\xb4\0\0\0\0\xff\xff\xff\xff\0\0\0\0"), too_long, "a name");
    let largest = set_bulk(0, &[(0, b"k", &[b'v'; 100 - 9 - 18 - 1], 0)]);
    assert_eq!((largest.len(), decode(&largest)), (100, Ok(())));
    assert_eq!(decode(b"\xb2"), Err(BinaryError::Magic(0xb2)));
}

#[test]
fn replies_are_what_the_specification_says() {
    let mut output = b"before".to_vec();
    hits(0xb8, 2, &mut output);
    let mut list = ListWriter::begin(0xba, &mut output);
    list.record(&Item { database: 1, key: b"k", value: b"vv", xt: XT_MAX }, &mut output);
    list.end(&mut output);
    let mut list = ListWriter::begin(0xb4, &mut output);
    list.pair(b"a", b"", &mut output);
    list.end(&mut output);
    let expected = b"before\xb8\0\0\0\x02\
        \xba\0\0\0\x01\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\xffkvv\
        \xb4\0\0\0\x01\0\0\0\x01\0\0\0\0a";
    assert_eq!(output, expected);
}

proptest! {
    /// However the bytes arrive, the request is the same, and complete only at its last byte.
    #[test]
    fn a_request_is_whole_at_its_last_byte(
        records in prop::collection::vec((any::<u16>(), any::<Vec<u8>>(), any::<Vec<u8>>(), any::<i64>()), 0..5),
        step in 1_usize..9,
    ) {
        let records: Vec<_> =
            records.iter().map(|(d, k, v, xt)| (*d, k.as_slice(), v.as_slice(), *xt)).collect();
        let bytes = set_bulk(0, &records);
        let mut decoder = Decoder::new(LEN_MAX);
        let mut come = 0;
        while come < bytes.len() {
            let decoded = decoder.decode(&bytes[..come]);
            prop_assert!(matches!(decoded, Ok(Decoded::Incomplete)), "{come}: {decoded:?}");
            come += step;
        }
        let Ok(Decoded::Complete { consumed, request: Request::SetBulk(items), .. }) =
            decoder.decode(&bytes) else { panic!("not complete") };
        prop_assert_eq!(consumed, bytes.len());
        let found: Vec<_> = items.map(|i| (i.database, i.key, i.value, i.xt)).collect();
        prop_assert_eq!(found, records);
    }

    #[test]
    fn garbage_is_no_panic(magic in prop::sample::select(MAGICS.to_vec()), rest: Vec<u8>) {
        let bytes = [&[magic], &rest[..]].concat();
        if let Ok(Decoded::Complete { consumed, request, .. }) = Decoder::new(LEN_MAX).decode(&bytes) {
            prop_assert!(consumed <= bytes.len());
            if let Request::SetBulk(items) | Request::GetBulk(items) = request {
                prop_assert_eq!(items.clone().count(), items.left());
            }
        }
    }
}
