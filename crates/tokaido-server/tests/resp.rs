//! The Redis protocol over real sockets: order, limits, bad input.

mod common;

use std::{thread, time::Duration};

use common::{Client, TestServer, encode};

#[test]
fn a_pipeline_of_reads_and_writes_keeps_its_order() {
    let server = TestServer::start();
    let mut client = server.connect();
    let (mut requests, mut replies) = (Vec::new(), String::new());
    for i in 0..5000 {
        let key = format!("key:{}", i % 7);
        requests.extend(encode(&["SET", &key, &i.to_string()]));
        requests.extend(encode(&["GET", &key]));
        requests.extend(encode(&["ECHO", &i.to_string()]));
        let digits = i.to_string();
        replies.push_str(&format!("+OK\r\n${0}\r\n{1}\r\n${0}\r\n{1}\r\n", digits.len(), digits));
    }
    client.send(&requests);
    client.expect(&replies);
}

#[test]
fn requests_may_come_in_any_pieces() {
    let server = TestServer::start();
    let mut client = server.connect();
    let bytes = [encode(&["SET", "a", "1\r\n2"]), b"GET a\r\n".to_vec(), encode(&["INCR", "n"])];
    for byte in bytes.concat() {
        client.send([byte]);
    }
    client.expect("+OK\r\n$4\r\n1\r\n2\r\n:1\r\n");
}

#[test]
fn a_write_is_seen_by_every_connection_once_it_is_answered() {
    let server = TestServer::start();
    let mut writer = server.connect();
    let mut readers: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for i in 10..60 {
        writer.ask(&["SET", "k", &i.to_string()], "+OK\r\n");
        for reader in &mut readers {
            reader.ask(&["GET", "k"], &format!("$2\r\n{i}\r\n"));
        }
    }
}

#[test]
fn increments_of_many_connections_are_all_counted() {
    let server = TestServer::start();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..50 {
                    client.command(&["INCR", "n"]);
                    assert!(client.read_line().starts_with(':'));
                }
            });
        }
    });
    server.connect().ask(&["GET", "n"], "$4\r\n1000\r\n");
    let metrics = server.http("GET /metrics", "", "");
    assert!(metrics.text().contains("\ntokaido_write_group_jobs_count "), "{}", metrics.text());
}

#[test]
fn what_is_not_the_protocol_is_told_so_and_closed() {
    let server = TestServer::start();
    let cases: [(&[u8], &str); 6] = [
        (b"*1\r\n+PING\r\n", "-ERR Protocol error: expected '$', got '+'\r\n"),
        (b"*9999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n$999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*1\r\n$1\r\nxyz", "-ERR Protocol error: expected CRLF after bulk string\r\n"),
        (b"GET \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        (&[b'x'; 70_000], "-ERR Protocol error: too big inline request\r\n"),
    ];
    for (input, reply) in cases {
        let mut client = server.connect();
        client.send(encode(&["PING"]));
        client.send(input);
        assert_eq!(client.text_to_end(), format!("+PONG\r\n{reply}"));
    }
    server.connect().ask(&["PING"], "+PONG\r\n");
}

#[test]
fn garbage_gets_an_error_and_harms_nobody() {
    let server = TestServer::start();
    let mut state = 1_u64;
    for _ in 0..50 {
        let garbage: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        })
        .take(5000)
        .chain(*b"\n")
        .collect();
        let mut client = server.connect();
        client.send(&garbage);
        client.0.shutdown(std::net::Shutdown::Write).expect("a socket");
        let reply = client.read_to_end();
        assert!(reply.is_empty() || reply[0] == b'-', "{:?}", String::from_utf8_lossy(&reply));
    }
    server.connect().ask(&["PING"], "+PONG\r\n");
}

#[test]
fn a_request_over_the_limit_is_refused_before_it_has_come() {
    let server = TestServer::start_with(|config| config.limits.request_bytes_max = 1000);
    let mut client = server.connect();
    client.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n");
    assert_eq!(client.text_to_end(), "-ERR Protocol error: too big request\r\n");
}

#[test]
fn a_truncated_request_is_dropped_with_its_connection() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.send(encode(&["SET", "whole", "1"]));
    client.send("*3\r\n$3\r\nSET\r\n$4\r\npart\r\n$1\r\n");
    client.0.shutdown(std::net::Shutdown::Write).expect("a socket");
    assert_eq!(client.text_to_end(), "+OK\r\n");
    server.connect().ask(&["EXISTS", "whole", "part"], ":1\r\n");
}

