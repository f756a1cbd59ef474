//! HTTP over real sockets: records, listings, bad input.

mod common;

use std::{thread, time::Duration};

use common::TestServer;
use tokaido_server::Config;

#[test]
fn a_record_is_put_read_and_deleted() {
    let server = TestServer::start();
    let put = server.http("PUT /v1/db/main/k", "", "value");
    assert_eq!(put.status, 201);
    let got = server.http("GET /v1/db/main/k", "", "");
    assert_eq!((got.status, got.text()), (200, "value"));
    assert_eq!(got.header("content-type"), Some("application/octet-stream"));
    assert_eq!(got.header("etag"), put.header("etag"));
    assert_eq!(server.http("PUT /v1/db/main/k", "", "other").status, 204);
    assert_eq!(server.http("DELETE /v1/db/main/k", "", "").status, 204);
    assert_eq!(server.http("GET /v1/db/main/k", "", "").status, 404);
    assert_eq!(server.http("DELETE /v1/db/main/k", "", "").status, 404);
}

#[test]
fn keys_and_values_are_bytes_and_every_protocol_sees_them() {
    let server = TestServer::start();
    assert_eq!(server.http("PUT /v1/db/main/a/b%2Fc%20%E6%97%A5", "", b"\x00\xff").status, 201);
    let mut client = server.connect();
    client.command(&["GET", "a/b/c 日"]);
    client.expect(b"$2\r\n\x00\xff\r\n");
    client.ask(&["SET", "plain", "1"], "+OK\r\n");
    assert_eq!(server.http("GET /v1/db/main/plain", "", "").text(), "1");
}

#[test]
fn flags_and_expiry_travel_in_headers() {
    let server = TestServer::start();
    let headers = "tokaido-flags: 7\r\ntokaido-expires-at-ms: 99999999999999\r\n";
    server.http("PUT /v1/db/main/k", headers, "v");
    let got = server.http("GET /v1/db/main/k", "", "");
    assert_eq!(got.header("tokaido-flags"), Some("7"));
    assert_eq!(got.header("tokaido-expires-at-ms"), Some("99999999999999"));
    server.http("PUT /v1/db/main/gone", "tokaido-expires-at-ms: 1\r\n", "v");
    assert_eq!(server.http("GET /v1/db/main/gone", "", "").status, 404);
    server.http("PUT /v1/db/main/later", "tokaido-ttl-ms: 60000\r\n", "v");
    let later = server.http("GET /v1/db/main/later", "", "");
    assert!(later.header("tokaido-expires-at-ms").is_some());
    for bad in ["tokaido-ttl-ms: -1\r\n", "tokaido-flags: x\r\n", "tokaido-flags: 4294967296\r\n"] {
        assert_eq!(server.http("PUT /v1/db/main/k", bad, "v").status, 400, "{bad}");
    }
}

#[test]
fn preconditions_guard_writes_and_spare_reads() {
    let server = TestServer::start();
    let only_new = "if-none-match: *\r\n";
    let first = server.http("PUT /v1/db/main/k", only_new, "1");
    assert_eq!(first.status, 201);
    assert_eq!(server.http("PUT /v1/db/main/k", only_new, "2").status, 412);
    let tag = first.header("etag").expect("a tag");
    let if_match = format!("if-match: {tag}\r\n");
    assert_eq!(server.http("PUT /v1/db/main/k", &if_match, "3").status, 204);
    assert_eq!(server.http("PUT /v1/db/main/k", &if_match, "4").status, 412);
    assert_eq!(server.http("DELETE /v1/db/main/k", &if_match, "").status, 412);
    let got = server.http("GET /v1/db/main/k", "", "");
    assert_eq!(got.text(), "3");
    let unchanged = format!("if-none-match: {}\r\n", got.header("etag").expect("a tag"));
    let again = server.http("GET /v1/db/main/k", &unchanged, "");
    assert_eq!((again.status, again.text()), (304, ""));
    assert_eq!(server.http("PUT /v1/db/main/none", "if-match: *\r\n", "1").status, 412);
}

