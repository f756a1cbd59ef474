//! The binary protocol: packets in, packets out.

use tokaido_wire::memcached::{OPERATIONS, binary::Status};

use super::*;

/// A request, byte by byte.
fn packet(opcode: u8, extras: &[u8], key: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let mut packet = vec![0x80, opcode];
    packet.extend((key.len() as u16).to_be_bytes());
    packet.extend([extras.len() as u8, 0, 0, 0]);
    packet.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    packet.extend(*b"abcd");
    packet.extend(cas.to_be_bytes());
    [&packet, extras, key, value].concat()
}

/// A parsed reply.
#[derive(Debug, PartialEq)]
struct Reply {
    opcode: u8,
    status: u16,
    cas: u64,
    extras: Vec<u8>,
    key: String,
    value: String,
}

fn replies(mut bytes: &[u8]) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_at(24);
        assert_eq!((header[0], &header[12..16]), (0x81, &b"abcd"[..]));
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        let (body, next) = rest.split_at(number(&header[8..12]) as usize);
        let (extras, body) = body.split_at(header[4].into());
        let (key, value) = body.split_at(number(&header[2..4]) as usize);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        replies.push(Reply {
            opcode: header[1],
            status: number(&header[6..8]) as u16,
            cas: number(&header[16..24]),
            extras: extras.to_vec(),
            key: text(key),
            value: text(value),
        });
        bytes = next;
    }
    replies
}

/// A server with one connection.
struct Bed {
    server: Server,
    memcached: Memcached,
}

impl Bed {
    fn new(is_cache: bool, password: Option<&str>) -> Self {
        let server = Server::new(is_cache, password);
        let memcached = server.connect();
        Self { server, memcached }
    }

    fn send(&mut self, input: &[u8]) -> Vec<Reply> {
        replies(&self.server.exchange(&mut self.memcached, input).0)
    }

    /// Status, key and value of the one reply to a request; the others are empty.
    #[track_caller]
    fn ask(&mut self, input: &[u8]) -> (u16, String) {
        let mut replies = self.send(input);
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies.pop().map(|reply| (reply.status, reply.key + &reply.value)).unwrap()
    }
}

/// Flags and expiry.
fn extras(flags: u32, exptime: u32) -> Vec<u8> {
    [flags.to_be_bytes(), exptime.to_be_bytes()].concat()
}

fn counter(by: u64, initial: u64, exptime: u32) -> Vec<u8> {
    [&by.to_be_bytes()[..], &initial.to_be_bytes(), &exptime.to_be_bytes()].concat()
}

fn done() -> (u16, String) {
    (0, String::new())
}

fn failed(status: Status) -> (u16, String) {
    (status as u16, status.text().to_owned())
}

#[test]
fn values_are_stored_and_got() {
    for is_cache in [true, false] {
        let mut bed = Bed::new(is_cache, None);
        assert_eq!(bed.ask(&packet(0x00, b"", b"k", b"", 0)), failed(Status::NotFound));
        assert_eq!(bed.ask(&packet(0x0c, b"", b"k", b"", 0)), (1, "k".to_owned()));
        let stored = bed.send(&packet(0x01, &extras(7, 0), b"k", b"hello", 0)).remove(0);
        assert!(stored.status == 0 && stored.cas != 0 && stored.opcode == 1);
        let got = bed.send(&packet(0x0c, b"", b"k", b"", 0)).remove(0);
        assert_eq!((&*got.key, &*got.value, got.cas), ("k", "hello", stored.cas));
        assert_eq!(got.extras, 7u32.to_be_bytes());
        assert_eq!(bed.ask(&packet(0x02, &extras(0, 0), b"k", b"x", 0)), failed(Status::Exists));
        assert_eq!(bed.ask(&packet(0x03, &extras(0, 0), b"j", b"x", 0)), failed(Status::NotFound));
        assert_eq!(bed.ask(&packet(0x0e, b"", b"k", b"!", 0)), done());
        assert_eq!(bed.ask(&packet(0x0f, b"", b"j", b"!", 0)), failed(Status::NotStored));
        assert_eq!(bed.ask(&packet(0x0f, b"", b"k", b"-", 9)), failed(Status::Exists));
        assert_eq!(bed.ask(&packet(0x00, b"", b"k", b"", 0)), (0, "hello!".to_owned()));
        assert_eq!(bed.ask(&packet(0x01, &extras(0, 0), b"k", b"x", 9)), failed(Status::Exists));
        assert_eq!(bed.ask(&packet(0x02, &extras(0, 0), b"j", b"x", 9)), failed(Status::NotFound));
        assert_eq!(bed.ask(&packet(0x04, b"", b"k", b"", 9)), failed(Status::Exists));
        assert_eq!(bed.ask(&packet(0x04, b"", b"k", b"", 0)), done());
        assert_eq!(bed.ask(&packet(0x04, b"", b"k", b"", 0)), failed(Status::NotFound));
    }
}

