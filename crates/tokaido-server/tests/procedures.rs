//! Procedures over both protocols, including runaway procedures.

mod common;

use std::thread;

use common::TestServer;

const LUA: &str = r#"
local tokaido = require "tokaido"
local t = {}

t.count = tokaido.write(function(tx, page, by)
  return tx.main:increment(page, by or 1)
end)

t.get = tokaido.read(function(tx, key) return tx.main:get(key) end)

t.echo = tokaido.read(function(tx, ...) return { ... } end)

t.half = tokaido.write(function(tx, key)
  tx.main:put(key, "half")
  error("changed my mind")
end)

t.refuse = tokaido.read(function()
  error { message = "sold out", code = "SOLDOUT", status = 409 }
end)

t.refuse_route = tokaido.http("GET /refuse", function() error { message = "not today" } end)

t.forever = tokaido.read(function() while true do end end)

t.forever_write = tokaido.write(function(tx)
  tx.main:put("half", "written")
  while true do end
end)

t.hello = tokaido.http("GET /hello", function(tx, req, res)
  return "hello " .. (req.query.name or "world")
end)

t.visit = tokaido.http("POST /visits/:page", function(tx, req, res)
  return tostring(tx.main:increment(req.params.page, 1))
end)

t.broken = tokaido.http("GET /broken", function() error("inside") end)

t.command = tokaido.write(function(tx, ...) return tx:command(...) end)

t.command_route = tokaido.http("POST /command/:key", function(tx, req)
  return tostring(tx:command("INCRBY", req.params.key, 2))
end)

return t
"#;

#[test]
fn a_procedure_is_called_over_both_protocols() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    assert!(server.server.load_errors().is_empty(), "{:?}", server.server.load_errors());
    let mut client = server.connect();
    client.ask(&["FCALL", "t.count", "1", "/index"], ":1\r\n");
    client.ask(&["t.count", "/index"], ":2\r\n");
    let called = server.http("POST /v1/call/t.count", "", r#"["/index", 9007199254740993]"#);
    assert_eq!((called.status, called.text()), (200, "{\"result\":9007199254740995}\n"));
    let called = server.http("POST /v1/call/t.get", "", r#"{"arguments": ["/index"]}"#);
    assert_eq!(called.text(), "{\"result\":\"9007199254740995\"}\n");
    let called = server.http("POST /v1/call/t.echo", "", r#"[true, -1.5, "日", [1], {"a": 2}]"#);
    assert_eq!(called.text(), "{\"result\":[true,-1.5,\"日\",[1],{\"a\":2}]}\n");
}

#[test]
fn a_procedure_runs_commands_over_both_protocols() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    let mut client = server.connect();
    client.ask(&["t.command", "INCR", "k"], ":1\r\n");
    let called = server.http("POST /v1/call/t.command", "", r#"["INCRBY", "k", 40]"#);
    assert_eq!(called.text(), "{\"result\":41}\n");
    assert_eq!(server.http("POST /command/k", "", "").text(), "43");
    let refused = server.http("POST /v1/call/t.command", "", r#"["MULTI"]"#);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("not allowed from script"), "{}", refused.text());
}

#[test]
fn a_read_procedure_sees_the_writes_before_it_in_the_pipeline() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    let mut client = server.connect();
    for i in 10..99 {
        client.send(format!("SET k {i}\r\nt.get k\r\nGET k\r\nt.get k\r\nINCR k\r\n"));
        client.expect(format!("+OK\r\n$2\r\n{i}\r\n$2\r\n{i}\r\n$2\r\n{i}\r\n:{}\r\n", i + 1));
    }
}

#[test]
fn what_a_procedure_raises_is_told_and_nothing_remains() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    let failed = server.http("POST /v1/call/t.half", "", r#"["k"]"#);
    assert_eq!(failed.status, 422);
    assert!(failed.text().contains("changed my mind"), "{}", failed.text());
    assert!(failed.text().contains("\"traceback\":"), "{}", failed.text());
    assert!(failed.text().contains("t.lua:15"), "{}", failed.text());
    let mut client = server.connect();
    client.command(&["t.half", "k"]);
    assert!(client.read_line().starts_with("-ERR "));
    client.ask(&["GET", "k"], "$-1\r\n");
}

#[test]
fn a_procedure_may_say_no_in_its_own_words() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    let refused = server.http("POST /v1/call/t.refuse", "", "");
    let expected = "{\"error\":{\"code\":\"SOLDOUT\",\"message\":\"sold out\"}}\n";
    assert_eq!((refused.status, refused.text()), (409, expected));
    let refused = server.http("GET /refuse", "", "");
    assert_eq!(
        (refused.status, refused.text()),
        (422, "{\"error\":{\"message\":\"not today\"}}\n")
    );
}

#[test]
fn routes_answer() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    for _ in 0..10 {
        // In the pool at first, then on the worker.
        assert_eq!(server.http("GET /hello?name=you", "", "").text(), "hello you");
    }
    assert_eq!(server.http("POST /visits/a%20b", "", "").text(), "1");
    assert_eq!(server.http("POST /visits/a%20b", "", "x").text(), "2");
    server.connect().ask(&["GET", "a b"], "$1\r\n2\r\n");
    let wrong = server.http("DELETE /hello", "", "");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    let failed = server.http("GET /broken", "", "");
    assert_eq!(failed.status, 500);
    assert!(!failed.text().contains("traceback"), "{}", failed.text());
    assert_eq!(server.http("POST /v1/call/t.hello", "", "").status, 400);
}

