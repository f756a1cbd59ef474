//! Unauthenticated clients: the server accepts little from them, and buffers little for them.

mod common;

use std::{io::Write, net::Shutdown, sync::RwLock, thread, time::Duration};

use common::{Client, TestServer, encode};

/// More than may be buffered for an unauthenticated client, but less than for an authenticated one.
const LARGE: usize = 16 << 20;

/// The number of unauthenticated clients at once.
const CLIENTS: usize = 12;

/// Maximum memory of the server for all of them together, including what the test itself needs.
const HELD_BYTES_MAX: usize = 16 << 20;

/// Keeps memory of other tests out of the measurement.
static MEASURED: RwLock<()> = RwLock::new(());

fn server() -> TestServer {
    TestServer::start_with(|config| config.password = Some("sesame".into()))
}

/// The memory of this process, which includes the server, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

#[test]
fn a_large_request_is_refused_as_soon_as_its_length_is_known() {
    let _unmeasured = MEASURED.read();
    let server = server();
    let reason = "before AUTH a request has at most 16384 bytes\r\n";
    for (begun, error) in [
        (b"*1\r\n$16385\r\n".to_vec(), "too big request"),
        (b"*2\r\n$4\r\nAUTH\r\n$59000000\r\n".to_vec(), "too big request"),
        (b"*1\r\n$99999999999\r\n".to_vec(), "invalid bulk length"),
        ([&b"*2000\r\n"[..], &b"$9\r\n123456789\r\n".repeat(2000)].concat(), "too big request"),
    ] {
        let mut client = server.connect();
        client.send(&begun);
        assert_eq!(client.text_to_end(), format!("-ERR Protocol error: {error}; {reason}"));
    }
    let mut client = server.connect();
    client.send([&b"PING\r\n"[..], &b"x".repeat(16 << 10)].concat());
    let error = format!("-ERR Protocol error: too big inline request; {reason}");
    assert_eq!(client.text_to_end(), format!("-NOAUTH Authentication required.\r\n{error}"));
}

#[test]
fn the_password_lifts_the_limit_within_a_pipeline() {
    let _unmeasured = MEASURED.read();
    let server = server();
    let mut client = server.connect();
    let value = "v".repeat(1 << 20);
    client.send([encode(&["AUTH", "sesame"]), encode(&["SET", "k", &value])].concat());
    client.expect("+OK\r\n+OK\r\n");
    // RESET, which ends the authentication, restores the limit.
    client.send([encode(&["RESET"]), encode(&["SET", "k", &value])].concat());
    client.expect("+RESET\r\n-ERR Protocol error: too big request");
}

#[test]
fn http_takes_as_little() {
    let _unmeasured = MEASURED.read();
    let server = server();
    let long = format!("x-long: {}\r\n", "x".repeat(16 << 10));
    let bearer = "authorization: Bearer sesame\r\n";
    assert_eq!(server.http("GET /healthz", &long, "").status, 431);
    // The password could come after what is too long, so it must be given in an earlier request.
    let mut client = server.connect();
    client.send_http("GET /v1/db", bearer, b"");
    assert_eq!(client.response().status, 200);
    client.send_http("GET /v1/db", &[bearer, &long].concat(), b"");
    assert_eq!(client.response().status, 200);
    // The server does not wait for the body of a request that needs no password.
    let mut client = server.connect();
    client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16385\r\n\r\n");
    assert_eq!(client.response().status, 413);
    assert_eq!(server.http("PUT /v1/db/main/k", bearer, "v".repeat(1 << 20)).status, 201);
}

#[test]
fn memcached_takes_as_little() {
    let _unmeasured = MEASURED.read();
    let server = server();
    // The limit for a line with keys is the same as for any other.
    let mut client = server.connect();
    client.send([&b"version\r\nget "[..], &b"k".repeat(2048)].concat());
    let told = "CLIENT_ERROR the line is too long; it has at most 2048 bytes\r\n";
    assert_eq!(client.text_to_end(), format!("CLIENT_ERROR unauthenticated\r\n{told}"));
    // A key that is too long is refused before it arrives.
    let mut client = server.connect();
    client.send(b"\x80\x01\xff\xff\x08\0\0\0\0\x01\0\x07\0\0\0\0\0\0\0\0\0\0\0\0");
    let reply = client.read_to_end();
    assert_eq!(reply[..8], *b"\x81\x01\0\0\0\0\0\x20");
    // The password lifts the limit.
    let mut client = server.connect();
    client.send("set a 0 0 9\r\nme sesame\r\n");
    client.expect("STORED\r\n");
    client.send([&b"get"[..], &b" k".repeat(10_000), b"\r\n"].concat());
    client.expect("END\r\n");
}

/// A single test, because the memory is measured for the whole process.
#[test]
fn nothing_large_is_held() {
    let _alone = MEASURED.write();
    requests_are_not_held();
    replies_are_not_held("resp", "HELLO\r\n");
    replies_are_not_held("memcached", "version\r\n");
}

fn requests_are_not_held() {
    let server = server();
    let body = vec![b'v'; LARGE];
    let heads: [&[u8]; 6] = [
        b"*2\r\n$4\r\nAUTH\r\n$16777216\r\n",
        b"",
        b"PUT /v1/db/main/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16777216\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16777216\r\n\r\n",
        b"version\r\nget ",
        b"\x80\x01\xff\xff\x08\0\0\0\x01\0\0\0",
    ];
    let before = resident_bytes();
    let clients: Vec<Client> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (mut client, head, body) =
                    (server.connect(), heads[number % heads.len()], &body);
                scope.spawn(move || {
                    // The server may close before it has read everything.
                    let _ = client.0.write_all(head).and_then(|()| client.0.write_all(body));
                    client
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    });
    let held = resident_bytes().saturating_sub(before);
    assert!(held < HELD_BYTES_MAX, "{held} bytes for {CLIENTS} clients");
    drop(clients);
}

/// Clients that request the longest reply available without a password, and do not read it.
fn replies_are_not_held(protocol: &str, request: &str) {
    let server = server();
    let requests = request.repeat(300_000);
    let before = resident_bytes();
    let clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    let answered = thread::scope(|scope| {
        for client in &clients {
            // The rest is not read before the end of the test shuts the socket down.
            scope.spawn(|| drop((&client.0).write_all(requests.as_bytes())));
        }
        // Until the server stops answering.
        let mut answered = 0;
        loop {
            let bearer = "authorization: Bearer sesame\r\n";
            let metrics = server.http("GET /metrics", bearer, "");
            let name =
                format!("tokaido_requests_total{{protocol=\"{protocol}\",place=\"worker\"}} ");
            let now =
                metrics.text().lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
            let now: usize = now.unwrap_or(0);
            if now > 0 && now == answered {
                break;
            }
            answered = now;
            thread::sleep(Duration::from_millis(300));
        }
        let held = resident_bytes().saturating_sub(before);
        assert!(held < HELD_BYTES_MAX, "{held} bytes of replies");
        clients.iter().for_each(|client| drop(client.0.shutdown(Shutdown::Both)));
        answered
    });
    assert!(answered < 3 * 300_000, "all were answered, and the system held the replies");
}
