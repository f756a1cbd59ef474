//! The binary protocol, byte by byte.

use tokaido_server::ProtocolName;
use tokaido_wire::kyoto::binary::XT_MAX;

use crate::{
    call,
    common::{Client, TestServer},
    pinned, server,
};

/// A request: its header, and then its items.
fn request(magic: u8, flags: u32, items: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(items.len()).expect("few");
    let head = [&[magic][..], &flags.to_be_bytes(), &count.to_be_bytes()].concat();
    [head, items.concat()].concat()
}

fn len(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("short").to_be_bytes()
}

fn record(database: u16, key: &[u8], value: &[u8], xt: i64) -> Vec<u8> {
    let head = [&database.to_be_bytes()[..], &len(key), &len(value), &xt.to_be_bytes()].concat();
    [&head, key, value].concat()
}

fn key(database: u16, key: &[u8]) -> Vec<u8> {
    [&database.to_be_bytes()[..], &len(key), key].concat()
}

fn hits(magic: u8, hits: u32) -> Vec<u8> {
    [&[magic][..], &hits.to_be_bytes()].concat()
}

#[track_caller]
fn ask(client: &mut Client, request: &[u8], reply: &[u8]) {
    client.send(request);
    let mut given = vec![0; reply.len()];
    std::io::Read::read_exact(&mut client.0, &mut given).expect("a reply");
    assert_eq!(given, reply);
}

#[test]
fn bulk_commands_are_those_of_the_specification() {
    for server in [server(|_| {}), pinned()] {
        let mut client = server.connect();
        let records = [
            record(0, b"a", b"1", i64::MAX),
            record(1, b"b\0", b"\xff\xbf", -4_000_000_000),
            record(9, b"nowhere", b"", 0),
        ];
        ask(&mut client, &request(0xb8, 0, &records), &hits(0xb8, 2));
        let keys = [key(0, b"a"), key(1, b"b\0"), key(0, b"missing"), key(9, b"nowhere")];
        let found = [
            hits(0xba, 2),
            record(0, b"a", b"1", XT_MAX),
            record(1, b"b\0", b"\xff\xbf", 4_000_000_000),
        ];
        ask(&mut client, &request(0xba, 0, &keys), &found.concat());
        // One request without a reply, and one after it.
        let quiet = request(0xb8, 1, &[record(0, b"q", b"", i64::MAX)]);
        let removed = request(0xb9, 0, &[key(0, b"q"), key(0, b"a"), key(0, b"missing")]);
        ask(&mut client, &[quiet, removed].concat(), &hits(0xb9, 2));
        ask(&mut client, &request(0xba, 0, &[]), &hits(0xba, 0));
        ask(&mut client, &request(0xb8, 0, &[]), &hits(0xb8, 0));
    }
}

#[test]
fn records_are_shared_with_the_procedures() {
    let server = server(|_| {});
    let (mut binary, mut http) = (server.connect(), server.connect());
    ask(&mut binary, &request(0xb8, 0, &[record(1, b"k", b"v", 100)]), &hits(0xb8, 1));
    let (status, outputs) = call(&mut http, "get", "DB\tsecond\nkey\tk\n");
    assert!(status == 200 && outputs.starts_with("value\tv\nxt\t"), "{outputs}");
}

#[test]
fn a_cache_is_written_to_at_once() {
    let server = server(|config| config.kyoto.databases.push("memcached".to_owned()));
    let mut client = server.connect();
    let records = [record(2, b"a", b"1", i64::MAX), record(2, b"b", b"2", i64::MAX)];
    ask(&mut client, &request(0xb8, 0, &records), &hits(0xb8, 2));
    // With a record of the store itself, the whole request goes to the writer.
    let mixed = [record(2, b"a", b"3", i64::MAX), record(0, b"m", b"4", i64::MAX)];
    ask(&mut client, &request(0xb8, 0, &mixed), &hits(0xb8, 2));
    let found = [hits(0xba, 2), record(2, b"a", b"3", XT_MAX), record(0, b"m", b"4", XT_MAX)];
    ask(&mut client, &request(0xba, 0, &[key(2, b"a"), key(0, b"m")]), &found.concat());
}

