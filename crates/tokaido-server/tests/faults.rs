//! What happens when calls fail: a refusal is an answer, a fault is a line in the log.

mod common;

use common::{TestServer, log::Log};

const LUA: &str = r#"
local tokaido = require "tokaido"
local t = {}
t.sold_out = tokaido.write(function() error { code = "SOLD_OUT", message = "umbrella is sold out" } end)
t.spaced = tokaido.read(function() error { code = "SOLD OUT", message = "no code" } end)
t.plain = tokaido.read(function() error { message = "no umbrella" } end)
t.broken = tokaido.write(function() error "a\nfault" end)
t.wild = tokaido.read(function() while true do end end)
t.page = tokaido.http("GET /page", function() error { code = "GONE", status = 410, message = "gone" } end)
t.torn = tokaido.http("GET /torn", function() return nil + 1 end)
t.odd = tokaido.http("GET /odd", function(_, _, response) response.status = 99 end)
t.shut = tokaido.http("GET /shut", function() error { code = "SHUT", status = 503, message = "shut" } end)
t.full = tokaido.write(function() error { code = "FULL", status = 507, message = "full" } end)
t.early = tokaido.http("GET /early", function() return 103, "early hints end no request" end)
t.long = tokaido.http("PUT /long", function(tx, _, response)
  tx.main:put("written", "v")
  response.headers[("x"):rep(70000)] = "a name that is longer than may be"
end)
t.infinite = tokaido.write(function(tx)
  tx.main:put("written", "v")
  return 1 / 0
end)
return t
"#;

fn count(server: &TestServer, name: &str, procedure: &str) -> String {
    let metrics = server.http("GET /metrics", "", "");
    let start = format!("tokaido_procedure_{name}_total{{procedure=\"{procedure}\"}} ");
    let line = metrics.text().lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("{start}")).rsplit(' ').next().unwrap_or_default().to_owned()
}

/// A single test, because a process has one log.
#[test]
fn refusals_are_counted_and_faults_are_logged() {
    let log = Log::begin();
    let server = TestServer::start_with_lua(LUA, |config| config.limits.script_ms = 50);
    let mut redis = server.connect();

    redis.ask(&["t.sold_out"], "-SOLD_OUT umbrella is sold out\r\n");
    redis.ask(&["FCALL", "t.sold_out", "0"], "-SOLD_OUT umbrella is sold out\r\n");
    redis.ask(&["t.spaced"], "-ERR no code\r\n");
    redis.ask(&["t.plain"], "-ERR no umbrella\r\n");
    let refused = server.http("POST /v1/call/t.sold_out", "", "[]");
    assert_eq!(refused.status, 422);
    let body = "{\"error\":{\"code\":\"SOLD_OUT\",\"message\":\"umbrella is sold out\"}}\n";
    assert_eq!(refused.text(), body);
    assert_eq!(server.http("GET /page", "", "").status, 410);
    let shut = server.http("GET /shut", "", "");
    assert_eq!(
        (shut.status, shut.text()),
        (503, "{\"error\":{\"code\":\"SHUT\",\"message\":\"shut\"}}\n")
    );
    assert_eq!(server.http("POST /v1/call/t.full", "", "[]").status, 507);
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(count(&server, "refusals", "t.sold_out"), "3");
    assert_eq!(count(&server, "errors", "t.sold_out"), "0");
    for procedure in ["t.page", "t.shut", "t.full"] {
        assert_eq!(count(&server, "refusals", procedure), "1", "{procedure}");
        assert_eq!(count(&server, "errors", procedure), "0", "{procedure}");
    }

    redis.command(&["t.broken"]);
    let line = redis.read_line();
    assert!(line.starts_with("-ERR ") && line.contains("t.lua:7: a"), "{line}");
    one_line(
        &log,
        &["procedure=\"t.broken\"", "t.lua:7: a\\nfault", "traceback=\"", "request_id="],
    );
    assert_eq!(count(&server, "errors", "t.broken"), "1");
    assert_eq!(count(&server, "refusals", "t.broken"), "0");

    for (request, status, procedure) in [
        ("POST /v1/call/t.infinite", 422, "t.infinite"),
        ("GET /early", 500, "t.early"),
        ("PUT /long", 500, "t.long"),
        ("POST /v1/call/t.wild", 503, "t.wild"),
        ("GET /torn", 500, "t.torn"),
        ("GET /odd", 500, "t.odd"),
    ] {
        let failed = server.http(request, "", "");
        assert_eq!(failed.status, status, "{}", failed.text());
        let (_, id) = failed.text().split_once("\"request_id\":\"").expect("an id");
        let id = id.split('"').next().unwrap_or_default();
        one_line(&log, &[&format!("procedure=\"{procedure}\""), &format!("\"{id}\""), "ERROR"]);
        assert_eq!(count(&server, "errors", procedure), "1", "{procedure}");
    }
    redis.ask(&["GET", "written"], "$-1\r\n");
}

/// Asserts that the log has one more line, which contains all of these parts.
#[track_caller]
fn one_line(log: &Log, parts: &[&str]) {
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in parts {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
}
