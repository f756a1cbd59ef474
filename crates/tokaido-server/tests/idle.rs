//! The server's memory for each connection that has been served and waits for the next request. A
//! single test, because the memory is that of the whole process, which includes the server.

mod common;

use std::time::{Duration, Instant};

use common::{Client, TestServer};

const CONNECTIONS: usize = 300;

/// Maximum memory for each connection, including the test's own.
const BYTES_MAX: usize = 8 << 10;

/// Maximum time to wait until all of them are idle: until then, some keep what they answer with.
const REST_TIME_MAX: Duration = Duration::from_secs(20);

/// Memory of this process that is not backed by a file, in bytes.
fn allocated_bytes() -> usize {
    // Memory freed to the allocator is not in use, even if the allocator keeps it.
    // SAFETY: it touches only memory that is free.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let status = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

fn served_by_http(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.send_http("PUT /v1/db/main/k", "", b"value");
    assert!(matches!(client.response().status, 201 | 204));
    client.send_http("GET /v1/db/main/k", "", b"");
    assert_eq!(client.response().text(), "value");
    client
}

fn served_by_redis(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.ask(&["SET", "k", "value"], "+OK\r\n");
    client.ask(&["GET", "k"], "$5\r\nvalue\r\n");
    client
}

#[test]
fn a_connection_that_waits_has_little_memory() {
    for serve in [served_by_http, served_by_redis] {
        let server = TestServer::start();
        // By then, everything that all of them share has been allocated.
        let first: Vec<Client> = (0..20).map(|_| serve(&server)).collect();
        let before = allocated_bytes();
        let waiting: Vec<Client> = (0..CONNECTIONS).map(|_| serve(&server)).collect();
        let each = || allocated_bytes().saturating_sub(before) / CONNECTIONS;
        let start = Instant::now();
        while each() > BYTES_MAX && start.elapsed() < REST_TIME_MAX {
            std::thread::sleep(Duration::from_millis(50));
        }
        let each = each();
        assert!(each <= BYTES_MAX, "{each} bytes for each of {CONNECTIONS} connections");
        drop((first, waiting));
    }
}
