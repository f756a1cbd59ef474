//! Every procedure, with what it returns and how it fails.

use std::{fmt::Write as _, io::Write as _};

use tokaido_server::DatabaseConfig;
use tokaido_wire::kyoto::{ContentType, PROCEDURES, Pairs, columns};

use crate::{
    call,
    common::{Client, Response},
    server,
};

/// Sends `call name=value …` as Kyoto Tycoon's own client does.
fn send(client: &mut Client, line: &str) -> Response {
    let (procedure, inputs) = line.split_once(' ').unwrap_or((line, ""));
    let mut body = Vec::new();
    for (name, value) in inputs.split(' ').filter_map(|input| input.split_once('=')) {
        let _ = writeln!(&mut body, "{name}\t{value}");
    }
    let headers = "content-type: text/tab-separated-values; colenc=U\r\n";
    client.send_http(&format!("POST /rpc/{procedure}"), headers, &body);
    client.response()
}

/// The outputs, percent-encoded.
fn show(response: &Response) -> String {
    let content_type = ContentType::parse(response.header("content-type").expect("a type"));
    let mut outputs = Pairs::new();
    content_type.read(&response.body, &mut outputs).expect("pairs");
    let mut shown = response.status.to_string();
    for (name, value) in outputs {
        let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains(char::is_control) => text.to_owned(),
            _ => {
                let mut escaped = Vec::new();
                columns::escape(bytes, &mut escaped);
                String::from_utf8(escaped).expect("ASCII")
            }
        };
        let value = text(&value);
        // Cut off an id that differs from run to run.
        let value = value.split(" as ").next().unwrap_or_default();
        let _ = write!(shown, "  {}={value}", text(&name));
    }
    shown
}

