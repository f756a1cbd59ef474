//! Raw requests against RFC 9110 and 9112: `requests.txt` lists them with their expected outcomes.

#[path = "../common/mod.rs"]
mod common;
mod table;

use std::{
    fmt,
    io::{Read, Write},
    net::Shutdown,
};

use common::{Client, TestServer};
use table::Case;

const PROCEDURES: &str = "local tokaido = require 'tokaido'\n\
    local function page() return 'a page' end\n\
    return { page = tokaido.http('GET /page', page), form = tokaido.http('POST /page', page),\n\
    one = tokaido.read(function() return 1 end),\n\
    put = tokaido.write(function(tx, key, value) tx.main:put(key, value) end) }\n";

/// What happened on a connection.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    statuses: Vec<u16>,
    is_kept: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses: Vec<_> = self.statuses.iter().map(u16::to_string).collect();
        let end = if self.is_kept { "kept" } else { "closed" };
        write!(f, "{}, {end}", statuses.join(" "))
    }
}

#[test]
fn every_request_is_answered_as_the_table_says() {
    let server = TestServer::start_with_lua(PROCEDURES, |config| {
        config.hosts = vec!["db.example".to_owned()];
    });
    let mut redis = server.connect();
    redis.ask(&["SET", "k", "value"], "+OK\r\n");
    let cases = table::read(include_str!("requests.txt"));
    assert!(cases.len() >= 120, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let given = send(&server, case).to_string();
        if given != case.expected {
            wrong.push(format!("{}: {given}, not {}", case.name, case.expected));
        }
        redis.command(&["DEL", "evil"]);
        if redis.read_line() != ":0\r\n" {
            wrong.push(format!("{}: a command ran", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sends the bytes of a case, and then a probe that is only answered if the connection was kept.
fn send(server: &TestServer, case: &Case) -> Outcome {
    let mut client = server.connect();
    // The server may close before a long request is completely sent.
    let _ = client.0.write_all(&case.bytes);
    if case.ends {
        client.0.shutdown(Shutdown::Write).expect("a socket");
    } else {
        let _ = client.0.write_all(b"GET /probe HTTP/1.1\r\nhost: localhost\r\nprobe: 1\r\n\r\n");
    }
    let is_head = case.bytes.starts_with(b"HEAD");
    let mut statuses = Vec::new();
    while let Some(status) = response(&mut client, is_head && statuses.is_empty()) {
        statuses.push(status);
        // The probe is recognised by its status: no case that keeps the connection has it last.
        if statuses.len() > case.expected_count() {
            break;
        }
    }
    let is_kept = statuses.len() > case.expected_count() && statuses.last() == Some(&404);
    if is_kept {
        statuses.pop();
    }
    Outcome { statuses, is_kept }
}

/// The status of the next response, or `None` once the connection has ended.
fn response(client: &mut Client, is_head: bool) -> Option<u16> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match client.0.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            Ok(_) if head.is_empty() => return None,
            // Sending to a connection that the server has closed resets it.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            end => panic!("{end:?} after {:?}", String::from_utf8_lossy(&head)),
        }
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status line: {head}"));
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let len = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    if !is_head && status != 304 {
        let mut body = vec![0; len];
        client.0.read_exact(&mut body).expect("the body");
        if status >= 400 {
            let body = String::from_utf8(body).expect("text");
            assert!(body.starts_with("{\"error\":{\"message\":\""), "{body}");
        }
    }
    Some(status)
}