#[test]
fn a_listing_has_pages() {
    let server = TestServer::start();
    for key in ["a", "b/1", "b/2", "b/3", "%FF"] {
        server.http(&format!("PUT /v1/db/main/{key}"), "", format!("value of {key}"));
    }
    let list = |query: &str| {
        let listing = server.http(&format!("GET /v1/db/main?{query}"), "", "");
        assert_eq!(listing.header("content-type"), Some("application/x-ndjson"));
        listing.text().to_owned()
    };
    insta::assert_snapshot!(list("prefix=b/&limit=2"), @r#"
    {"key":"b/1","value":"value of b/1"}
    {"key":"b/2","value":"value of b/2"}
    {"next":"b/2"}
    "#);
    insta::assert_snapshot!(list("prefix=b/&limit=2&after=b/2"), @r#"{"key":"b/3","value":"value of b/3"}"#);
    insta::assert_snapshot!(list("values=false&reverse=true&limit=1"), @r#"
    {"key_base64":"/w=="}
    {"next_base64":"/w=="}
    "#);
    insta::assert_snapshot!(list("values=false&reverse=true&after_base64=/w%3D%3D&from=b/2"), @r#"
    {"key":"b/3"}
    {"key":"b/2"}
    "#);
    insta::assert_snapshot!(list("values=false&from=b&before=b/3"), @r#"
    {"key":"b/1"}
    {"key":"b/2"}
    "#);
    insta::assert_snapshot!(list("values=false&from=b/2&to=b/3&reverse=true"), @r#"
    {"key":"b/3"}
    {"key":"b/2"}
    "#);
    assert_eq!(server.http("GET /v1/db/nothing", "", "").status, 404);
    assert_eq!(server.http("GET /v1/db/main?limit=no", "", "").status, 400);
}

#[test]
fn the_databases_are_listed_with_what_they_hold() {
    let server = TestServer::start();
    server.http("PUT /v1/db/stations/53", "", "Otsu");
    let listing = server.http("GET /v1/db", "", "");
    insta::assert_snapshot!(listing.text(), @r#"{"databases":[{"engine":"tree","key_bytes":0,"name":"main","records":0,"value_bytes":0},{"engine":"cache","key_bytes":0,"name":"memcached","records":0,"value_bytes":0},{"engine":"tree","key_bytes":2,"name":"stations","records":1,"value_bytes":4}]}"#);
}

#[test]
fn a_pipeline_of_requests_keeps_its_order() {
    let server = TestServer::start();
    let mut client = server.connect();
    let mut requests = Vec::new();
    for i in 0..100 {
        let put = format!(
            "PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n{i:03}"
        );
        requests.extend_from_slice(put.as_bytes());
        requests.extend_from_slice(b"GET /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    client.send(&requests);
    for i in 0..100 {
        assert!(matches!(client.response().status, 201 | 204));
        assert_eq!(client.response().text(), format!("{i:03}"));
    }
}

#[test]
fn requests_may_come_with_a_pause_anywhere() {
    let server = TestServer::start();
    let requests = b"GET /v1/db/main/none HTTP/1.1\r\nhost: localhost\r\n\r\n\
        PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nvalue\
        \r\n\
        PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\nnew\r\n0\r\n\r\n\
        GET /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\n\r\n";
    server.http("PUT /v1/db/main/k", "", "old");
    for cut in 0..=requests.len() {
        let (first, rest) = requests.split_at(cut);
        let mut client = server.connect();
        client.send(first);
        // So that the server sees that no more has arrived yet.
        thread::sleep(Duration::from_millis(3));
        client.send(rest);
        let statuses: Vec<u16> = (0..3).map(|_| client.response().status).collect();
        assert_eq!(statuses, [404, 204, 204], "cut at {cut}");
        let got = client.response();
        assert_eq!((got.status, got.text()), (200, "new"), "cut at {cut}");
    }
}

#[test]
fn a_head_has_no_body() {
    let server = TestServer::start();
    server.http("PUT /v1/db/main/k", "", "value");
    let mut client = server.connect();
    client.send("HEAD /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let head = client.text_to_end();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("content-length: 5\r\n"), "{head}");
}

#[test]
fn options_tells_the_methods() {
    let server = TestServer::start_with_lua(PAGE, |_| {});
    for (path, methods) in [
        ("*", "DELETE, GET, HEAD, OPTIONS, POST, PUT"),
        ("/v1/db/main/k", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/v1/db/main", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/call/t.one", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/page", "GET, HEAD, OPTIONS"),
    ] {
        let told = server.http(&format!("OPTIONS {path}"), "", "");
        assert_eq!((told.status, told.header("allow")), (204, Some(methods)), "{path}");
    }
}

#[test]
fn tags_come_in_lists() {
    let server = TestServer::start();
    let put = server.http("PUT /v1/db/main/k", "", "1");
    let tag = put.header("etag").expect("a tag").to_owned();
    let lists =
        [format!("if-match: \"x\", {tag}\r\n"), format!("if-match: \"x\"\r\nif-match: {tag}\r\n")];
    for list in lists {
        let written = server.http("PUT /v1/db/main/other", &list, "1");
        assert_eq!(written.status, 412, "{list}");
        assert_eq!(server.http("GET /v1/db/main/k", &list, "").status, 200, "{list}");
        let list = list.replace("if-match", "if-none-match");
        assert_eq!(server.http("GET /v1/db/main/k", &list, "").status, 304, "{list}");
    }
    let weak = format!("if-none-match: W/{tag}\r\n");
    assert_eq!(server.http("GET /v1/db/main/k", &weak, "").status, 304);
    let weak = format!("if-match: W/{tag}\r\n");
    assert_eq!(server.http("DELETE /v1/db/main/k", &weak, "").status, 412);
}

#[test]
fn what_is_not_there_or_not_allowed_is_said() {
    let server = TestServer::start();
    for path in ["/", "/nothing", "/v1", "/v1/", "/v1/other", "/v1/db/main/k", "/v1/db/other/k"] {
        let response = server.http(&format!("GET {path}"), "", "");
        assert_eq!(response.status, 404, "{path}");
        assert!(response.text().starts_with("{\"error\":{\"message\":\""), "{}", response.text());
    }
    let response = server.http("POST /v1/db/main/k", "", "v");
    assert_eq!(response.status, 405);
    assert_eq!(response.header("allow"), Some("DELETE, GET, HEAD, OPTIONS, PUT"));
    assert_eq!(server.http("GET /v1/call/x", "", "").status, 405);
    assert_eq!(server.http("POST /v1/call/x", "", "[]").status, 404);
    assert_eq!(server.http("POST /v1/call/x", "", "{").status, 400);
    assert_eq!(server.http("PUT /v1/db/main/%zz", "", "v").status, 400);
    assert_eq!(server.http("PUT /v1/db/-bad-/k", "", "v").status, 400);
    let long = "k".repeat(5000);
    assert_eq!(server.http(&format!("PUT /v1/db/main/{long}"), "", "v").status, 400);
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_has_come() {
    let server = TestServer::start_with(|config| config.limits.http_body_bytes_max = 10);
    assert_eq!(server.http("PUT /v1/db/main/k", "", "0123456789").status, 201);
    let mut client = server.connect();
    client.send("PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 11\r\n\r\n");
    assert_eq!(client.response().status, 413);
    let mut client = server.connect();
    let head =
        "PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(format!("{head}b\r\n01234567890\r\n"));
    assert_eq!(client.response().status, 413);
}

#[test]
fn bad_requests_are_answered_and_closed() {
    let server = TestServer::start();
    let chunked =
        "PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let many_headers: String = (0..2000).map(|i| format!("h{i}: x\r\n")).collect();
    let cases = [
        ("GET / HTTP/1.1\r\nno colon here\r\n\r\n".to_owned(), 400, "a header is a name, a colon"),
        ("G\u{1}T / HTTP/1.1\r\n\r\n".to_owned(), 400, "METHOD TARGET HTTP/1.1"),
        (
            "PUT / HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(),
            400,
            "Content-Length comes once",
        ),
        (format!("{chunked}1\nv\r\n0\r\n\r\n"), 400, "a chunk is its size in hexadecimal digits"),
        ("GET /a<b HTTP/1.1\r\n\r\n".to_owned(), 400, "percent-encoded"),
        (format!("GET / HTTP/1.1\r\n{many_headers}\r\n"), 431, "at most 100 headers"),
        (format!("GET / HTTP/1.1\r\nh: {}\r\n\r\n", "x".repeat(1 << 20)), 431, "at most "),
    ];
    for (request, status, message) in cases {
        let mut client = server.connect();
        // The server may close before a long request is completely sent.
        let _ = std::io::Write::write_all(&mut client.0, request.as_bytes());
        let answer = client.text_to_end();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{expected} {answer} {}", &request[..20]);
        assert!(answer.contains(message), "{message} {answer}");
    }
    assert_eq!(server.http("GET /healthz", "", "").status, 200);
}

#[test]
fn a_slow_drip_is_ended() {
    let server = TestServer::start_with(|config| config.limits.request_ms = 50);
    let mut head = server.connect();
    head.send("GET / HTTP/1.1\r\nhost:");
    assert!(head.text_to_end().starts_with("HTTP/1.1 408 "));
    let mut body = server.connect();
    body.send("PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n01234");
    let answer = body.text_to_end();
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("within 50 ms"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(server.http("GET /v1/db/main/k", "", "").status, 404);
}

const PAGE: &str = "local tokaido = require 'tokaido'\n\
    return { page = tokaido.http('GET /page', function() return 'a page' end),\n\
    one = tokaido.read(function() return 1 end) }\n";

#[test]
fn the_password_opens_all_but_health_is_open() {
    let password = |config: &mut Config| config.password = Some("sesame".into());
    let server = TestServer::start_with_lua(PAGE, password);
    let bearer = "authorization: Bearer sesame\r\n";
    // All endpoints, and some that do not exist: no one may learn which without a password.
    for (request, body, status) in [
        ("PUT /v1/db/main/k", "v", 201),
        ("GET /v1/db/main/k", "", 200),
        ("GET /v1/db/main", "", 200),
        ("GET /v1/db", "", 200),
        ("DELETE /v1/db/main/k", "", 204),
        ("POST /v1/call/t.one", "", 200),
        ("POST /v1/call/t.none", "", 404),
        ("POST /v1/call/t.page", "", 400),
        ("GET /page", "", 200),
        ("POST /page", "", 405),
        ("GET /metrics", "", 200),
        ("POST /metrics", "", 405),
        ("GET /v1/nothing", "", 404),
        ("GET /nothing", "", 404),
    ] {
        let refused = server.http(request, "", body);
        assert_eq!(refused.status, 401, "{request}");
        assert!(refused.header("www-authenticate").is_some());
        assert_eq!(server.http(request, bearer, body).status, status, "{request}");
    }
    assert_eq!(server.http("GET /healthz", "", "").status, 200);
    let wrong = "authorization: Bearer simsim\r\n";
    assert_eq!(server.http("GET /v1/db", wrong, "").status, 401);
    let basic = "authorization: Basic YW55b25lOnNlc2FtZQ==\r\n";
    assert_eq!(server.http("GET /metrics", basic, "").status, 200);
}

#[test]
fn pages_of_other_sites_are_kept_out() {
    let server = TestServer::start();
    let from_elsewhere = "sec-fetch-site: cross-site\r\n";
    assert_eq!(server.http("PUT /v1/db/main/k", from_elsewhere, "v").status, 403);
    assert_eq!(
        server.http("PUT /v1/db/main/k", "sec-fetch-site: same-origin\r\n", "v").status,
        201
    );
}

#[test]
fn the_metrics_count_what_happened() {
    let server = TestServer::start();
    server.http("PUT /v1/db/main/k", "", "value");
    server.http("GET /nothing", "", "");
    server.connect().ask(&["PING"], "+PONG\r\n");
    let metrics = server.http("GET /metrics", "", "");
    for line in [
        "tokaido_requests_total{protocol=\"http\",place=\"writer\"} 1",
        "tokaido_requests_total{protocol=\"resp\",place=\"worker\"} 1",
        "tokaido_request_errors_total{protocol=\"http\"} 1",
        "tokaido_database_records{database=\"main\"} 1",
        "tokaido_database_value_bytes{database=\"main\"} 5",
        "tokaido_connections_total 4",
        "tokaido_write_group_jobs_count 1",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "{line} in\n{}", metrics.text());
    }
    for name in ["memtable_bytes", "memtable_held_bytes", "log_bytes", "base_bytes", "runs_bytes"] {
        let start = format!("tokaido_{name} ");
        assert!(metrics.text().lines().any(|l| l.starts_with(&start)), "{name}");
    }
}
