//! Tokyo Tyrant's codecs: the fuzz targets' checks, on generated streams and on the fuzzer's
//! corpora.

use proptest::prelude::*;
use tokaido_wire::tyrant::{COMMANDS, Field};

#[path = "checks/tyrant.rs"]
mod checks;
mod corpus;

/// A request whose lengths are right or nearly so.
fn near_request() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..9);
    let off = prop::sample::select(vec![0_u32, 0, 0, 0, 0, 0, 1, u32::MAX]);
    let parts = prop::collection::vec(bytes(), 3);
    let items = prop::collection::vec(bytes(), 0..4);
    (prop::sample::select(COMMANDS), parts, items, off, any::<i64>()).prop_map(
        |(command, parts, items, off, number)| {
            let len = |len: usize| (len as u32).wrapping_add(off).to_be_bytes();
            let (mut request, mut behind) = (vec![0xc8, command.id], Vec::new());
            let mut parts = parts.iter();
            for field in command.fields {
                match field {
                    Field::Part | Field::Name => {
                        let part = parts.next().expect("three are enough");
                        request.extend(len(part.len()));
                        behind.extend(part);
                    }
                    Field::Int | Field::Natural => request.extend((number as u32).to_be_bytes()),
                    Field::Long => request.extend(number.to_be_bytes()),
                    Field::Count => {
                        request.extend(len(items.len()));
                        for item in &items {
                            behind.extend(len(item.len()));
                            behind.extend(item);
                        }
                    }
                }
            }
            [request, behind].concat()
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
    fn an_update_log_holds_for_bytes_near_one(
        requests in prop::collection::vec((near_request(), any::<u64>(), 0..3_u32), 0..4),
        cut in 0..20_usize,
    ) {
        let entry = |(request, time_us, off): &(Vec<u8>, u64, u32)| {
            let len = (request.len() as u32 + 1).wrapping_sub(*off).to_be_bytes();
            [&[0xc9][..], &time_us.to_be_bytes(), &[0; 4], &len, request, &[0]].concat()
        };
        let data: Vec<u8> = requests.iter().flat_map(entry).collect();
        checks::check_update_log(&data[..data.len().saturating_sub(cut)]);
    }

    #[test]
    fn text_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_text(&data);
    }

    #[test]
    fn text_holds_for_lines_near_the_protocol(
        data in "((set|add|append) k 0 0 [0-5]( noreply)?\r\n[v\r\n]{0,5}\r\n|(get|incr|delete|stats)( [k0-9-]{1,3}){0,3}\r?\n){0,9}",
    ) {
        checks::check_text(data.as_bytes());
    }
}

#[test]
fn binary_holds_for_the_corpus() {
    corpus::check("tyrant_binary", 5, checks::check_binary);
}

#[test]
fn an_update_log_holds_for_the_corpus() {
    corpus::check("tyrant_update_log", 2, checks::check_update_log);
}

#[test]
fn text_holds_for_the_corpus() {
    corpus::check("tyrant_text", 5, checks::check_text);
}
