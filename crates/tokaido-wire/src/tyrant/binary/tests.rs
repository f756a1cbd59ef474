//! The binary protocol against its specification, in pieces, and with garbage.

use super::*;
use crate::tyrant::{COMMANDS, Verb};

const LEN_MAX: usize = 1 << 16;

#[track_caller]
fn complete(input: &[u8]) -> (usize, Request<'_>) {
    match Decoder::new(LEN_MAX).decode(input) {
        Ok(Decoded::Complete { consumed, request }) => (consumed, request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_what_the_specification_says() {
    let (consumed, put) = complete(b"\xc8\x10\0\0\0\x01\0\0\0\x05kvaluenext");
    assert_eq!((consumed, put.command.verb), (16, Verb::Put));
    assert_eq!((put.key(), put.value()), (&b"k"[..], &b"value"[..]));

    let (_, putshl) = complete(b"\xc8\x13\0\0\0\x01\0\0\0\x01\0\0\0\x09kv");
    assert_eq!((putshl.key(), putshl.value(), putshl.numbers()[0]), (&b"k"[..], &b"v"[..], 9));

    let (_, fwmkeys) = complete(b"\xc8\x58\0\0\0\x02\xff\xff\xff\xffab");
    assert_eq!((fwmkeys.key(), fwmkeys.numbers()[0]), (&b"ab"[..], -1));

    let mut adddouble = b"\xc8\x61\0\0\0\x01".to_vec();
    adddouble.extend((-1_i64).to_be_bytes());
    adddouble.extend((-500_000_000_000_i64).to_be_bytes());
    adddouble.push(b'n');
    let (_, adddouble) = complete(&adddouble);
    assert_eq!(adddouble.numbers(), [-1, -500_000_000_000, 0]);
    assert_eq!(adddouble.key(), b"n");

    let (_, ext) = complete(b"\xc8\x68\0\0\0\x04\0\0\0\x02\0\0\0\x01\0\0\0\x02echokvv");
    assert_eq!(ext.parts(), [&b"echo"[..], b"k", b"vv"]);
    assert_eq!(ext.numbers()[0], 2);

    let mut setmst = b"\xc8\x78\0\0\0\x01\0\0\x07\xba".to_vec();
    setmst.extend(77_u64.to_be_bytes());
    setmst.extend(b"\0\0\0\x01h");
    let (_, setmst) = complete(&setmst);
    assert_eq!((setmst.key(), setmst.numbers()), (&b"h"[..], [1978, 77, 1]));

    let misc = b"\xc8\x90\0\0\0\x03\0\0\0\x01\0\0\0\x02get\0\0\0\x01k\0\0\0\0";
    let (consumed, misc) = complete(misc);
    assert_eq!((consumed, misc.key(), misc.items.left()), (26, &b"get"[..], 2));
    assert_eq!(misc.items.collect::<Vec<_>>(), [&b"k"[..], b""]);

    let (consumed, iternext) = complete(b"\xc8\x51\xc8");
    assert_eq!((consumed, iternext.command.verb), (2, Verb::IterNext));
}

#[test]
fn impossible_numbers_are_refused_where_they_stand() {
    let error = |input: &[u8]| match Decoder::new(LEN_MAX).decode(input) {
        Err(error) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(b"\x80"), BinaryError::Magic(0x80));
    assert_eq!(error(b"\xc8\x14"), BinaryError::Command(0x14));
    assert_eq!(error(b"\xc8\x10\xff\xff\xff\xff"), BinaryError::Number(u32::MAX, "put"));
    assert_eq!(error(b"\xc8\x30\x10\0\0\x01"), BinaryError::Number((256 << 20) + 1, "get"));
    assert_eq!(error(b"\xc8\x68\0\0\x04\0"), BinaryError::Number(1024, "ext"));
    assert_eq!(error(b"\xc8\x31\x00\x10\0\x01"), BinaryError::Number((1 << 20) + 1, "mget"));
    assert_eq!(error(b"\xc8\x31\0\0\0\x01\x80\0\0\0"), BinaryError::Number(1 << 31, "mget"));
    let width = b"\xc8\x13\0\0\0\0\0\0\0\0\x80\0\0\0";
    assert_eq!(error(width), BinaryError::Number(1 << 31, "putshl"));
    // Valid, but over the limit: refused before any of it arrives.
    let too_long = BinaryError::TooLong { max: LEN_MAX };
    assert_eq!(error(b"\xc8\x30\0\x01\0\0"), too_long);
    assert_eq!(error(b"\xc8\x31\0\x10\0\0"), too_long);
    assert_eq!(error(b"\xc8\x31\0\0\0\x02\0\0\xff\xff"), too_long);
}

#[test]
fn a_request_is_whole_at_its_last_byte() {
    for command in COMMANDS {
        let mut request = vec![MAGIC, command.id];
        let mut behind: Vec<u8> = Vec::new();
        for field in command.fields {
            let mut bytes = vec![0; field.len()];
            if matches!(field, Field::Part | Field::Name | Field::Count) {
                bytes[3] = 2;
                behind.extend(match field {
                    Field::Count => &b"\0\0\0\x03abc\0\0\0\0"[..],
                    _ => b"ab",
                });
            }
            request.extend(bytes);
        }
        request.extend(behind);
        for end in 0..request.len() {
            let decoded = Decoder::new(LEN_MAX)
                .decode(&request[..end])
                .map(|decoded| matches!(decoded, Decoded::Incomplete));
            assert_eq!(decoded, Ok(true), "{} at {end}", command.name);
        }
        assert_eq!(complete(&request).0, request.len(), "{}", command.name);
    }
}

#[test]
fn replies_are_what_the_specification_says() {
    let mut output = b"before".to_vec();
    let mut list = ListWriter::begin(DONE, &mut output);
    list.item(b"k", &mut output);
    list.record(b"k", b"vv", &mut output);
    list.end(&mut output);
    bytes(b"v", &mut output);
    assert_eq!(output, b"before\0\0\0\0\x02\0\0\0\x01k\0\0\0\x01\0\0\0\x02kvv\0\0\0\x01v");
}