#[test]
fn a_slow_drip_is_ended_by_the_limit_that_it_passes() {
    let server = TestServer::start_with(|config| {
        config.limits.first_line_ms = 50;
        config.limits.request_ms = 50;
    });
    let mut silent = server.connect();
    let mut first_line = server.connect();
    first_line.send("PIN");
    let mut request = server.connect();
    request.send("*2\r\n$4\r\nECHO\r\n$5\r\nhel");
    let told = "-ERR no whole line came within 50 ms; closing\r\n";
    assert_eq!(silent.text_to_end(), told);
    assert_eq!(first_line.text_to_end(), told);
    let told = "-ERR the request did not come whole within 50 ms; closing\r\n";
    assert_eq!(request.text_to_end(), told);
}

#[test]
fn an_idle_connection_is_closed_only_if_asked_for() {
    let server = TestServer::start_with(|config| config.limits.idle_ms = 50);
    let mut client = server.connect();
    client.ask(&["PING"], "+PONG\r\n");
    assert_eq!(client.text_to_end(), "");
}

#[test]
fn a_client_may_send_a_long_pipeline_before_it_reads() {
    let server = TestServer::start();
    let mut client = server.connect();
    let value = "v".repeat(10_000);
    client.ask(&["SET", "k", &value], "+OK\r\n");
    let get = encode(&["GET", "k"]);
    // 50 MB of replies: more than the sockets hold, and more than the server keeps unsent.
    let count = 5000;
    let mut sender = Client(client.0.try_clone().expect("a socket"));
    thread::scope(|scope| {
        scope.spawn(move || sender.send(get.repeat(count)));
        for _ in 0..count {
            client.expect(format!("$10000\r\n{value}\r\n"));
        }
    });
}

#[test]
fn a_client_that_takes_no_replies_is_given_up() {
    let server = TestServer::start_with(|config| config.limits.reply_ms = 100);
    let mut client = server.connect();
    client.ask(&["SET", "k", &"v".repeat(1 << 20)], "+OK\r\n");
    client.send(encode(&["GET", "k"]).repeat(100));
    // In the end, the only open connection is the one that asks.
    assert!((0..10_000).any(|_| server.open_connections().iter().sum::<usize>() == 1));
    assert!(client.read_to_end().len() < 100 << 20);
}

#[test]
fn a_client_that_took_its_replies_late_may_rest_afterwards() {
    let server = TestServer::start_with(|config| config.limits.reply_ms = 1000);
    let mut client = server.connect();
    let value = "v".repeat(1 << 20);
    client.ask(&["SET", "k", &value], "+OK\r\n");
    client.send(encode(&["GET", "k"]).repeat(12));
    client.expect(format!("$1048576\r\n{value}\r\n").repeat(12));
    thread::sleep(Duration::from_millis(1600));
    client.ask(&["PING"], "+PONG\r\n");
}

#[test]
fn a_pipelining_client_does_not_starve_another() {
    let server = TestServer::start_with(|config| config.workers = 1);
    let mut busy = server.connect();
    let mut other = server.connect();
    other.ask(&["PING"], "+PONG\r\n");
    let mut sender = Client(busy.0.try_clone().expect("a socket"));
    let pings = encode(&["PING"]).repeat(200_000);
    thread::scope(|scope| {
        scope.spawn(move || sender.send(&pings));
        busy.expect("+PONG\r\n");
        other.ask(&["ECHO", "x"], "$1\r\nx\r\n");
        busy.expect("+PONG\r\n".repeat(199_999));
    });
}

#[test]
fn without_the_password_nothing_is_done() {
    let server = TestServer::start_with(|config| config.password = Some("sesame".into()));
    let mut client = server.connect();
    client.ask(&["GET", "k"], "-NOAUTH Authentication required.\r\n");
    client.command(&["AUTH", "wrong"]);
    assert!(client.read_line().starts_with("-WRONGPASS "));
    client.ask(&["AUTH", "sesame"], "+OK\r\n");
    client.ask(&["GET", "k"], "$-1\r\n");
}

#[test]
fn one_connection_too_many_is_told_so_in_its_own_protocol() {
    let server = TestServer::start_with(|config| config.limits.connections_max = 2);
    let mut first = server.connect();
    first.ask(&["PING"], "+PONG\r\n");
    let mut second = server.connect();
    second.ask(&["PING"], "+PONG\r\n");
    let mut third = server.connect();
    third.command(&["PING"]);
    assert!(third.text_to_end().starts_with("-ERR too many connections"));
    assert_eq!(server.http("GET /healthz", "", "").status, 503);
    drop(second);
    // The slot is free once the worker has noticed the end of the connection.
    let answered = (0..1000).any(|_| {
        let mut again = server.connect();
        again.command(&["PING"]);
        again.read_line() == "+PONG\r\n"
    });
    assert!(answered);
    first.ask(&["PING"], "+PONG\r\n");
}