#[test]
fn counters_expiry_and_flush() {
    let mut bed = Bed::new(true, None);
    let number = |reply: &Reply| reply.value.bytes().fold(0u64, |n, byte| n << 8 | u64::from(byte));
    let missing = packet(0x05, &counter(1, 9, u32::MAX), b"n", b"", 0);
    assert_eq!(bed.ask(&missing), failed(Status::NotFound));
    for (opcode, by, expected) in [(0x05, 1, 9), (0x05, 3, 12), (0x06, 100, 0)] {
        let reply = bed.send(&packet(opcode, &counter(by, 9, 0), b"n", b"", 0)).remove(0);
        assert_eq!((reply.status, number(&reply)), (0, expected));
    }
    assert_eq!(bed.ask(&packet(0x01, &extras(0, 10), b"w", b"word", 0)), done());
    let word = packet(0x05, &counter(1, 0, 0), b"w", b"", 0);
    assert_eq!(bed.ask(&word), failed(Status::NotNumeric));
    assert_eq!(bed.ask(&packet(0x1c, &100u32.to_be_bytes(), b"w", b"", 0)).0, 0);
    bed.server.advance(99_999);
    assert_eq!(bed.ask(&packet(0x1d, &0u32.to_be_bytes(), b"w", b"", 0)), (0, "word".to_owned()));
    bed.server.advance(1_000_000);
    assert_eq!(bed.ask(&packet(0x23, &1u32.to_be_bytes(), b"w", b"", 0)), (0, "wword".to_owned()));
    bed.server.advance(1_000);
    assert_eq!(bed.ask(&packet(0x00, b"", b"w", b"", 0)), failed(Status::NotFound));
    assert_eq!(bed.ask(&packet(0x08, b"", b"", b"", 0)), done());
    assert_eq!(bed.ask(&packet(0x00, b"", b"n", b"", 0)), failed(Status::NotFound));
    assert_eq!(bed.ask(&packet(0x0b, b"", b"", b"", 0)), (0, "1.6.18".to_owned()));
    let stats = bed.send(&packet(0x10, b"", b"", b"", 0));
    assert!(stats.iter().any(|reply| reply.key == "curr_items" && reply.value == "0"));
    assert!(stats.last().is_some_and(|reply| reply.key.is_empty() && reply.value.is_empty()));
    assert_eq!(bed.ask(&packet(0x10, b"", b"nonsense", b"", 0)), failed(Status::NotFound));
}

#[test]
fn quiet_requests_speak_of_failures_alone_and_in_order() {
    let mut bed = Bed::new(true, None);
    let requests = [
        packet(0x11, &extras(0, 0), b"k", b"1", 0),
        packet(0x12, &extras(0, 0), b"k", b"2", 0),
        packet(0x09, b"", b"none", b"", 0),
        packet(0x0d, b"", b"k", b"", 0),
        packet(0x15, &counter(1, 0, 0), b"k", b"", 0),
        packet(0x14, b"", b"none", b"", 0),
        packet(0x18, b"", b"", b"", 0),
        packet(0x0a, b"", b"", b"", 0),
    ];
    let opcodes: Vec<_> =
        bed.send(&requests.concat()).iter().map(|r| (r.opcode, r.status)).collect();
    assert_eq!(opcodes, [(0x12, 2), (0x0d, 0), (0x14, 1), (0x0a, 0)]);
}

