//! What a page makes a browser send never runs as Redis commands: once a line of HTTP is read as one,
//! the connection ends, and the operator is warned.

mod common;

use common::{TestServer, encode, log::Log};
use tokaido_server::ProtocolName;

const GOODBYE: &str = "-ERR POST and Host: are of HTTP, not of Redis; closing\r\n";

/// A single test, because a process has one log.
#[test]
fn lines_of_http_end_a_redis_connection() {
    let log = Log::begin();
    let any = TestServer::start();
    let pinned = TestServer::start_with(|config| {
        config.listen[0].protocols = vec![ProtocolName::Redis];
    });
    let set = b"SET evil 1\r\n".to_vec();
    let cases = [
        b"PING\r\nPOST / HTTP/1.1\r\n".to_vec(),
        b"PING\r\nGET /x\r\nHost: localhost\r\n".to_vec(),
        b"PING\r\nhOsT: a\r\n".to_vec(),
        [encode(&["PING"]), encode(&["post", "x"])].concat(),
        b"\r\r\npost / http\r\n".to_vec(),
    ];
    for server in [&any, &pinned] {
        for case in &cases {
            let mut client = server.connect();
            client.send([&case[..], &set].concat());
            let replies = client.text_to_end();
            assert!(replies.ends_with(GOODBYE), "{case:?}: {replies}");
        }
        // On an address for Redis only, HTTP gets an error in HTTP; on others a normal answer.
        for line in ["GET /x HTTP/2.0", "\r\nPOST / HTTP/1.1", "\n\nPUT / http/1.1"] {
            let mut client = server.connect();
            client.send([line.as_bytes(), b"\r\nx: y\r\n", &set].concat());
            let answer = client.text_to_end();
            assert!(answer.starts_with("HTTP/1.1 "), "{line:?}: {answer}");
        }
        server.connect().ask(&["EXISTS", "evil"], ":0\r\n");
    }
    // However many there are, only one line per minute is logged.
    let lines = log.take();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let is_told = lines[0].contains("WARN") && lines[0].contains("peer=\"127.0.0.1:");
    assert!(is_told && lines[0].contains("POST or Host:"), "{}", lines[0]);
}
