//! Masked commands, over each protocol.

use crate::{binary::request, common::Client, pinned};

#[track_caller]
fn ask(client: &mut Client, line: &str, reply: &[u8]) {
    client.send(request(line));
    client.expect(reply);
}

#[test]
fn what_is_masked_is_refused_and_not_done() {
    let server = pinned(|config| {
        config.tyrant.mask = vec!["allwrite".to_owned(), "fwmkeys".to_owned(), "ext".to_owned()];
        config.tyrant.unmask = vec!["ext".to_owned()];
    });
    let mut client = server.connect();
    for refused in [
        "put k v",
        "putkeep k v",
        "out k",
        "addint k 1",
        "adddouble k 1 0",
        "vanish",
        "fwmkeys - 1",
    ] {
        ask(&mut client, refused, b"\x01");
    }
    client.send(request("putnr k v"));
    for refused in ["misc put 0 k v", "misc get 0 k", "misc nothing 0"] {
        ask(&mut client, refused, b"\x01\0\0\0\0");
    }
    ask(&mut client, "rnum", &[0; 9]);
    ask(&mut client, "ext t.keep 0 k v", b"\0\0\0\0\x04kept");
    ask(&mut client, "get k", b"\0\0\0\0\x01v");

    let mut lines = server.connect();
    for (line, reply) in [
        ("set k 0 0 1\r\nw\r\n", "CLIENT_ERROR forbidden\r\n"),
        ("delete k\r\n", "CLIENT_ERROR forbidden\r\n"),
        ("incr k 1\r\n", "CLIENT_ERROR forbidden\r\n"),
        ("flush_all\r\n", "CLIENT_ERROR forbidden\r\n"),
        ("get k\r\n", "VALUE k 0 1\r\nv\r\nEND\r\n"),
    ] {
        lines.send(line);
        lines.expect(reply);
    }
    let http = |line: &str, headers: &str| {
        let response = server.http(line, headers, "");
        (response.status, response.text().to_owned())
    };
    let forbidden = (403, "Forbidden\n".to_owned());
    assert_eq!(http("PUT /k", ""), forbidden);
    assert_eq!(http("DELETE /k", ""), forbidden);
    assert_eq!(http("POST /", "x-tt-mname: get\r\n"), forbidden);
    assert_eq!(http("GET /k", ""), (200, "v".to_owned()));
    let allowed = server.http("OPTIONS /", "", "");
    assert_eq!(allowed.header("allow"), Some("OPTIONS, GET, HEAD, POST"));
}

#[test]
fn a_function_is_masked_with_what_it_is_like() {
    let server = pinned(|config| config.tyrant.mask = vec!["allread".to_owned()]);
    let mut client = server.connect();
    ask(&mut client, "misc put 0 k v", b"\0\0\0\0\0");
    for refused in ["get k", "mget k", "vsiz k", "iterinit", "rnum", "size", "stat"] {
        ask(&mut client, refused, b"\x01");
    }
    for refused in ["get 0 k", "getlist 0 k", "range 0", "regex 0 k", "iternext 0", "error 0"] {
        ask(&mut client, &format!("misc {refused}"), b"\x01\0\0\0\0");
    }
    let mut lines = server.connect();
    lines.send("get k\r\n");
    lines.expect("END\r\n");
    let named = |name: &str| {
        server.http("POST /", &format!("x-tt-mname: {name}\r\n"), "key=k&value=w").status
    };
    assert_eq!((named("get"), named("put")), (403, 200));
    assert_eq!(server.http("OPTIONS /", "", "").status, 403);
}

#[test]
fn a_way_in_can_be_shut() {
    for (mask, open) in [("allorg", [1, 2]), ("allmc", [0, 2]), ("allhttp", [0, 1])] {
        let server = pinned(|config| config.tyrant.mask = vec![mask.to_owned()]);
        let mut binary = server.connect();
        binary.send(request("put k v"));
        binary.expect(if open.contains(&0) { b"\0" } else { b"\x01" });
        let mut lines = server.connect();
        lines.send("set k 0 0 1\r\nv\r\n");
        lines.expect(if open.contains(&1) { "STORED\r\n" } else { "CLIENT_ERROR forbidden\r\n" });
        let status = server.http("PUT /k", "", "v").status;
        assert_eq!(status, if open.contains(&2) { 201 } else { 403 }, "{mask}");
    }
}