#[test]
fn a_runaway_is_stopped_and_stops_nobody() {
    let server = TestServer::start_with_lua(LUA, |config| {
        config.workers = 1;
        config.limits.script_ms = 1500;
    });
    let mut other = server.connect();
    other.ask(&["PING"], "+PONG\r\n");
    thread::scope(|scope| {
        let runaway = scope.spawn(|| server.http("POST /v1/call/t.forever", "", ""));
        let mut client = server.connect();
        client.command(&["t.forever"]);
        // The worker answers all this while both runaways run.
        for _ in 0..20 {
            other.ask(&["PING"], "+PONG\r\n");
        }
        client.0.set_nonblocking(true).expect("a socket");
        assert!(client.0.peek(&mut [0]).is_err(), "the others had to wait for the runaway");
        client.0.set_nonblocking(false).expect("a socket");
        let line = client.read_line();
        assert!(line.starts_with("-ERR t.forever was stopped after 1500 ms"), "{line}");
        assert_eq!(runaway.join().expect("it answers").status, 503);
    });
    let stopped = server.http("POST /v1/call/t.forever_write", "", "");
    assert_eq!(stopped.status, 503);
    other.ask(&["GET", "half"], "$-1\r\n");
    other.ask(&["SET", "k", "1"], "+OK\r\n");
}

#[test]
fn procedures_are_counted() {
    let server = TestServer::start_with_lua(LUA, |_| {});
    server.connect().ask(&["t.count", "k"], ":1\r\n");
    server.http("POST /v1/call/t.count", "", r#"["k"]"#);
    server.http("POST /v1/call/t.half", "", r#"["k"]"#);
    let metrics = server.http("GET /metrics", "", "");
    for line in [
        "tokaido_procedure_calls_total{procedure=\"t.count\"} 2",
        "tokaido_procedure_errors_total{procedure=\"t.half\"} 1",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "{line} in\n{}", metrics.text());
    }
}

#[test]
fn a_write_whose_result_has_no_form_in_json_leaves_nothing() {
    let lua = r#"
        local tokaido = require "tokaido"
        return {
            nan = tokaido.write(function(tx) tx.main:put("k", "v"); return 0 / 0 end),
        }
    "#;
    let server = TestServer::start_with_lua(lua, |_| {});
    let response = server.http("POST /v1/call/t.nan", "", "");
    assert_eq!(response.status, 422);
    assert!(response.text().contains("no form in JSON"), "{}", response.text());
    assert_eq!(server.http("GET /v1/db/main/k", "", "").status, 404);
}
