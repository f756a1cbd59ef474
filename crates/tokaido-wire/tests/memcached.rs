//! The memcached codec: the fuzz targets' checks, on generated streams and on the fuzzer's corpus;
//! and the outcome of each command, line by line.

use proptest::prelude::*;
use tokaido_wire::memcached::{
    COMMANDS, Credentials, Decoded, Exptime, Limits, Mode, ProtocolError, Request, RequestError,
    TextDecoder,
};

#[path = "checks/memcached.rs"]
mod checks;
mod corpus;

/// Bytes that resemble the protocol more often than random ones would.
fn near_text() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let word = "[a-c0-9]{1,3}|-1|noreply|b|q|v|T[0-9]{1,2}|O.|I|M[SEAPRXID]|C[0-9]|[ -~]{1,4}";
    let line = (prop::sample::select(names), prop::collection::vec(word, 0..6))
        .prop_map(|(name, words)| format!("{name} {}\r\n", words.join(" ")).into_bytes());
    let part = prop_oneof![
        6 => line,
        2 => "(set|add|cas) k 0 0 [0-9]{1,2}( 1)?( noreply)?\r\n[a-c]{0,8}\r?\n"
            .prop_map(String::into_bytes),
        2 => "ms [a-z]{1,2} [0-9]{1,2}( T0| q| b| k)*\r\n[a-c]{0,8}\r\n".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// A request of the binary protocol, whose lengths are right or nearly so.
fn near_packet() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![8 => 0..0x25u8, 1 => any::<u8>()];
    let extras = prop::sample::select(vec![0usize, 0, 4, 8, 20, 3]);
    let off = prop::sample::select(vec![0u32, 0, 0, 0, 1, u32::MAX]);
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    (opcode, extras, bytes(5), bytes(12), any::<u64>(), off).prop_map(
        |(opcode, extras, key, value, cas, off)| {
            let len = (extras + key.len() + value.len()) as u32;
            let mut packet = vec![0x80, opcode, 0, key.len() as u8, extras as u8, 0, 0, 0];
            packet.extend(len.wrapping_add(off).min(1 << 21).to_be_bytes());
            packet.extend(*b"abcd");
            packet.extend((cas & 1).to_be_bytes());
            packet.resize(packet.len() + extras, 1);
            [packet, key, value].concat()
        },
    )
}

proptest! {
    #[test]
    fn binary_holds_for_bytes_near_the_protocol(
        packets in prop::collection::vec(near_packet(), 0..6), cut in 0..30usize,
    ) {
        let data = packets.concat();
        checks::check_binary(&data[..data.len().saturating_sub(cut)]);
    }

    #[test]
    fn binary_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_binary(&data);
        checks::check_binary(&[b"\x80", &data[..]].concat());
    }

    #[test]
    fn text_holds_for_bytes_near_the_protocol(data in near_text()) {
        checks::check_text(&data);
    }

    #[test]
    fn text_holds_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::check_text(&data);
    }
}

#[test]
fn text_holds_for_the_corpus() {
    corpus::check("memcached_text", 12, checks::check_text);
}

#[test]
fn binary_holds_for_the_corpus() {
    corpus::check("memcached_binary", 12, checks::check_binary);
}