#[test]
fn calls_give_what_the_specification_says() {
    let server = server(|_| {});
    let mut client = server.connect();
    let mut transcript = String::new();
    for line in include_str!("calls.txt").lines() {
        let _ = writeln!(transcript, "{line}");
        if !line.is_empty() && !line.starts_with('#') {
            let _ = writeln!(transcript, "    {}", show(&send(&mut client, line)));
        }
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn every_procedure_is_there() {
    let server = server(|_| {});
    let mut client = server.connect();
    let calls = include_str!("calls.txt");
    for procedure in PROCEDURES {
        let is_tried = calls.lines().any(|line| line.split(' ').next() == Some(procedure.name));
        assert!(is_tried || procedure.name == "report", "{} is not tried", procedure.name);
        let error = call(&mut client, procedure.name, "WAITTIME\t0.01\n").1;
        assert!(!error.contains("not implemented:"), "{error}");
    }
}

#[test]
fn report_tells_of_the_server() {
    let server = server(|_| {});
    let mut client = server.connect();
    call(&mut client, "set", "key\tk\nvalue\tvv\n");
    call(&mut client, "get", "key\tk\n");
    call(&mut client, "get", "key\tmissing\n");
    call(&mut client, "set_bulk", "DB\t1\n_a\t1\n_b\t2\n");
    let (status, report) = call(&mut client, "report", "");
    assert_eq!(status, 200);
    for line in [
        "db_0\tcount=1 size=3 path=main",
        "db_1\tcount=2 size=4 path=second",
        "db_total_count\t3",
        "db_total_size\t7",
        "serv_conn_count\t1",
        "serv_thread_count\t2",
        "cnt_set\t3",
        "cnt_set_misses\t0",
        "cnt_get\t2",
        "cnt_get_misses\t1",
    ] {
        assert!(report.lines().any(|given| given == line), "{line}: {report}");
    }
}

#[test]
fn inputs_come_in_every_form() {
    let server = server(|_| {});
    let mut client = server.connect();
    let tsv = "text/tab-separated-values";
    let form = "application/x-www-form-urlencoded";
    for (target, content_type, body) in [
        ("POST /rpc/set", tsv, "key\tk\nvalue\tv 1"),
        ("POST /rpc/set", &format!("{tsv}; colenc=B"), "a2V5\taw==\ndmFsdWU=\tdiAx\n"),
        ("POST /rpc/set", &format!("{tsv}; colenc=Q"), "key\t=6B\nvalue\tv=201\n"),
        ("POST /rpc/set", &format!("{tsv}; colenc=U"), "key\t%6b\nvalue\tv+1\n"),
        ("POST /rpc/set", form, "key=k&value=v+1"),
        ("POST /rpc/set?key=k&value=v+1", "text/plain", "ignored"),
        ("POST /rpc/set?key=other", tsv, "key\tk\nvalue\tv 1"),
    ] {
        let headers = format!("content-type: {content_type}\r\n");
        client.send_http(target, &headers, body.as_bytes());
        assert_eq!(client.response().status, 200, "{target} {content_type}");
        client.send_http("GET /rpc/get?key=k", "", b"");
        let response = client.response();
        assert_eq!(response.header("content-type"), Some("text/tab-separated-values"));
        assert_eq!((response.status, response.text()), (200, "value\tv 1\n"), "{content_type}");
        client.send_http("GET /rpc/remove?key=k", "", b"");
        assert_eq!(client.response().status, 200, "{target} {content_type}");
    }
    let headers = format!("content-type: {tsv}; colenc=B\r\n");
    client.send_http("POST /rpc/set", &headers, b"*\t*\n");
    assert_eq!(client.response().status, 400);
}

#[test]
fn a_cache_has_cursors_that_go_forward() {
    let server = server(|config| {
        let cache: DatabaseConfig =
            toml::from_str("engine = \"cache\"\nbytes = \"8 MiB\"").expect("a database");
        config.databases.insert("cache".to_owned(), cache);
    });
    let mut client = server.connect();
    let mut records: Vec<_> = (0..300).map(|n| format!("k{n}")).collect();
    let body: String = records.iter().map(|key| format!("_{key}\tv\n")).collect();
    assert_eq!(
        call(&mut client, "set_bulk", &format!("DB\tcache\n{body}")),
        (200, "num\t300\n".into())
    );
    assert_eq!(call(&mut client, "cur_jump", "DB\tcache\nCUR\t1\n").0, 200);
    let mut seen = Vec::new();
    loop {
        let (status, key) = call(&mut client, "cur_get_key", "CUR\t1\nstep\t\n");
        if status != 200 {
            assert_eq!((status, key.as_str()), (450, "ERROR\tDB: 7: no record: no record\n"));
            break;
        }
        seen.push(key.trim().trim_start_matches("key\t").to_owned());
    }
    seen.sort();
    records.sort();
    assert_eq!(seen, records);
    for back in ["cur_jump_back", "cur_step_back"] {
        call(&mut client, "cur_jump", "DB\tcache\nCUR\t1\n");
        assert_eq!(call(&mut client, back, "DB\tcache\nCUR\t1\n").0, 501, "{back}");
    }
    assert_eq!(call(&mut client, "cur_jump", "CUR\t1\nkey\tk1\n").0, 501);
    let (_, matched) = call(&mut client, "match_prefix", "DB\tcache\nprefix\tk29\n");
    assert!(matched.ends_with("num\t11\n"), "{matched}");
}

#[test]
fn cursors_belong_to_a_connection_and_are_bounded() {
    let server = server(|config| config.limits.kyoto_cursors_max = 2);
    let (mut client, mut other) = (server.connect(), server.connect());
    call(&mut client, "set", "key\tk\nvalue\tv\n");
    for number in 1..=2 {
        assert_eq!(call(&mut client, "cur_jump", &format!("CUR\t{number}\n")).0, 200);
    }
    let (status, error) = call(&mut client, "cur_jump", "CUR\t3\n");
    assert!(status == 400 && error.contains("limits.kyoto_cursors_max"), "{status} {error}");
    assert_eq!(call(&mut other, "cur_get", "CUR\t1\n").0, 450, "it stands nowhere there");
    assert_eq!(call(&mut client, "cur_delete", "CUR\t1\n").0, 200);
    assert_eq!(call(&mut client, "cur_jump", "CUR\t3\n").0, 200);
}

#[test]
fn a_reply_is_bounded() {
    let server = server(|config| config.limits.kyoto_reply_bytes_max = 1024);
    let mut client = server.connect();
    let body: String = (0..200).map(|n| format!("_long-key-{n}\t0123456789\n")).collect();
    assert_eq!(call(&mut client, "set_bulk", &body).0, 200);
    for (procedure, body) in [
        ("get_bulk", body.as_str()),
        ("match_prefix", "prefix\t\n"),
        ("match_regex", "regex\t.\n"),
        ("match_similar", "origin\tlong-key-1\nrange\t9\n"),
    ] {
        let (status, error) = call(&mut client, procedure, body);
        assert!(
            status == 400 && error.contains("limits.kyoto_reply_bytes_max"),
            "{procedure} {error}"
        );
    }
}

#[test]
fn records_of_other_protocols_are_seen_and_collections_are_told_apart() {
    let server = server(|_| {});
    let (mut client, mut redis) = (server.connect(), server.connect());
    redis.ask(&["SET", "text", "7", "PX", "4000000000000"], "+OK\r\n");
    redis.ask(&["RPUSH", "list", "a"], ":1\r\n");
    let (status, text) = call(&mut client, "get", "key\ttext\n");
    assert!(status == 200 && text.starts_with("value\t7\nxt\t"), "{text}");
    for (procedure, inputs) in [
        ("get", ""),
        ("check", ""),
        ("append", "value\tv\n"),
        ("increment", "num\t1\n"),
        ("cas", "nval\tv\n"),
    ] {
        let (status, error) = call(&mut client, procedure, &format!("key\tlist\n{inputs}"));
        let expected = "ERROR\tDB: 8: logical inconsistency: a list is under this key, not bytes\n";
        assert_eq!((status, error.as_str()), (450, expected), "{procedure}");
    }
    assert_eq!(call(&mut client, "get_bulk", "_text\t\n_list\t\n").1, "_text\t7\nnum\t1\n");
    assert_eq!(call(&mut client, "set", "key\tlist\nvalue\tv\n").0, 200);
    redis.ask(&["GET", "list"], "$1\r\nv\r\n");
    // Eight bytes are a number to Kyoto Tycoon, but a text to Redis.
    assert_eq!(call(&mut client, "increment", "key\tn\nnum\t1\n").1, "num\t1\n");
    redis.ask(&["STRLEN", "n"], ":8\r\n");
    redis.ask(&["INCR", "n"], "-ERR value is not an integer or out of range\r\n");
}

#[test]
fn a_password_keeps_all_of_it() {
    let server = server(|config| config.password = Some("sesame".to_owned().into()));
    let mut client = server.connect();
    assert_eq!(call(&mut client, "get", "key\tk\n").0, 401);
    client.send_http("POST /rpc/void", "authorization: Bearer sesame\r\n", b"");
    assert_eq!(client.response().status, 200);
    let mut binary = server.connect();
    // Nothing is buffered of what follows.
    binary.send(b"\xb8\0\0\0\0\x01");
    assert_eq!(binary.read_to_end(), [0xbf]);
}

#[test]
fn a_page_of_another_site_calls_nothing() {
    let server = server(|_| {});
    let mut client = server.connect();
    client.send_http("POST /rpc/clear", "origin: http://evil.example\r\n", b"");
    assert_eq!(client.response().status, 403);
}
