//! Passwords, the list of clients, and exact bytes that golden files cannot check.

use std::sync::atomic::Ordering;

use tokaido_script::Sources;

use super::{Server, Step};

fn server(password: Option<&str>) -> Server {
    Server::new(password, &Sources::default())
}

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn nothing_but_authentication_works_without_the_password() {
    let mut server = server(Some("hakone"));
    let mut session = server.session();
    let mut run = |line: &str| text(server.run(&mut session, line).0);
    for line in ["GET a", "PING", "SET a 1", "MULTI", "EXEC", "COMMAND", "FOO", "GET", "CLIENT FOO"]
    {
        assert_eq!(run(line), "-NOAUTH Authentication required.\r\n", "{line}");
    }
    assert!(run("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert_eq!(run("RESET"), "+RESET\r\n");
    assert!(run("AUTH odawara").starts_with("-WRONGPASS"));
    assert!(run("AUTH other hakone").starts_with("-WRONGPASS"));
    assert!(run("HELLO 3 AUTH default odawara").starts_with("-WRONGPASS"));
    assert!(run("PING").starts_with("-NOAUTH"));
    assert_eq!(run("AUTH hakone"), "+OK\r\n");
    assert_eq!(run("GET a"), "$-1\r\n");
    assert_eq!(run("RESET"), "+RESET\r\n");
    assert!(run("GET a").starts_with("-NOAUTH"));
    assert!(run("HELLO 3 AUTH default hakone").starts_with("%7\r\n"));
    assert_eq!(run("GET a"), "_\r\n");
}

#[test]
fn quitting_closes_even_without_the_password() {
    let mut server = server(Some("hakone"));
    let mut session = server.session();
    assert_eq!(server.run(&mut session, "QUIT"), (b"+OK\r\n".to_vec(), Step::Close));
}

#[test]
fn the_list_of_clients_has_those_that_are_open() {
    let mut server = server(None);
    let mut first = server.session();
    let mut second = server.session();
    server.run(&mut first, "CLIENT SETNAME hakone");
    server.run(&mut first, "CLIENT SETINFO LIB-NAME redis-py");
    server.run(&mut first, "SELECT 7");
    server.run(&mut first, "MULTI");
    server.run(&mut first, "PING");
    server.run(&mut second, "HELLO 3");
    let list = text(server.run(&mut second, "CLIENT LIST").0);
    let lines: Vec<&str> =
        list.lines().filter(|line| line.starts_with("id=") || line.contains(":id=")).collect();
    assert_eq!(lines.len(), 2, "{list}");
    for field in [
        "id=1 addr=127.0.0.1:50000 laddr=127.0.0.1:7379 ",
        " name=hakone ",
        " flags=x db=7 ",
        " multi=1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 ",
        " tot-mem=0 events=r cmd=multi ",
        " lib-name=redis-py lib-ver= ",
        " resp=2",
    ] {
        assert!(lines[0].contains(field), "{field} in {}", lines[0]);
    }
    assert!(lines[1].contains(" db=0 ") && lines[1].contains(" cmd=client|list "), "{}", lines[1]);
    assert!(lines[1].ends_with(" resp=3"), "{}", lines[1]);

    drop(first);
    let list = text(server.run(&mut second, "CLIENT LIST").0);
    assert!(!list.contains("id=1 ") && list.contains("id=2 "), "{list}");
    let list = text(server.run(&mut second, "CLIENT LIST ID 1 2").0);
    assert!(!list.contains("id=1 ") && list.contains("id=2 "), "{list}");
    let totals = server.shared.clients.totals();
    assert_eq!((totals.open, totals.opened), (1, 2));
}

#[test]
fn commands_and_errors_are_counted_once() {
    let mut server = server(None);
    let mut session = server.session();
    for line in ["SET a 1", "GET a", "FOO", "INCR", "PING"] {
        server.run(&mut session, line);
    }
    let counts = |server: &Server| {
        let done = server.shared.clients.totals().done;
        (done.commands.load(Ordering::Relaxed), done.errors.load(Ordering::Relaxed))
    };
    assert_eq!(counts(&server), (5, 2));
    let mut other = server.session();
    server.run(&mut other, "BAR");
    drop(session);
    assert_eq!(counts(&server), (6, 3), "those of a session that is closed, too");
}

#[test]
fn null_is_the_one_that_the_version_wants() {
    let mut server = server(None);
    let mut session = server.session();
    for (line, resp2, resp3) in [
        ("GET a", "$-1\r\n", "_\r\n"),
        ("MGET a", "*1\r\n$-1\r\n", "*1\r\n_\r\n"),
        ("SET a 1 XX", "$-1\r\n", "_\r\n"),
        ("COMMAND INFO foo", "*1\r\n*-1\r\n", "*1\r\n_\r\n"),
        ("RANDOMKEY", "$-1\r\n", "_\r\n"),
    ] {
        server.run(&mut session, "HELLO 2");
        assert_eq!(text(server.run(&mut session, line).0), resp2, "{line}");
        server.run(&mut session, "HELLO 3");
        assert_eq!(text(server.run(&mut session, line).0), resp3, "{line}");
    }
    server.run(&mut session, "HELLO 2");
    for line in ["WATCH a", "SET a 1", "MULTI", "GET a"] {
        server.run(&mut session, line);
    }
    assert_eq!(text(server.run(&mut session, "EXEC").0), "*-1\r\n");
}

#[test]
fn the_whole_of_info_and_of_command_can_be_read() {
    let mut server = server(None);
    let mut session = server.session();
    server.run(&mut session, "SET a 1");
    for version in ["HELLO 2", "HELLO 3"] {
        server.run(&mut session, version);
        for line in ["COMMAND", "COMMAND DOCS", "COMMAND LIST", "LOLWUT", "CLIENT HELP", "TIME"] {
            // The decoder accepts only complete replies.
            super::golden::show(&server.run(&mut session, line).0);
        }
        let info = text(server.run(&mut session, "INFO").0);
        for line in [
            "redis_version:7.2.0",
            "redis_mode:standalone",
            "tcp_port:7379",
            "listener0:name=unix,bind=/run/t.sock",
            "listener1:name=tcp,bind=127.0.0.1,port=7379",
            "connected_clients:1",
            "maxmemory_policy:noeviction",
            "loading:0",
            "role:master",
            "cluster_enabled:0",
            "db0:keys=1,expires=0,avg_ttl=0",
        ] {
            assert!(info.contains(&format!("\r\n{line}\r\n")), "{line} in {info}");
        }
        // Other tests in this process may have had child processes.
        assert!(info.contains("\r\nused_cpu_sys_children:0."), "{info}");
    }
    let count = text(server.run(&mut session, "COMMAND COUNT").0);
    let count: usize = count.trim().trim_start_matches(':').parse().unwrap();
    let list = text(server.run(&mut session, "COMMAND LIST").0);
    let names: Vec<&str> = list.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
    assert_eq!(names.iter().filter(|name| !name.contains('|')).count(), count);
    assert!(names.contains(&"client|list"), "{names:?}");
}
