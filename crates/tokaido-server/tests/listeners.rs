//! UNIX sockets, addresses for some protocols only, and clients of the wrong one.

mod common;

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use common::{TestServer, encode};
use tokaido_server::{Address, Config, Listen, ProtocolName};

/// A server that also listens on a UNIX socket in its directory.
fn with_socket(change: impl FnOnce(&mut Config)) -> (TestServer, PathBuf) {
    let server = TestServer::start_with(|config| {
        change(config);
        let path = config.directory.with_file_name("t.sock");
        config.listen.push(Listen::from(Address::Unix(path)));
    });
    let path = server.path().join("t.sock");
    (server, path)
}

/// A server with one address, for these protocols only.
fn pinned(protocols: &[ProtocolName]) -> TestServer {
    TestServer::start_with(|config| config.listen[0].protocols = protocols.to_vec())
}

/// Everything that the server replies until it closes.
fn ask_once(path: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).expect("the server listens");
    stream.write_all(request).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn a_unix_socket_speaks_every_protocol() {
    let (server, path) = with_socket(|_| {});
    let set = [encode(&["SET", "k", "v"]), encode(&["QUIT"])].concat();
    assert_eq!(ask_once(&path, &set), "+OK\r\n+OK\r\n");
    let get = b"GET /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = ask_once(&path, get);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nv"), "{answer}");
    server.connect().ask(&["GET", "k"], "$1\r\nv\r\n");
    // More than a socket buffers, and more than one read returns.
    let large = "v".repeat(4 << 20);
    let requests =
        [encode(&["SET", "k", &large]), encode(&["GET", "k"]), encode(&["QUIT"])].concat();
    let answer = ask_once(&path, &requests);
    assert_eq!(answer.len(), "+OK\r\n$4194304\r\n\r\n+OK\r\n".len() + large.len());
    server.stop();
    assert!(!path.exists(), "the file goes with the server");
}

#[test]
fn time_limits_and_a_stop_end_connections_of_a_unix_socket_with_their_last_words() {
    let (server, path) = with_socket(|config| config.limits.request_ms = 50);
    let late = "-ERR the request did not come whole within 50 ms; closing\r\n";
    let half = [encode(&["PING"]), b"*2\r\n$3\r\nGET\r\n".to_vec()].concat();
    assert_eq!(ask_once(&path, &half), format!("+PONG\r\n{late}"));
    let half = b"GET /healthz HTTP/1.1\r\nhost: ";
    assert!(ask_once(&path, half).starts_with("HTTP/1.1 408 "));

    let mut busy = UnixStream::connect(&path).expect("the server listens");
    busy.write_all(&encode(&["INCR", "n"]).repeat(500)).expect("the server reads");
    let mut first = [0; 4];
    busy.read_exact(&mut first).expect("a reply");
    server.stop();
    let mut rest = String::new();
    busy.read_to_string(&mut rest).expect("text");
    // Requests read before the stop are answered, in order and in whole lines.
    let numbers = rest.lines().map(|line| line[1..].parse::<usize>().expect("a number"));
    assert!(numbers.eq(2..rest.lines().count() + 2), "{rest}");
}

#[test]
fn clients_of_a_unix_socket_are_shown_as_redis_shows_them() {
    let (server, path) = with_socket(|_| {});
    let list = [encode(&["CLIENT", "INFO"]), encode(&["INFO", "server"]), encode(&["QUIT"])];
    let answer = ask_once(&path, &list.concat());
    let shown = path.display();
    assert!(answer.contains(&format!(" addr={shown}:0 laddr={shown}:0 ")), "{answer}");
    let address = server.address();
    let tcp = format!("listener0:name=tcp,bind={},port={}", address.ip(), address.port());
    for line in [tcp, format!("listener1:name=unix,bind={shown}")] {
        assert!(answer.contains(&format!("\r\n{line}\r\n")), "{line} in {answer}");
    }
    assert!(answer.contains(&format!("\r\ntcp_port:{}\r\n", address.port())), "{answer}");
    let reply = format!("*2\r\n$10\r\nunixsocket\r\n${}\r\n{shown}\r\n", path.as_os_str().len());
    server.connect().ask(&["CONFIG", "GET", "unixsocket"], &reply);
}

#[test]
fn a_pinned_address_tells_others_so_in_their_own_protocol() {
    let redis = pinned(&[ProtocolName::Redis]);
    redis.connect().ask(&["PING"], "+PONG\r\n");
    let mut inline = redis.connect();
    inline.send("PING\r\n");
    inline.expect("+PONG\r\n");
    let refused = redis.http("GET /healthz", "", "");
    assert_eq!(refused.status, 421);
    assert_eq!(
        refused.text(),
        "{\"error\":{\"message\":\"this address speaks redis, not http; connect to one that does\"}}\n"
    );

    let http = pinned(&[ProtocolName::Http]);
    assert_eq!(http.http("GET /healthz", "", "").status, 200);
    let mut refused = http.connect();
    refused.command(&["PING"]);
    let reply = "-ERR this address speaks http, not redis; connect to one that does\r\n";
    assert_eq!(refused.text_to_end(), reply);
    // Bytes that are not certainly another protocol's are read as the pinned one's.
    let mut inline = http.connect();
    inline.send("PING\r\n\r\n");
    assert!(inline.text_to_end().starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_body_that_looks_like_commands_is_not_run() {
    let redis = pinned(&[ProtocolName::Redis]);
    let mut attacker = redis.connect();
    attacker
        .send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\n\r\nSET k evil\r\n\r\n");
    assert!(attacker.text_to_end().starts_with("HTTP/1.1 421 "));
    redis.connect().ask(&["GET", "k"], "$-1\r\n");
}

#[test]
fn tls_is_closed_at_once() {
    let server = TestServer::start();
    let mut hello = server.connect();
    hello.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    assert_eq!(hello.text_to_end(), "");
}

#[test]
fn a_client_that_says_too_little_is_told_so_in_the_protocol_of_the_address() {
    let server = TestServer::start_with(|config| {
        // One worker accepts in the order of arrival.
        config.workers = 1;
        config.limits.connections_max = 1;
        config.limits.refusal_ms = 20;
        // A client that has sent nothing at all is accepted after a second.
        config.limits.first_line_ms = 3000;
        config.listen[0].protocols = vec![ProtocolName::Http];
    });
    let mut first = server.connect();
    first.send("G");
    assert!(server.connect().text_to_end().starts_with("HTTP/1.1 503 "));
    assert!(first.text_to_end().starts_with("HTTP/1.1 408 "));
}
