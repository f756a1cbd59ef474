//! Each pair of protocols is told apart by the rules, not by luck.

use super::*;
use Verdict::{Refuse, Serve, Tls};

/// The table of [`ROWS`], by protocol name.
fn rows() -> Vec<Row<&'static str>> {
    let rows = ROWS.iter().map(|row| Row {
        protocol: row.protocol.name(),
        first_bytes: row.first_bytes,
        first_line: row.first_line,
    });
    rows.collect()
}

/// Detects on a listener that names no protocols.
fn detect_any<P: Copy + PartialEq>(rows: &[Row<P>], input: &[u8]) -> Option<Verdict<P>> {
    let all: Vec<P> = rows.iter().map(|row| row.protocol).collect();
    detect(rows, &all, input)
}

/// How each protocol begins.
const BEGINNINGS: &[(&str, &[&[u8]])] = &[
    (
        "redis",
        &[
            b"*1\r\n$4\r\nPING\r\n",
            b"PING\r\n",
            b"GET k\r\n",
            b"get k\r\n",
            b"set k v\r\n",
            b"set k 1 ex 5\r\n",
            b"incr k\r\n",
            b"append k v\n",
            b"touch k 1\r\n",
            b"quit\n",
        ],
    ),
    (
        "http",
        &[b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /a HTTP/1.0\n", b"PUT /rpc/x HTTP/1.1\r\n"],
    ),
    (
        "memcached",
        &[
            b"\x80\x00\x00\x00",
            b"get k\r\n",
            b"touch k 1\r\n",
            b"quit\n",
            b"get k j\r\n",
            b"gets k\r\n",
            b"set k 0 0 5\r\n",
            b"set k 0 -1 5 noreply\r\n",
            b"append k 0 0 5\r\n",
            b"incr k 1\r\n",
            b"version\n",
            b"stats\r\n",
            b"mg k v\r\n",
            b"mn\r\n",
        ],
    ),
    (
        "kyoto",
        &[
            b"\xb1\x00",
            b"\xb4",
            b"\xb8",
            b"\xb9",
            b"\xba",
            b"GET /a HTTP/1.0\n",
            b"PUT /rpc/x HTTP/1.1\r\n",
        ],
    ),
    (
        "tyrant",
        &[
            b"\xc8\x10\x00\x00",
            b"get k\r\n",
            b"set k 0 0 5\r\n",
            b"stats\r\n",
            b"GET /a HTTP/1.0\n",
        ],
    ),
];

/// What more than one protocol may begin with; all else must be told apart in any order.
const AMBIGUOUS: &[(&[u8], &[&str])] = &[
    (b"get k\r\n", &["redis", "memcached", "tyrant"]),
    (b"set k v\r\n", &["redis", "memcached", "tyrant"]),
    (b"set k 1 ex 5\r\n", &["redis", "memcached", "tyrant"]),
    (b"incr k\r\n", &["redis", "memcached", "tyrant"]),
    (b"append k v\n", &["redis", "memcached", "tyrant"]),
    (b"touch k 1\r\n", &["redis", "memcached"]),
    (b"quit\n", &["redis", "memcached", "tyrant"]),
    (b"get k j\r\n", &["memcached", "tyrant"]),
    (b"gets k\r\n", &["memcached", "tyrant"]),
    (b"set k 0 0 5\r\n", &["memcached", "tyrant"]),
    (b"set k 0 -1 5 noreply\r\n", &["memcached", "tyrant"]),
    (b"append k 0 0 5\r\n", &["memcached", "tyrant"]),
    (b"incr k 1\r\n", &["memcached", "tyrant"]),
    (b"version\n", &["memcached", "tyrant"]),
    (b"stats\r\n", &["memcached", "tyrant"]),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &["http", "kyoto", "tyrant"]),
    (b"GET /a HTTP/1.0\n", &["http", "kyoto", "tyrant"]),
    (b"PUT /rpc/x HTTP/1.1\r\n", &["http", "kyoto", "tyrant"]),
];

