//! The fuzz targets' checks, on generated streams and on the fuzzer's corpus; and that each
//! side reads what the other writes.

use proptest::prelude::*;
use tokaido_wire::resp::{
    Decoded, Limits, Reply, ReplyDecoder, RequestDecoder, Version, encode_command,
};

#[path = "checks/resp.rs"]
mod checks;
mod corpus;

fn arguments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6)
}

/// Bytes that resemble the protocol more often than random ones would.
fn near_protocol() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => "[-*$+:_,#(!=%~>|]{1}(-1|[0-4]|inf|t|f)?\r\n".prop_map(String::into_bytes),
        4 => arguments().prop_map(|arguments| {
            let mut out = Vec::new();
            encode_command(&mut out, &arguments);
            out
        }),
        2 => "[a-c \"'\\\\]{0,6}\r?\n".prop_map(String::into_bytes),
        2 => reply().prop_map(|reply| checks::write_replies(&[reply], Version::Resp3)),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn line() -> impl Strategy<Value = String> {
    "[^\r\n]{0,12}"
}

fn reply() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        line().prop_map(Reply::Simple),
        line().prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Reply::Bulk),
        Just(Reply::Null),
        prop::num::f64::ANY
            .prop_filter("NaN is not equal to itself", |value| !value.is_nan())
            .prop_map(Reply::Double),
        any::<bool>().prop_map(Reply::Boolean),
        "-?[0-9]{1,30}".prop_map(Reply::BigNumber),
        ("[a-z]{3}", "(?s).{0,12}").prop_map(|(format, text)| Reply::Verbatim { format, text }),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let elements = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            elements().prop_map(Reply::Array),
            elements().prop_map(Reply::Set),
            elements().prop_map(Reply::Push),
            prop::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Reply::Map),
        ]
    })
}

/// An argument as Redis's `sdscatrepr` and a careful human would quote it.
fn quote(argument: &[u8]) -> String {
    let escaped = argument.iter().map(|byte| match byte {
        b'\n' => r"\n".to_owned(),
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!(r"\x{other:02x}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn decode_one(input: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = RequestDecoder::new(Limits::default());
    assert_eq!(decoder.decode(input), Ok(Decoded::Complete { consumed: input.len() }));
    decoder.request(input).iter().map(<[u8]>::to_vec).collect()
}

proptest! {
    #[test]
    fn requests_hold_for_bytes_near_the_protocol(data in near_protocol()) {
        checks::check_requests(&data);
    }

    #[test]
    fn replies_hold_for_bytes_near_the_protocol(data in near_protocol()) {
        checks::check_replies(&data);
    }

    #[test]
    fn both_hold_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_requests(&data);
        checks::check_replies(&data);
    }

    #[test]
    fn a_command_is_read_as_it_was_written(arguments in arguments()) {
        let mut encoded = Vec::new();
        encode_command(&mut encoded, &arguments);
        prop_assert_eq!(decode_one(&encoded), arguments);
    }

    #[test]
    fn a_quoted_line_is_read_as_it_was_written(arguments in arguments()) {
        let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
        let line = format!("{}\r\n", quoted.join(" "));
        prop_assert_eq!(decode_one(line.as_bytes()), arguments);
    }

    #[test]
    fn a_reply_is_read_as_it_was_written(reply in reply()) {
        let written = checks::write_replies(std::slice::from_ref(&reply), Version::Resp3);
        let read = ReplyDecoder::new().decode(&written);
        prop_assert_eq!(read, Ok(Some((reply, written.len()))));
    }
}

#[test]
fn requests_hold_for_the_corpus() {
    corpus::check("resp_request", 12, checks::check_requests);
}

#[test]
fn replies_hold_for_the_corpus() {
    corpus::check("resp_reply", 12, checks::check_replies);
}
