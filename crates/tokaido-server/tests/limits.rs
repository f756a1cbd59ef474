//! Low limits over real sockets: each holds, and its error message states it.

mod common;

use std::{thread, time::Duration};

use common::{Client, TestServer, encode};
use tokaido_server::{Limits, Server};

fn server(limits: Limits) -> TestServer {
    TestServer::start_with(|config| config.limits = limits)
}

fn put(client: &mut Client, keys: &[&str]) {
    for key in keys {
        client.ask(&["SET", key, "v"], "+OK\r\n");
    }
}

#[track_caller]
fn refused(client: &mut Client, arguments: &[&str], why: &str) {
    client.command(arguments);
    let line = client.read_line();
    assert!(line.starts_with('-') && line.contains(why), "{line}");
}

#[test]
fn a_session_queues_and_watches_as_much_as_it_may() {
    let server = server(Limits {
        queued_commands_max: 2,
        queued_bytes_max: 20,
        watched_keys_max: 2,
        request_arguments_max: 5,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.ask(&["MULTI"], "+OK\r\n");
    client.ask(&["GET", "a"], "+QUEUED\r\n");
    client.ask(&["GET", "b"], "+QUEUED\r\n");
    refused(&mut client, &["GET", "c"], "MULTI queues at most 2 commands of 20 bytes");
    refused(&mut client, &["EXEC"], "EXECABORT");
    client.ask(&["MULTI"], "+OK\r\n");
    refused(&mut client, &["GET", "a key of 19 bytes.."], "MULTI queues at most 2 commands");
    refused(&mut client, &["EXEC"], "EXECABORT");
    client.ask(&["WATCH", "a", "b"], "+OK\r\n");
    refused(&mut client, &["WATCH", "c"], "a session watches at most 2 keys");
    client.ask(&["EXISTS", "a", "b", "c", "d"], ":0\r\n");
    refused(&mut client, &["EXISTS", "a", "b", "c", "d", "e"], "Protocol error");
}

#[test]
fn scans_visit_and_are_remembered_as_far_as_they_may() {
    let server = server(Limits {
        scan_cursors_max: 2,
        scan_count_max: 3,
        keys_results_max: 4,
        ..Limits::default()
    });
    let mut client = server.connect();
    put(&mut client, &["a1", "a2", "a3", "a4", "b"]);
    let mut begin = || {
        client.command(&["SCAN", "0", "COUNT", "1000"]);
        let head: Vec<String> = (0..4).map(|_| client.read_line()).collect();
        assert_eq!(head[3], "*3\r\n", "{head:?}");
        client.expect("$2\r\na1\r\n$2\r\na2\r\n$2\r\na3\r\n");
        head[2].trim_end().to_owned()
    };
    let (first, _, last) = (begin(), begin(), begin());
    refused(&mut client, &["SCAN", &first], "is not known any more");
    client.ask(&["SCAN", &last], "*2\r\n$1\r\n0\r\n*2\r\n$2\r\na4\r\n$1\r\nb\r\n");
    client.ask(&["KEYS", "a*"], "*4\r\n$2\r\na1\r\n$2\r\na2\r\n$2\r\na3\r\n$2\r\na4\r\n");
    refused(&mut client, &["KEYS", "*"], "more than 4 keys match");
}

#[test]
fn no_reply_is_longer_than_it_may_be() {
    let server = server(Limits { reply_bytes_max: 1 << 10, ..Limits::default() });
    let mut client = server.connect();
    let text = "x".repeat(60);
    let texts: Vec<String> = (10..60).map(|n| format!("{n}{text}")).collect();
    for n in &texts {
        client.command(&["HSET", "hash", n, n]);
        client.command(&["SADD", "set", n]);
        client.command(&["ZADD", "sorted", "1", n]);
        client.command(&["RPUSH", "list", n]);
        client.command(&["XADD", "stream", &n[..2], "f", n]);
        (0..6).for_each(|_| drop(client.read_line()));
    }
    client.ask(&["XGROUP", "CREATE", "stream", "group", "0"], "+OK\r\n");
    client.ask(&["SET", "long", &"x".repeat(900)], "+OK\r\n");
    for (command, instead) in [
        ("HGETALL hash", "use HSCAN"),
        ("HKEYS hash", "use HSCAN"),
        ("HVALS hash", "use HSCAN"),
        ("HSCAN hash 0 COUNT 1000", "use HSCAN, or ask for fewer"),
        ("HRANDFIELD hash 50", "use HSCAN"),
        ("HRANDFIELD hash -1000", "use HSCAN"),
        ("SMEMBERS set", "use SSCAN"),
        ("SRANDMEMBER set 40", "use SSCAN"),
        ("SPOP set 40", "use SSCAN"),
        ("SPOP set 50", "use SSCAN"),
        ("SINTER set set", "use SSCAN"),
        ("SUNION set nothing", "use SSCAN"),
        ("SDIFF set nothing", "use SSCAN"),
        ("SUNIONSTORE to set", "use SSCAN"),
        ("LRANGE list 0 -1", "use LRANGE, and ask for fewer"),
        ("LPOP list 50", "use LRANGE"),
        ("RPOP list 30", "use LRANGE"),
        ("LMPOP 1 list LEFT COUNT 30", "use LRANGE"),
        ("ZRANGE sorted 0 -1", "use ZSCAN"),
        ("ZRANGEBYSCORE sorted -inf +inf", "use ZSCAN"),
        ("ZRANDMEMBER sorted -1000 WITHSCORES", "use ZSCAN"),
        ("ZPOPMIN sorted 30", "use ZSCAN"),
        ("ZPOPMAX sorted 50", "use ZSCAN"),
        ("ZMPOP 1 sorted MIN COUNT 30", "use ZSCAN"),
        ("ZUNION 1 sorted", "use ZSCAN"),
        ("ZINTER 2 sorted set", "use ZSCAN"),
        ("ZRANGESTORE to sorted 0 -1", "use ZSCAN"),
        ("XRANGE stream - +", "ask for fewer entries with COUNT"),
        ("XREVRANGE stream + - COUNT 40", "ask for fewer entries"),
        ("XREAD STREAMS stream 0", "ask for fewer entries"),
        ("XREADGROUP GROUP group c STREAMS stream >", "ask for fewer entries"),
        ("XCLAIM stream group c 0 10 11 12 13 14 15 16 17 18 19 20 21 FORCE", "ask for fewer"),
        ("XINFO STREAM stream FULL COUNT 0", "ask for fewer entries"),
        ("MGET long long long", "ask for less at a time"),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        client.command(&arguments);
        let line = client.read_line();
        let start = "-ERR the reply would be longer than 1024 bytes (limits.reply_bytes_max); ";
        assert!(line.starts_with(&format!("{start}{instead}")), "{command}: {line}");
    }
    client.ask(&["MULTI"], "+OK\r\n");
    client.ask(&["LPOP", "list"], "+QUEUED\r\n");
    client.ask(&["GET", "long"], "+QUEUED\r\n");
    client.ask(&["GET", "long"], "+QUEUED\r\n");
    refused(&mut client, &["EXEC"], "EXECABORT Transaction discarded because get failed: ERR the");
    // Nothing has changed, and short replies are sent.
    for (command, key) in [
        ("HLEN", "hash"),
        ("SCARD", "set"),
        ("ZCARD", "sorted"),
        ("LLEN", "list"),
        ("XLEN", "stream"),
    ] {
        client.ask(&[command, key], ":50\r\n");
    }
    client.ask(&["EXISTS", "to"], ":0\r\n");
    client.ask(&["SPOP", "set", "0"], "*0\r\n");
    client.ask(&["LPOP", "list", "1"], &format!("*1\r\n$62\r\n{}\r\n", texts[0]));
}

#[test]
fn a_reply_to_a_script_has_the_same_limit() {
    let lua = r#"
local tokaido = require "tokaido"
local t = {}
t.read = tokaido.read(function(tx) return { pcall(tx.command, tx, "HGETALL", "hash") } end)
t.pop = tokaido.write(function(tx) return { pcall(tx.command, tx, "LPOP", "list", "50") } end)
t.wait = tokaido.write(function(tx) return { pcall(tx.command, tx, "BLMPOP", "0", "1", "list", "LEFT", "COUNT", "50") } end)
t.consume = tokaido.write(function(tx) return { pcall(tx.command, tx, "XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">") } end)
return t
"#;
    let limits = Limits { reply_bytes_max: 1 << 10, ..Limits::default() };
    let server = TestServer::start_with_lua(lua, |config| config.limits = limits);
    let mut client = server.connect();
    for n in 10..60 {
        let text = n.to_string().repeat(30);
        client.ask(&["HSET", "hash", &text, ""], ":1\r\n");
        client.command(&["RPUSH", "list", &text]);
        client.read_line();
        client.command(&["XADD", "stream", &n.to_string(), "f", &text]);
        (0..2).for_each(|_| drop(client.read_line()));
    }
    client.ask(&["XGROUP", "CREATE", "stream", "g", "0"], "+OK\r\n");
    let too_long = "the reply would be longer than 1024 bytes";
    client.command(&["t.read"]);
    let lines: Vec<String> = (0..4).map(|_| client.read_line()).collect();
    assert!(lines.iter().any(|line| line.contains(too_long)), "{lines:?}");
    // It may have removed items already, so the script cannot continue.
    for procedure in ["t.pop", "t.wait", "t.consume"] {
        refused(&mut client, &[procedure], too_long);
    }
    client.ask(&["LLEN", "list"], ":50\r\n");
    client.ask(&["XPENDING", "stream", "g"], "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n");
}

#[test]
fn clients_are_told_of_what_they_may_do() {
    let server = server(Limits {
        numbered_databases_max: 3,
        connections_max: 7,
        idle_ms: 90_500,
        value_bytes_max: 5,
        key_bytes_max: 4,
        transaction_writes_max: 3,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.ask(&["SELECT", "2"], "+OK\r\n");
    refused(&mut client, &["SELECT", "3"], "DB index is out of range");
    let settings =
        [("databases", "3"), ("maxclients", "7"), ("timeout", "91"), ("proto-max-bulk-len", "5")];
    for (name, value) in settings {
        let (name_len, value_len) = (name.len(), value.len());
        let reply = format!("*2\r\n${name_len}\r\n{name}\r\n${value_len}\r\n{value}\r\n");
        client.ask(&["CONFIG", "GET", name], &reply);
    }
    client.ask(&["SET", "key4", "12345"], "+OK\r\n");
    refused(&mut client, &["SET", "key", "123456"], "a value has at most 5 bytes");
    refused(&mut client, &["APPEND", "key4", "6"], "a value has at most 5 bytes");
    refused(&mut client, &["SET", "key_5", "v"], "a key has 1 to 4 bytes");
    client.ask(&["MSET", "a", "", "b", "", "c", ""], "+OK\r\n");
    refused(
        &mut client,
        &["MSET", "a", "", "b", "", "c", "", "d", ""],
        "one transaction may write 3 records",
    );
    let response = server.http("PUT /v1/db/main/key", "", "123456");
    assert_eq!(response.status, 413);
    assert!(response.text().contains("at most 5 bytes"), "{}", response.text());
}

#[test]
fn requests_of_http_have_heads_and_pages_as_large_as_they_may() {
    let server = server(Limits {
        http_head_bytes_max: 8 << 10,
        http_headers_max: 5,
        http_page_records_max: 3,
        http_page_bytes_max: 40,
        ..Limits::default()
    });
    put(&mut server.connect(), &["a", "b", "c", "d"]);
    let long = format!("x-long: {}\r\n", "x".repeat(9 << 10));
    assert_eq!(server.http("GET /healthz", &long, "").status, 431);
    let many: String = (0..5).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(server.http("GET /healthz", &many, "").status, 431);
    assert_eq!(server.http("GET /healthz", "x-one: y\r\n", "").status, 200);
    let refused = server.http("GET /v1/db/main?limit=4", "", "");
    assert!(refused.text().contains("a number from 1 to 3"), "{}", refused.text());
    let page = server.http("GET /v1/db/main?values=false", "", "");
    let expected = "{\"key\":\"a\"}\n{\"key\":\"b\"}\n{\"key\":\"c\"}\n{\"next\":\"c\"}\n";
    assert_eq!(page.text(), expected);
    let page = server.http("GET /v1/db/main", "", "");
    let lines = "{\"key\":\"a\",\"value\":\"v\"}\n{\"key\":\"b\",\"value\":\"v\"}\n";
    assert_eq!(page.text(), format!("{lines}{{\"next\":\"b\"}}\n"));
}

/// With the smallest limits, everything continues, one after another.
#[test]
fn queues_and_turns_of_one_serve_everybody() {
    let server = server(Limits {
        writer_queue_max: 1,
        pool_queue_max: 1,
        pool_threads_max: 1,
        group_jobs_max: 1,
        slice_requests_max: 1,
        slice_reply_bytes_max: 1,
        writer_slice_requests_max: 1,
        writer_slice_reply_bytes_max: 1,
        unsent_bytes_max: 1,
        buffer_bytes: 1 << 10,
        buffers_kept_max: 0,
        ..Limits::default()
    });
    let value = "v".repeat(5000);
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (mut client, server, value) = (server.connect(), &server, &value);
            scope.spawn(move || {
                let pipeline = [
                    encode(&["SET", name, value]),
                    encode(&["GET", name]),
                    encode(&["INCR", "n"]),
                    encode(&["ECHO", name]),
                ];
                client.send(pipeline.concat().repeat(20));
                for _ in 0..20 {
                    client.expect(format!("+OK\r\n$5000\r\n{value}\r\n:"));
                    client.read_line();
                    client.expect(format!("$1\r\n{name}\r\n"));
                    let listing = server.http("GET /v1/db/main?limit=1", "", "");
                    assert_eq!(listing.status, 200);
                }
            });
        }
    });
    server.connect().ask(&["GET", "n"], "$2\r\n80\r\n");
}

#[test]
fn a_connection_over_the_limit_is_told_so_as_long_as_it_may_be() {
    let limits = Limits { connections_max: 1, refusal_ms: 20, ..Limits::default() };
    let telling = server(limits.clone());
    let mut first = telling.connect();
    first.ask(&["PING"], "+PONG\r\n");
    // It sends nothing, and still gets the error once its time is over.
    assert!(telling.connect().text_to_end().starts_with("-ERR too many connections"));
    let silent = server(Limits { refusals_max: 0, ..limits });
    let mut first = silent.connect();
    first.ask(&["PING"], "+PONG\r\n");
    assert_eq!(silent.connect().text_to_end(), "");
}

#[test]
fn expired_records_are_removed_as_often_as_they_may_be() {
    let server = server(Limits { expiry_interval_ms: 3_600_000, ..Limits::default() });
    let mut client = server.connect();
    client.ask(&["SET", "k", "v", "PX", "1"], "+OK\r\n");
    // By default, it would be gone by now.
    thread::sleep(Duration::from_millis(1200));
    client.ask(&["GET", "k"], "$-1\r\n");
    client.ask(&["DBSIZE"], ":1\r\n");
}

const LUA: &str = r#"
local tokaido = require "tokaido"
local t = {}
t.get = tokaido.read(function(tx, key) return tx.main:get(key) end)
t.many = tokaido.read(function(tx, ...) return tx.main:get_many({ ... }) end)
t.query = tokaido.http("GET /query", function(tx, req) return req.query.b or "left out" end)
t.long = tokaido.http("GET /long", function() return ("x"):rep(100) end)
return t
"#;

/// How many reads were answered by the workers themselves, or by the pool.
fn calls(server: &TestServer, thread: &str) -> u64 {
    let metrics = server.http("GET /metrics", "", "");
    let is_meant = |line: &&str| {
        line.contains("protocol=\"resp\"") && line.contains(&format!("=\"{thread}\""))
    };
    let lines = metrics.text().lines().filter(is_meant);
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

#[test]
fn workers_run_procedures_that_are_as_short_as_they_may_be() {
    for (script_short_us, pool_calls) in [(0, 20..=20), (1_000_000, 3..=3)] {
        let server = TestServer::start_with_lua(LUA, |config| {
            config.limits.script_short_us = script_short_us;
        });
        let mut client = server.connect();
        for _ in 0..20 {
            client.ask(&["t.get", "k"], "$-1\r\n");
        }
        let given = calls(&server, "pool");
        assert!(pool_calls.contains(&given), "{given} calls in the pool with {script_short_us} µs");
    }
}

#[test]
fn procedures_bring_and_answer_as_much_as_they_may() {
    let server = TestServer::start_with_lua(LUA, |config| {
        config.limits.script_many_keys_max = 2;
        config.limits.http_query_pairs_max = 1;
        config.limits.http_response_bytes_max = 99;
    });
    let mut client = server.connect();
    refused(&mut client, &["t.many", "a", "b", "c"], "at most 2 keys or arguments");
    assert_eq!(server.http("GET /query?a=1&b=2", "", "").text(), "left out");
    assert_eq!(server.http("GET /long", "", "").status, 500);
}

#[test]
fn procedure_files_are_as_many_and_as_long_as_they_may() {
    let directory = tempfile::tempdir().expect("a directory");
    let procedures = directory.path().join("procedures");
    std::fs::create_dir(&procedures).expect("a directory");
    for name in ["a.lua", "b.lua"] {
        std::fs::write(procedures.join(name), "return {}").expect("a file");
    }
    let start = |limits| {
        let mut config = common::config(directory.path());
        config.procedures = Some(procedures.clone());
        config.limits = limits;
        Server::start(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let many = start(Limits { procedure_files_max: 1, ..Limits::default() });
    assert!(many.contains("b.lua is one too many; 1 may be loaded"), "{many}");
    let long = start(Limits { procedure_file_bytes_max: 8, ..Limits::default() });
    assert!(long.contains("a.lua is longer than 8 bytes"), "{long}");
    assert_eq!(start(Limits::default()), "");
}
