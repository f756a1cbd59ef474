//! The codec of Redis's values: the fuzz target's check, on generated payloads and on the fuzzer's
//! corpus, whose payloads were made by Redis.

use proptest::prelude::*;

#[path = "checks/rdb.rs"]
mod checks;
mod corpus;

/// A type byte, a count, and then lengths, packed forms, texts and any bytes.
fn near_value() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(vec![
            &b"\x01a"[..],
            b"\xc0\x07",
            b"\xc3\x06\x08\x02abc\x60\x02",
            b"\x0a\x0a\0\0\0\x01\0\x81y\x02\xff",
            b"\x0e\x0e\0\0\0\x0a\0\0\0\x01\0\0\x01a\xff",
            b"\x0c\x04\0\0\0\x01\0\0\0\x07\0\0\0",
            b"\x09\x01\x01a\x01\0x\xff",
            b"\x02\x00\x00\x00\x00\x00\x00\xf0\x3f",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    (0_u8..22, 0_u8..4, prop::collection::vec(part, 0..8))
        .prop_map(|(kind, count, parts)| [&[kind, count][..], &parts.concat()].concat())
}

proptest! {
    #[test]
    fn it_holds_for_bytes_near_the_format(data in near_value(), cut in 0..6_usize) {
        checks::check(&data[..data.len().saturating_sub(cut)]);
        // Packed forms directly follow the type byte.
        let without_count = [&data[..1], &data[2..]].concat();
        checks::check(&without_count);
    }

    #[test]
    fn it_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check(&data);
    }
}

#[test]
fn it_holds_for_the_corpus() {
    corpus::check("rdb", 15, checks::check);
}
