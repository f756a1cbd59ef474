//! The binary protocol, byte by byte.

use std::{fmt::Write as _, io::Read as _};

use tokaido_server::DatabaseConfig;
use tokaido_wire::tyrant::{COMMANDS, Field, of_name};

use crate::{
    common::{Client, TestServer},
    pinned, server,
};

/// Ends each exchange of a transcript: a call whose reply is unlike any other.
const MARK: &str = "ext t.echo 0 MARK END";
const MARK_REPLY: &[u8] = b"\0\0\0\0\x08MARK=END";

/// A word of a transcript: escapes such as `\xHH` stand for bytes, and `-` for an empty word.
fn word(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(place) = rest.find("\\x") {
        bytes.extend(&rest.as_bytes()[..place]);
        bytes.push(u8::from_str_radix(&rest[place + 2..][..2], 16).expect("two digits"));
        rest = &rest[place + 4..];
    }
    [bytes, rest.as_bytes().to_vec()].concat()
}

/// The bytes of a request, `NAME WORD …`: first the fields of the command, then the items of its list. `raw` in
/// place of a name is followed by literal bytes.
pub(crate) fn request(line: &str) -> Vec<u8> {
    let mut words = line.split(' ');
    let name = words.next().expect("a name");
    if name == "raw" {
        return words.flat_map(word).collect();
    }
    let command = of_name(name).unwrap_or_else(|| panic!("no command {name}"));
    let (mut head, mut behind) = (vec![0xc8, command.id], Vec::new());
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short").to_be_bytes();
    for field in command.fields {
        let mut next = || words.next().unwrap_or_else(|| panic!("{line} is too short"));
        match field {
            Field::Part | Field::Name => {
                let part = word(next());
                head.extend(len(&part));
                behind.extend(part);
            }
            Field::Int | Field::Natural => {
                head.extend(next().parse::<i32>().expect("a number").to_be_bytes());
            }
            Field::Long => head.extend(next().parse::<i64>().expect("a number").to_be_bytes()),
            Field::Count => {
                let items: Vec<_> = words.by_ref().map(word).collect();
                head.extend(u32::try_from(items.len()).expect("few").to_be_bytes());
                for item in items {
                    behind.extend(len(&item));
                    behind.extend(item);
                }
            }
        }
    }
    assert_eq!(words.next(), None, "{line} is too long");
    [head, behind].concat()
}

/// Sends a request, and returns everything received before the reply to the mark after it, or before the end of
/// the connection.
fn exchange(client: &mut Client, line: &str) -> (Vec<u8>, bool) {
    client.send([request(line), request(MARK)].concat());
    let (mut reply, mut byte) = (Vec::new(), [0]);
    while !reply.ends_with(MARK_REPLY) {
        if client.0.read(&mut byte).expect("a reply") == 0 {
            return (reply, false);
        }
        reply.extend(byte);
    }
    reply.truncate(reply.len() - MARK_REPLY.len());
    (reply, true)
}

#[track_caller]
pub(crate) fn ask(client: &mut Client, line: &str, reply: &[u8]) {
    client.send(request(line));
    let mut given = vec![0; reply.len()];
    client.0.read_exact(&mut given).expect("a reply");
    assert_eq!(given.escape_ascii().to_string(), reply.escape_ascii().to_string(), "{line}");
}