/// The only request in `input`.
#[track_caller]
fn decode<R>(input: &str, check: impl FnOnce(Request<'_>, bool) -> R) -> R {
    let mut decoder = TextDecoder::new(Limits::default());
    match decoder.decode(input.as_bytes()) {
        Ok(Decoded::Complete { consumed, is_quiet, request, .. }) => {
            let refused = matches!(request, Request::Refused { .. });
            assert!(refused || consumed == input.len(), "{input:?} is {consumed} bytes");
            check(request, is_quiet)
        }
        other => panic!("{input:?} gives {other:?}"),
    }
}

/// Why `input` is refused, how many bytes of it are skipped, and whether the reply is suppressed.
#[track_caller]
fn refusal(input: &str) -> (String, usize, bool) {
    decode(input, |request, is_quiet| match request {
        Request::Refused { error, skip, .. } => (error.to_string(), skip, is_quiet),
        other => panic!("{input:?} gives {other:?}"),
    })
}

#[test]
fn a_store_has_its_value() {
    decode("cas key 7 -1 5 99 noreply\r\nhello\r\n", |request, is_quiet| {
        let Request::Store(store) = request else { panic!("{request:?}") };
        assert!(is_quiet);
        assert_eq!((store.mode, store.key, store.value), (Mode::Cas, &b"key"[..], &b"hello"[..]));
        assert_eq!((store.flags, store.exptime, store.cas), (7, Exptime(-1), 99));
    });
    decode("set k 0 0 0\r\n\r\n", |request, is_quiet| {
        assert!(matches!(request, Request::Store(store) if store.value.is_empty()));
        assert!(!is_quiet);
    });
}

#[test]
fn many_keys_may_have_a_long_line() {
    let long = "k".repeat(250);
    let keys = vec![long.as_str(); 100].join(" ");
    decode(&format!("gets {keys}\r\n"), |request, _| {
        let Request::Get { keys, with_cas: true, touch: None } = request else { panic!() };
        assert_eq!(keys.count(), 100);
    });
    let mut decoder = TextDecoder::new(Limits::default());
    let line = format!("mg {keys}");
    let error = ProtocolError::LineLength { max: 2048 };
    assert_eq!(decoder.decode(line.as_bytes()).unwrap_err(), error);
    let mut decoder = TextDecoder::new(Limits::default());
    let error = decoder.decode_credentials(format!("gets {keys}").as_bytes()).unwrap_err();
    assert_eq!(error, ProtocolError::LineLength { max: 2048 });
    let mut decoder = TextDecoder::new(Limits::default());
    let endless = format!("get {}", "k ".repeat(1 << 19));
    let error = ProtocolError::LineLength { max: 1 << 20 };
    assert_eq!(decoder.decode(endless.as_bytes()).unwrap_err(), error);
}

#[test]
fn what_is_wrong_is_said_in_memcacheds_words() {
    let long = "k".repeat(251);
    for (input, reply, skip, is_quiet) in [
        ("\r\n", "ERROR", 0, false),
        ("GET k\r\n", "ERROR", 0, false),
        ("get\r\n", "ERROR", 0, false),
        ("set k 0 0\r\n", "ERROR", 0, false),
        ("set k a 0 1 noreply\r\n", "CLIENT_ERROR bad command line format", 0, true),
        ("set k 0 0 -1\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("set k 0 0 2147483647\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("set k 0 0 1048577\r\n", "SERVER_ERROR object too large for cache", 1_048_579, false),
        ("set k 0 0 1\r\nabc\r\n", "CLIENT_ERROR bad data chunk", 0, false),
        ("cas k 0 0 1 x\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("gat x k\r\n", "CLIENT_ERROR invalid exptime argument", 0, false),
        ("touch k x\r\n", "CLIENT_ERROR invalid exptime argument", 0, false),
        ("incr k -1\r\n", "CLIENT_ERROR invalid numeric delta argument", 0, false),
        (
            "delete k 1\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            0,
            false,
        ),
        (
            "delete k 0 0\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            0,
            false,
        ),
        ("flush_all x\r\n", "CLIENT_ERROR invalid exptime argument", 0, false),
        ("verbosity x\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("mg\r\n", "ERROR", 0, false),
        ("mg k v v\r\n", "CLIENT_ERROR duplicate flag", 0, false),
        ("mg k !\r\n", "CLIENT_ERROR invalid flag", 0, false),
        ("mg k! b\r\n", "CLIENT_ERROR error decoding key", 0, false),
        ("mg k Tx\r\n", "CLIENT_ERROR bad token in command line format", 0, false),
        (
            "mg k a b c d e f g h i j k l m n o p q r\r\n",
            "CLIENT_ERROR options flags are too long",
            0,
            false,
        ),
        ("ms k\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("ms k S5\r\n", "CLIENT_ERROR bad command line format", 0, false),
        ("ms k 5 !\r\n", "CLIENT_ERROR invalid flag", 7, false),
        ("ms k 5 MX\r\n", "CLIENT_ERROR invalid mode for ms M token", 7, false),
        ("ms k 5 Fx\r\n", "CLIENT_ERROR bad command line format", 7, false),
        ("md k !\r\n", "CLIENT_ERROR invalid or duplicate flag", 0, false),
        ("ma k MX\r\n", "CLIENT_ERROR invalid mode for ma M token", 0, false),
        ("ma k Dx\r\n", "CLIENT_ERROR invalid or duplicate flag", 0, false),
        ("me\r\n", "CLIENT_ERROR bad command line format", 0, false),
    ] {
        assert_eq!(refusal(input), (reply.to_owned(), skip, is_quiet), "{input:?}");
    }
    for command in ["get", "incr", "touch", "set", "md", "mg"] {
        let arguments = if command == "set" { " 0 0 1" } else { " 0" };
        let line = format!("{command} {long}{arguments}\r\n");
        assert_eq!(refusal(&line).0, RequestError::Format.to_string(), "{line}");
    }
}

#[test]
fn a_refused_value_is_skipped() {
    let limits = Limits { value_len_max: 3, ..Limits::default() };
    let mut decoder = TextDecoder::new(limits);
    let input = b"set k 0 0 4\r\nmore\r\nversion\r\n";
    let Ok(Decoded::Complete { consumed: 13, request, .. }) = decoder.decode(input) else {
        panic!()
    };
    let Request::Refused { skip: 6, forget: Some(key), .. } = request else { panic!() };
    assert_eq!(key.bytes(), b"k");
    decoder.skip(6);
    assert!(matches!(decoder.decode(&input[13..15]), Ok(Decoded::Skipped { consumed: 2 })));
    assert!(matches!(decoder.decode(b""), Ok(Decoded::Incomplete)));
    assert!(matches!(decoder.decode(&input[15..]), Ok(Decoded::Skipped { consumed: 4 })));
    let decoded = decoder.decode(&input[19..]);
    assert!(matches!(decoded, Ok(Decoded::Complete { request: Request::Version, .. })));
}

#[test]
fn a_request_of_http_is_told_apart() {
    let mut decoder = TextDecoder::new(Limits::default());
    let error = decoder.decode(b"GET / HTTP/1.1\r\n").unwrap_err();
    assert_eq!(error, ProtocolError::Http);
}

#[test]
fn a_meta_command_has_its_flags() {
    decode("mg Zm9v b v T30 N10 R5 q O123 k\r\n", |request, is_quiet| {
        let Request::MetaGet(meta) = request else { panic!("{request:?}") };
        assert!(is_quiet && meta.key.is_base64() && meta.flags.wants_value);
        assert_eq!((meta.key.bytes(), meta.key.given()), (&b"foo"[..], &b"Zm9v"[..]));
        let Exptime(ttl) = meta.flags.ttl.unwrap();
        assert_eq!(
            (ttl, meta.flags.vivify, meta.flags.recache),
            (30, Some(Exptime(10)), Some(Exptime(5)))
        );
        assert_eq!(meta.words.count(), 8);
    });
    decode("ms k 2 C5 MR I F9\r\nhi\r\n", |request, _| {
        let Request::MetaSet(meta, store) = request else { panic!("{request:?}") };
        assert_eq!((store.mode, store.cas, store.flags), (Mode::Cas, 5, 9));
        assert!(meta.flags.invalidates && store.value == b"hi");
    });
}

#[test]
fn credentials_are_a_value() {
    let read = |input: &str| {
        let mut decoder = TextDecoder::new(Limits::default());
        match decoder.decode_credentials(input.as_bytes()) {
            Ok(Credentials::Given { words, .. }) => {
                let text = |word| String::from_utf8_lossy(word).into_owned();
                format!("given {:?}", words.map(|(user, password)| (text(user), text(password))))
            }
            other => format!("{other:?}"),
        }
    };
    assert_eq!(read("set auth 0 0 9\r\nme sesame\r\n"), "given Some((\"me\", \"sesame\"))");
    assert_eq!(read("set auth 0 0 2\r\nme\r\n"), "given None");
    assert_eq!(read("set auth 0 0 9\r\nme sesame"), "Ok(Incomplete)");
    assert_eq!(read("set auth 0 0 2\r\nabcd"), "Ok(Unterminated { consumed: 20 })");
    assert_eq!(read("get k\r\n"), "Ok(Other { consumed: 7 })");
    assert_eq!(read("set auth 0 0 1025\r\n"), "Err(CredentialsLength)");
    assert_eq!(read(&"x".repeat(2048)), "Err(LineLength { max: 2048 })");
}