#[test]
fn each_pair_of_protocols_is_told_apart() {
    let rows = rows();
    assert!(rows.iter().all(|row| BEGINNINGS.iter().any(|(name, _)| *name == row.protocol)));
    for (speaker, beginnings) in BEGINNINGS {
        for (other, _) in BEGINNINGS.iter().filter(|(other, _)| other != speaker) {
            for input in *beginnings {
                let either = AMBIGUOUS.iter().find(|(ambiguous, _)| ambiguous == input);
                let is_ambiguous = either.is_some_and(|(_, names)| names.contains(other));
                let detect = |allowed: &[&'static str]| detect(&rows, allowed, input);
                assert_eq!(detect(&[speaker, other]), Some(Serve(*speaker)), "{input:?} {other}");
                let turned = if is_ambiguous { other } else { speaker };
                assert_eq!(detect(&[other, speaker]), Some(Serve(*turned)), "{input:?} {other}");
                assert_eq!(detect(&[speaker]), Some(Serve(*speaker)), "{input:?}");
            }
        }
    }
}

#[test]
fn a_pinned_listener_refuses_what_can_only_be_another_protocol() {
    let rows = rows();
    let refused: &[(&str, &[u8], &str)] = &[
        ("redis", b"GET / HTTP/1.1\r\n", "http"),
        ("redis", b"mg k v\r\n", "memcached"),
        ("redis", b"\x80\x00", "memcached"),
        ("redis", b"\xc8", "tyrant"),
        ("http", b"*1\r\n", "redis"),
        ("http", b"\xb1", "kyoto"),
        ("memcached", b"*1\r\n", "redis"),
        ("memcached", b"GET / HTTP/1.1\r\n", "http"),
        ("tyrant", b"*1\r\n", "redis"),
        ("tyrant", b"mg k v\r\n", "memcached"),
        ("kyoto", b"\xc8", "tyrant"),
    ];
    for (pinned, input, speaker) in refused {
        assert_eq!(detect(&rows, &[*pinned], input), Some(Refuse(*speaker)), "{pinned} {input:?}");
    }
    // What several protocols may begin with is the pinned one's, and so is garbage.
    for pinned in ["redis", "http", "memcached", "kyoto", "tyrant"] {
        for input in [&b"get k\r\n"[..], b"\r\n\r\nget k\r\n", b"\xff\n"] {
            assert_eq!(detect(&rows, &[pinned], input), Some(Serve(pinned)), "{input:?}");
        }
    }
}

#[test]
fn without_an_order_of_the_listener_the_order_of_the_table_decides() {
    let cases: &[(&[u8], &str)] = &[
        (b"get k\r\n", "redis"),
        (b"PUT /rpc/x HTTP/1.1\r\n", "http"),
        (b"\xff\n", "redis"),
        (b"set k 0 0 5\r\n", "memcached"),
        (b"\x80", "memcached"),
        (b"\xc8", "tyrant"),
    ];
    for (input, speaker) in cases {
        assert_eq!(detect_any(&rows(), input), Some(Serve(*speaker)), "{input:?}");
    }
}

#[test]
fn the_first_line_tells_the_protocol() {
    let redis = Some(Serve(ProtocolName::Redis));
    let http = Some(Serve(ProtocolName::Http));
    let cases: [(&[u8], _); 24] = [
        (b"", None),
        (b"*", redis),
        (b"PING", None),
        (b"PING\r\n", redis),
        (b"\r\n", None),
        (b"\n\r\n\r", None),
        (b"\r\nPING\r\n", redis),
        (b"\n\n*", redis),
        (b"\r\nPOST / HTTP/1.1\r\n", http),
        (b"\r\r\nPOST / HTTP/1.1\r\n", redis),
        (b"GET / HTTP/1.1", None),
        (b"GET / HTTP/1.1\r\n", http),
        (b"GET / HTTP/1.0\nHost: x", http),
        (b"GET key\r\nGET / HTTP/1.1\r\n", redis),
        (b"GET / HTTP/1.1 \r\n", http),
        (b"GET / http/1.1\r\n", http),
        (b"GET /x HTTP/2.0\r\n", http),
        (b"PRI * HTTP/2.0\r\n", http),
        (b"GET / HTTP/9\n", http),
        (b"HTTP/1.1\r\n", redis),
        (b"GET HTTP/\r\n", redis),
        (b"\x16", None),
        (b"\x16\x03", Some(Tls)),
        (b"\x16 is no hello\n", redis),
    ];
    for (input, verdict) in cases {
        assert_eq!(detect_any(ROWS, input), verdict, "{input:?}");
    }
}

#[test]
fn a_line_without_an_end_is_not_waited_for_for_ever() {
    let detect = |len| detect_any(ROWS, &vec![b'x'; len]);
    assert_eq!(detect(FIRST_LINE_BYTES_MAX - 1), None);
    assert_eq!(detect(FIRST_LINE_BYTES_MAX), Some(Serve(ProtocolName::Redis)));
    let mut request = b"GET /".to_vec();
    request.resize(FIRST_LINE_BYTES_MAX, b'x');
    assert_eq!(detect_any(ROWS, &request), Some(Serve(ProtocolName::Http)));
    request[7] = b' ';
    assert_eq!(detect_any(ROWS, &request), Some(Serve(ProtocolName::Redis)));
    let empty_lines = |len| detect_any(ROWS, &vec![b'\n'; len]);
    assert_eq!(empty_lines(FIRST_LINE_BYTES_MAX - 1), None);
    assert_eq!(empty_lines(FIRST_LINE_BYTES_MAX), Some(Serve(ProtocolName::Redis)));
}

#[test]
fn more_bytes_never_change_the_answer() {
    let rows = rows();
    for input in BEGINNINGS.iter().flat_map(|(_, beginnings)| *beginnings) {
        let whole = detect_any(&rows, input);
        for len in 0..input.len() {
            let early = detect_any(&rows, &input[..len]);
            assert!(early.is_none() || early == whole, "{input:?} {len}");
        }
    }
}