#[test]
fn commands_answer_as_tokyo_tyrant_does() {
    let server = server(|_| {});
    let mut client = server.connect();
    let mut transcript = String::new();
    for line in include_str!("commands.txt").lines() {
        let _ = writeln!(transcript, "{line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (reply, is_open) = exchange(&mut client, line);
        let shown = reply.escape_ascii().to_string().replace("\\x00", "\\0");
        let shown = if shown.is_empty() { "nothing".to_owned() } else { shown };
        let end = if is_open { "" } else { ", and the end" };
        let _ = writeln!(transcript, "    {shown}{end}");
        if !is_open {
            client = server.connect();
        }
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn every_command_is_tried() {
    for command in COMMANDS {
        let is_tried = include_str!("commands.txt")
            .lines()
            .any(|line| line.split(' ').next() == Some(command.name));
        assert!(is_tried || command.name == "stat", "{}", command.name);
    }
}

/// The text of `stat`.
fn stat(client: &mut Client) -> String {
    client.send(request("stat"));
    let mut head = [0; 5];
    client.0.read_exact(&mut head).expect("a head");
    assert_eq!(head[0], 0);
    let len = u32::from_be_bytes(head[1..].try_into().expect("four")) as usize;
    let mut text = vec![0; len];
    client.0.read_exact(&mut text).expect("a text");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn stat_has_what_tcrmgr_prints() {
    let server = server(|config| config.tyrant.database = "stations".to_owned());
    let mut client = server.connect();
    ask(&mut client, "put k vv", b"\0");
    ask(&mut client, "putkeep k vv", b"\x01");
    ask(&mut client, "get k", b"\0\0\0\0\x02vv");
    ask(&mut client, "get missing", b"\x01");
    ask(&mut client, "out missing", b"\x01");
    ask(&mut client, "misc get 0 k", b"\0\0\0\0\x01\0\0\0\x02vv");
    let text = stat(&mut client);
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    for expected in [
        ("libver", "324"),
        ("protver", "0.91"),
        ("type", "B+ tree"),
        ("path", "stations"),
        ("rnum", "1"),
        ("size", "3"),
        ("bigend", "0"),
        ("cnt_put", "1"),
        ("cnt_putkeep", "1"),
        ("cnt_get", "2"),
        ("cnt_misc", "1"),
        ("cnt_put_miss", "1"),
        ("cnt_out_miss", "1"),
        ("cnt_get_miss", "1"),
    ] {
        assert!(lines.contains(&expected), "{expected:?}: {text}");
    }
    let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    for name in
        ["version", "os", "time", "pid", "sid", "loadavg", "memsize", "memrss", "ru_user", "ru_sys"]
    {
        assert!(names.contains(&name), "{name}: {text}");
    }
    assert_eq!(text.lines().count(), lines.len());
}

#[test]
fn records_are_those_of_other_protocols() {
    let server = server(|_| {});
    let (mut client, mut redis) = (server.connect(), server.connect());
    redis.ask(&["SET", "text", "7", "PX", "4000000000000"], "+OK\r\n");
    redis.ask(&["RPUSH", "list", "a"], ":1\r\n");
    ask(&mut client, "get text", b"\0\0\0\0\x017");
    // Commands that append keep the expiry; those that put do not.
    ask(&mut client, "putcat text 8", b"\0");
    redis.ask(&["EXPIRETIME", "missing"], ":-2\r\n");
    redis.command(&["PERSIST", "text"]);
    redis.expect(":1\r\n");
    for refused in ["get list", "vsiz list", "putcat list v", "putshl list v 3", "addint list 1"] {
        ask(&mut client, refused, b"\x01");
    }
    ask(&mut client, "adddouble list 0 0", b"\x01");
    ask(&mut client, "putkeep list v", b"\x01");
    ask(&mut client, "mget list text", b"\0\0\0\0\x01\0\0\0\x04\0\0\0\x02text78");
    ask(&mut client, "fwmkeys li -1", b"\0\0\0\0\x01\0\0\0\x04list");
    ask(&mut client, "misc range 0", b"\0\0\0\0\x02\0\0\0\x04text\0\0\0\x0278");
    ask(&mut client, "misc regex 0 ^l", b"\0\0\0\0\0");
    ask(&mut client, "misc getlist 0 list", b"\0\0\0\0\0");
    ask(&mut client, "misc iterinit 0", b"\0\0\0\0\0");
    ask(&mut client, "misc iternext 0", b"\0\0\0\0\x02\0\0\0\x04text\0\0\0\x0278");
    ask(&mut client, "iterinit", b"\0");
    ask(&mut client, "iternext", b"\0\0\0\0\x04list");
    ask(&mut client, "put list v", b"\0");
    redis.ask(&["GET", "list"], "$1\r\nv\r\n");
    ask(&mut client, "addint n 258", b"\0\0\0\x01\x02");
    redis.ask(&["GET", "n"], "$4\r\n\x02\x01\0\0\r\n");
    ask(&mut client, "adddouble d 1 500000000000", b"\0\0\0\0\0\0\0\0\x01\0\0\0\x74\x6a\x52\x88\0");
    redis.command(&["GETRANGE", "d", "0", "5"]);
    redis.expect(b"$6\r\n\0\0\0\0\0\0\r\n");
}

#[test]
fn quiet_commands_keep_their_order() {
    let server = server(|_| {});
    let mut client = server.connect();
    let mut requests = Vec::new();
    for n in 0..100 {
        requests.extend(request(&format!("putnr k {n}")));
        requests.extend(request("putnr - refused"));
        requests.extend(request("get k"));
    }
    client.send(requests);
    for n in 0..100 {
        let value = n.to_string();
        let len = u32::try_from(value.len()).expect("short").to_be_bytes();
        client.expect([&[0][..], &len, value.as_bytes()].concat());
    }
}

#[test]
fn a_cache_has_no_order() {
    let server = server(|config| {
        let cache: DatabaseConfig =
            toml::from_str("engine = \"cache\"\nbytes = \"8 MiB\"").expect("a database");
        config.databases.insert("cache".to_owned(), cache);
        config.tyrant.database = "cache".to_owned();
    });
    let mut client = server.connect();
    for n in 0..300 {
        ask(&mut client, &format!("put k{n} v"), b"\0");
    }
    ask(&mut client, "addint n 1", b"\0\0\0\0\x01");
    ask(&mut client, "iterinit", b"\0");
    let mut seen = 0;
    loop {
        client.send(request("iternext"));
        let mut code = [0];
        client.0.read_exact(&mut code).expect("a code");
        if code == [1] {
            break;
        }
        let mut len = [0; 4];
        client.0.read_exact(&mut len).expect("a length");
        let mut key = vec![0; u32::from_be_bytes(len) as usize];
        client.0.read_exact(&mut key).expect("a key");
        seen += 1;
    }
    assert_eq!(seen, 301);
    ask(&mut client, "misc range 0", b"\x01\0\0\0\0");
    ask(&mut client, "misc iterinit 0 k1", b"\x01\0\0\0\0");
    ask(&mut client, "fwmkeys k299 -1", b"\0\0\0\0\x01\0\0\0\x04k299");
    ask(&mut client, "misc regex 0 ^k299", b"\0\0\0\0\x02\0\0\0\x04k299\0\0\0\x01v");
    ask(&mut client, "rnum", &[&[0][..], &301_u64.to_be_bytes()].concat());
    ask(&mut client, "vanish", b"\0");
    ask(&mut client, "rnum", &[0; 9]);
    assert!(stat(&mut client).contains("type\thash\n"));
}

#[test]
fn a_list_is_one_transaction() {
    let server = server(|_| {});
    let mut client = server.connect();
    ask(&mut client, "misc putlist 0 a 1 b 2 - 3", b"\x01\0\0\0\0");
    ask(&mut client, "rnum", &[0; 9]);
    ask(&mut client, "misc putlist 0 a 1 b 2 c", b"\0\0\0\0\0");
    ask(&mut client, "misc outlist 0 a -", b"\x01\0\0\0\0");
    ask(&mut client, "rnum", b"\0\0\0\0\0\0\0\0\x02");
}

#[test]
fn sizes_are_bounded() {
    let server = server(|config| {
        config.limits.tyrant_request_bytes_max = 1 << 20;
        config.limits.tyrant_reply_bytes_max = 1024;
    });
    let mut client = server.connect();
    let value = "v".repeat(600);
    for key in ["a", "b"] {
        ask(&mut client, &format!("put {key} {value}"), b"\0");
    }
    for (refused, reply) in [
        ("mget a b", &b"\x01"[..]),
        ("misc getlist 0 a b", b"\x01\0\0\0\0"),
        ("misc range 0", b"\x01\0\0\0\0"),
        ("misc regex 0 .", b"\x01\0\0\0\0"),
    ] {
        ask(&mut client, refused, reply);
    }
    for n in 0..300 {
        ask(&mut client, &format!("put key{n} -"), b"\0");
    }
    ask(&mut client, "fwmkeys key -1", b"\x01");
    // Nothing of a request that is too long is buffered: it is refused by its header.
    client.send(b"\xc8\x10\0\0\0\x01\0\x10\0\0");
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn a_password_keeps_all_of_it() {
    let server = pinned(|config| config.password = Some("sesame".to_owned().into()));
    let refused: [(&[u8], &[u8]); 2] =
        [(b"\xc8\x80", b"\x01"), (b"get k\r\n", b"CLIENT_ERROR unauthenticated\r\n")];
    for (request, reply) in refused {
        let mut client = server.connect();
        client.send(request);
        assert_eq!(client.read_to_end(), reply);
    }
    let put = |headers| server.http("PUT /k", headers, "v").status;
    assert_eq!(put(""), 401);
    assert_eq!(put("authorization: Bearer sesame\r\n"), 201);
}

#[test]
fn one_port_speaks_it_beside_the_others() {
    let server: TestServer = server(|_| {});
    ask(&mut server.connect(), "put k v", b"\0");
    server.connect().ask(&["GET", "k"], "$1\r\nv\r\n");
    assert_eq!(server.http("GET /v1/db/main/k", "", "").text(), "v");
}