#[test]
fn what_is_wrong_is_said_and_the_connection_ends_where_it_has_to() {
    let long = [b'k'; 251];
    let large = vec![b'v'; 1001];
    let mut cut = packet(0x00, b"", b"key", b"", 0);
    cut[11] = 2;
    for (input, status, closes) in [
        (packet(0x00, b"x", b"k", b"", 0), Status::Invalid, true),
        (packet(0x00, b"", &long, b"", 0), Status::Invalid, true),
        (packet(0x01, b"", b"k", b"", 0), Status::Invalid, true),
        (packet(0x05, b"", b"k", b"", 0), Status::Invalid, true),
        (cut, Status::UnknownCommand, true),
        (packet(0x77, b"", b"k", b"v", 0), Status::UnknownCommand, false),
        (packet(0x20, b"", b"", b"", 0), Status::UnknownCommand, false),
        (packet(0x21, b"", b"PLAIN", b"\0a\0b", 0), Status::UnknownCommand, false),
        (packet(0x01, &extras(0, 0), b"k", &large, 0), Status::TooLarge, false),
    ] {
        let mut bed = Bed::new(true, None);
        let stored = packet(0x11, &extras(0, 0), b"k", b"1", 0);
        let noop = packet(0x0a, b"", b"", b"", 0);
        let found = bed.send(&[stored, input, noop].concat());
        let text = (found[0].status, found[0].value.clone());
        assert_eq!(text, (status as u16, status.text().to_owned()));
        assert_eq!(found.len(), if closes { 1 } else { 2 }, "{found:?}");
        let forgets = status == Status::TooLarge;
        let mut other = bed.server.connect();
        let got = bed.server.exchange(&mut other, b"get k\r\n").0;
        assert_eq!(got == b"END\r\n", forgets);
    }
    let mut bed = Bed::new(true, None);
    let noop = packet(0x0a, b"", b"", b"", 0);
    let (_, progress) = bed.server.exchange(&mut bed.memcached, &[&noop[..], b"get k"].concat());
    assert!(matches!(progress, Progress::Failed));
}

#[test]
fn a_client_authenticates_with_the_password() {
    let mut bed = Bed::new(true, Some("sesame"));
    assert_eq!(bed.ask(&packet(0x20, b"", b"", b"", 0)), (0, "PLAIN".to_owned()));
    assert_eq!(bed.ask(&packet(0x0b, b"", b"", b"", 0)).0, 0);
    let wrong = packet(0x21, b"", b"PLAIN", b"\0me\0sesama", 0);
    assert_eq!(bed.ask(&wrong), failed(Status::AuthError));
    let other = packet(0x21, b"", b"LOGIN", b"\0me\0sesame", 0);
    assert_eq!(bed.ask(&other), failed(Status::AuthError));
    let right = packet(0x21, b"", b"PLAIN", b"\0me\0sesame", 0);
    assert_eq!(bed.ask(&right), (0, "Authenticated".to_owned()));
    assert_eq!(bed.ask(&packet(0x00, b"", b"k", b"", 0)), failed(Status::NotFound));
}

/// Each operation, so that none is forgotten, and one that does not exist.
#[test]
fn nothing_is_done_before_the_password() {
    let opcodes = OPERATIONS.iter().map(|operation| operation.opcode).chain([0x77]);
    for opcode in opcodes.filter(|opcode| ![0x0b, 0x20, 0x21, 0x22].contains(opcode)) {
        let (extras, key): (&[u8], &[u8]) = match opcode {
            0x01..=0x03 | 0x11..=0x13 => (&[0; 8], b"k"),
            0x05 | 0x06 | 0x15 | 0x16 => (&[0; 20], b"k"),
            0x1c..=0x1e | 0x23 | 0x24 => (&[0; 4], b"k"),
            0x07 | 0x08 | 0x0a | 0x10 | 0x17 | 0x18 => (b"", b""),
            _ => (b"", b"k"),
        };
        let mut bed = Bed::new(true, Some("sesame"));
        let request = packet(opcode, extras, key, b"", 0);
        let (reply, progress) = bed.server.exchange(&mut bed.memcached, &request);
        assert_eq!(replies(&reply)[0].status, Status::AuthError as u16, "{opcode:#x}");
        assert!(matches!(progress, Progress::Close { .. }), "{opcode:#x}");
    }
    let mut bed = Bed::new(true, Some("sesame"));
    let large = packet(0x21, b"", b"PLAIN", &[b'x'; 1025], 0);
    assert_eq!(bed.send(&large[..29])[0].status, Status::AuthError as u16);
}

#[test]
fn a_quiet_write_that_was_not_committed_is_told_of() {
    let mut bed = Bed::new(true, None);
    let stored = packet(0x11, &extras(0, 0), b"k", b"1", 0);
    assert!(bed.send(&stored).is_empty());
    let mut output = Vec::new();
    let error = tokaido_store::CommitError::DiskFull;
    let echo = tokaido_wire::memcached::binary::Echo { opcode: 0x11, opaque: *b"abcd" };
    bed.memcached.refuse(Token::Binary(echo), &error, &mut output);
    let reply = replies(&output).remove(0);
    assert_eq!((reply.opcode, reply.value), (0x11, error.to_string()));
}