fn script(name: &[u8], pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let count = u32::try_from(pairs.len()).expect("few").to_be_bytes();
    let mut bytes = [&b"\xb4\0\0\0\0"[..], &len(name), &count, name].concat();
    for (key, value) in pairs {
        bytes.extend([&len(key)[..], &len(value), key, value].concat());
    }
    bytes
}

#[test]
fn procedures_are_called_with_pairs() {
    let server = server(|_| {});
    let mut client = server.connect();
    let mut reply = hits(0xb4, 3);
    for (key, value) in [("length", "3"), ("loud", "true"), ("text", "HEY")] {
        reply.extend(
            [&len(key.as_bytes())[..], &len(value.as_bytes()), key.as_bytes(), value.as_bytes()]
                .concat(),
        );
    }
    ask(&mut client, &script(b"t.shout", &[(b"text", b"hey")]), &reply);
    ask(&mut client, &script(b"t.nothing", &[]), &hits(0xb4, 0));
    for refused in [&b"t.refuses"[..], b"t.broken", b"not_there"] {
        let mut client = server.connect();
        client.send(script(refused, &[]));
        assert_eq!(client.read_to_end(), [0xbf]);
    }
    assert_eq!(call(&mut server.connect(), "get", "key\tsaid\n").1, "value\they\n");
}

/// What the server replies to these bytes until it closes.
fn last_words(server: &TestServer, bytes: &[u8]) -> Vec<u8> {
    let mut client = server.connect();
    client.send(bytes);
    client.read_to_end()
}

#[test]
fn what_cannot_be_done_is_an_error_and_the_end() {
    let server = server(|config| config.limits.kyoto_request_bytes_max = 1 << 20);
    assert_eq!(last_words(&server, b"\xb1\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"), [0xbf], "replication");
    assert_eq!(last_words(&server, b"\xb8\0\0\0\0\xff\xff\xff\xff"), [0xbf], "too many");
    let long_key = request(0xb8, 0, &[record(0, &[b'k'; 70_000], b"", 0)]);
    assert_eq!(last_words(&server, &long_key), [0xbf], "a key that is too long");
    let quiet = request(0xb8, 1, &[record(0, &[b'k'; 70_000], b"", 0)]);
    assert_eq!(last_words(&server, &quiet), [0_u8; 0], "one without a reply");
    let both = [record(0, b"first", b"1", i64::MAX), record(0, &[b'k'; 70_000], b"", 0)];
    assert_eq!(last_words(&server, &request(0xb8, 0, &both)), [0xbf]);
    assert_eq!(call(&mut server.connect(), "get", "key\tfirst\n").0, 450, "nothing of it is done");
    let bad = [&request(0xba, 0, &[])[..], b"\xc0"].concat();
    assert_eq!(last_words(&server, &bad), [&hits(0xba, 0)[..], &[0xbf]].concat());
}

#[test]
fn a_reply_is_bounded() {
    let server = server(|config| config.limits.kyoto_reply_bytes_max = 1024);
    let mut client = server.connect();
    ask(&mut client, &request(0xb8, 0, &[record(0, b"k", &[b'v'; 600], i64::MAX)]), &hits(0xb8, 1));
    client.send(request(0xba, 0, &[key(0, b"k"), key(0, b"k")]));
    assert_eq!(client.read_to_end(), [0xbf]);
}

#[test]
fn where_it_is_not_spoken_it_is_refused() {
    let server = server(|config| config.listen[0].protocols = vec![ProtocolName::Redis]);
    assert_eq!(last_words(&server, &request(0xba, 0, &[])), [0xbf]);
}
