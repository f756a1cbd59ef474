//! Kyoto Tycoon's codecs: the fuzz targets' checks, on generated streams and on the fuzzer's
//! corpus.

use proptest::prelude::*;

#[path = "checks/kyoto.rs"]
mod checks;
mod corpus;

/// A request whose lengths are right or nearly so.
fn near_request() -> impl Strategy<Value = Vec<u8>> {
    let item = prop::collection::vec(any::<u8>(), 0..9);
    let magic = prop::sample::select(vec![0xb1_u8, 0xb4, 0xb8, 0xb9, 0xba, 0xba, 0xb8]);
    let off = prop::sample::select(vec![0_u32, 0, 0, 0, 0, 1, u32::MAX]);
    (magic, prop::collection::vec((item.clone(), item), 0..4), off).prop_map(
        |(magic, items, off)| {
            let len = |bytes: &[u8]| (bytes.len() as u32).wrapping_add(off).to_be_bytes();
            let mut bytes = vec![magic, 0, 0, 0, off as u8 & 1];
            if magic == 0xb4 {
                bytes.extend(3_u32.to_be_bytes());
            }
            bytes.extend((items.len() as u32).to_be_bytes());
            if magic == 0xb4 {
                bytes.extend(b"abc");
            }
            for (key, value) in items {
                if magic != 0xb4 {
                    bytes.extend([0, 1]);
                }
                bytes.extend(len(&key));
                if matches!(magic, 0xb4 | 0xb8) {
                    bytes.extend(len(&value));
                }
                if magic == 0xb8 {
                    bytes.extend(7_i64.to_be_bytes());
                }
                bytes.extend(&key);
                if matches!(magic, 0xb4 | 0xb8) {
                    bytes.extend(&value);
                }
            }
            bytes
        },
    )
}

proptest! {
    #[test]
    fn binary_holds_for_bytes_near_the_protocol(
        requests in prop::collection::vec(near_request(), 0..5), cut in 0..20_usize,
    ) {
        let data = requests.concat();
        checks::check_binary(&data[..data.len().saturating_sub(cut)]);
    }

    #[test]
    fn binary_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_binary(&data);
    }

    #[test]
    fn columns_hold_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_columns(&data);
    }

    #[test]
    fn columns_hold_for_bytes_near_the_format(data in "[ -~]([a-c=%&;+/]{0,3}[\\t\\n\\r]?){0,30}") {
        checks::check_columns(data.as_bytes());
    }
}

#[test]
fn binary_holds_for_the_corpus() {
    corpus::check("kyoto_binary", 5, checks::check_binary);
}

#[test]
fn columns_hold_for_the_corpus() {
    corpus::check("kyoto_columns", 5, checks::check_columns);
}
