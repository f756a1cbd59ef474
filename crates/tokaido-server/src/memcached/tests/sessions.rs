//! Passwords, figures, and records that other protocols have written.

use super::*;

/// Runs the input, and returns the replies as text.
fn run(server: &mut Server, memcached: &mut Memcached, input: &str) -> String {
    let (reply, _) = server.exchange(memcached, input.as_bytes());
    String::from_utf8(reply).unwrap()
}

#[test]
fn nothing_is_done_before_the_password() {
    let mut server = Server::new(true, Some("sesame"));
    let mut memcached = server.connect();
    let mut run = |input: &str| run(&mut server, &mut memcached, input);
    for command in ["get k", "version", "quit", "flush_all", "mn", "nonsense"] {
        assert_eq!(run(&format!("{command}\r\n")), "CLIENT_ERROR unauthenticated\r\n");
    }
    assert_eq!(run("set a 0 0 5\r\nme no\r\n"), "CLIENT_ERROR authentication failure\r\n");
    assert_eq!(run("set a 0 0 2\r\nme\r\n"), "CLIENT_ERROR bad authentication token format\r\n");
    assert_eq!(run("set a 0 0 9\r\nme sesameXX"), "CLIENT_ERROR bad command line termination\r\n");
    assert_eq!(run("set a 0 0 9\r\nme sesame\r\nget k\r\n"), "STORED\r\nEND\r\n");
    assert!(run("stats\r\n").contains("STAT auth_errors 1\r\n"));
}

#[test]
fn before_the_password_requests_are_small() {
    let mut server = Server::new(true, Some("sesame"));
    let mut memcached = server.connect();
    let (reply, progress) = server.exchange(&mut memcached, b"set a 0 0 100000\r\n");
    assert!(reply.starts_with(b"CLIENT_ERROR the credentials are too long"));
    assert!(matches!(progress, Progress::Failed));
}

#[test]
fn figures_are_counted_and_reset() {
    let mut server = Server::new(true, None);
    let mut memcached = server.connect();
    let mut run = |input: &str| run(&mut server, &mut memcached, input);
    run("set k 0 0 1\r\na\r\nget k j\r\nincr k 1\r\ndelete k\r\ndelete k\r\ntouch k 1\r\n");
    let stats = run("stats\r\n");
    for line in [
        "cmd_get 2",
        "get_hits 1",
        "get_misses 1",
        "cmd_set 1",
        "delete_hits 1",
        "delete_misses 1",
        "cmd_touch 1",
        "touch_misses 1",
        "curr_items 0",
        "limit_maxbytes 8388608",
        "evictions 0",
        "version 1.6.18",
        "threads 0",
        "curr_connections 1",
        "total_connections 1",
    ] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line}: {stats}");
    }
    assert!(stats.ends_with("END\r\n"));
    assert_eq!(run("stats reset\r\n"), "RESET\r\n");
    assert!(run("stats\r\n").contains("STAT cmd_get 0\r\n"));
    assert_eq!(run("stats nonsense\r\n"), "ERROR\r\n");
    assert_eq!(run("stats sizes\r\n"), "STAT sizes_status disabled\r\nEND\r\n");
    assert!(run("stats conns\r\n").contains("STAT 1:addr 127.0.0.1:50000\r\n"));
    assert!(run("verbosity 9\r\nstats settings\r\n").contains("STAT verbosity 2\r\n"));
    assert_eq!(run("stats items\r\n"), "END\r\n");
    assert!(run("set k 0 0 1\r\na\r\nstats items\r\n").contains("STAT items:1:number 1\r\n"));
    assert!(run("stats slabs\r\n").contains("STAT 1:used_chunks 1\r\n"));
}

#[test]
fn a_record_of_another_protocol_is_a_value() {
    let mut server = Server::new(true, None);
    let mut memcached = server.connect();
    let store = server.shared.store().clone();
    let database = store.find_database("memcached").unwrap();
    let record = NewRecord::of(b"theirs");
    transact_in_place::<_, tokaido_store::WriteError>(&*store, database, |tx| {
        tx.put(database, b"k", record)
    })
    .unwrap();
    let replies = run(&mut server, &mut memcached, "get k\r\nset j 5 0 4\r\nours\r\nmd j I\r\n");
    assert_eq!(replies, "VALUE k 0 6\r\ntheirs\r\nEND\r\nSTORED\r\nHD\r\n");
    let mut snapshot = store.snapshot().unwrap();
    let record = snapshot.get(database, b"j").unwrap().expect("a record");
    assert_eq!((record.value, record.flags), (&b"ours"[..], 5));
}

#[test]
fn a_line_of_keys_is_touched_in_one_transaction() {
    let mut server = Server::new(false, None);
    let mut memcached = server.connect();
    let mut run = |input: &str| run(&mut server, &mut memcached, input);
    run("set a 0 0 1\r\na\r\nset b 0 0 1\r\nb\r\n");
    let touched = run("gats 100 a b nothing a\r\n");
    let cas: Vec<&str> = touched.lines().filter_map(|line| line.split(' ').nth(4)).collect();
    assert!(cas.len() == 3 && cas.iter().all(|one| *one == cas[0]), "{touched}");
    // A line whose reply is refused touches nothing.
    run(&format!("set long 0 0 1000\r\n{}\r\n", "v".repeat(1000)));
    let before = run("gets a\r\n");
    assert!(run(&format!("gats 0 a{}\r\n", " long".repeat(20))).starts_with("SERVER_ERROR"));
    assert_eq!(run("gets a\r\n"), before);
}

#[test]
fn a_value_that_another_protocol_changes_is_not_stale() {
    for is_cache in [true, false] {
        let mut server = Server::new(is_cache, None);
        let mut memcached = server.connect();
        for (key, is_counter) in [("k", false), ("n", true)] {
            let stale = run(
                &mut server,
                &mut memcached,
                &format!("set {key} 0 0 1\r\n1\r\nmd {key} I\r\nmg {key}\r\n"),
            );
            assert_eq!(stale, "STORED\r\nHD\r\nHD X W\r\n");
            let store = server.shared.store().clone();
            let name = if is_cache { "memcached" } else { "main" };
            let database = store.find_database(name).unwrap();
            let change = |tx: &mut dyn WriteTransaction| {
                if is_counter {
                    tx.increment(database, key.as_bytes(), 1).map(drop).map_err(|e| e.to_string())
                } else {
                    tx.append(database, key.as_bytes(), b"1").map(drop).map_err(|e| e.to_string())
                }
            };
            if is_cache {
                store.run_in_place(database, &mut |tx| change(tx).unwrap()).unwrap();
            } else {
                transact(&mut *store.writer().unwrap(), change).unwrap();
            }
            assert_eq!(run(&mut server, &mut memcached, &format!("mg {key}\r\n")), "HD\r\n");
        }
    }
}

#[test]
fn a_value_that_was_not_committed_is_told_of() {
    let server = Server::new(false, None);
    let mut memcached = server.connect();
    let mut output = Vec::new();
    let error = tokaido_store::CommitError::DiskFull;
    memcached.refuse(Token::Text, &error, &mut output);
    assert_eq!(output, format!("SERVER_ERROR {error}\r\n").as_bytes());
}

#[test]
fn a_reply_has_a_limit() {
    let mut server = Server::new(true, None);
    let mut memcached = server.connect();
    let value = "v".repeat(1000);
    assert_eq!(
        run(&mut server, &mut memcached, &format!("set k 0 0 1000\r\n{value}\r\n")),
        "STORED\r\n"
    );
    let keys = "k ".repeat(20);
    for command in ["get", "gat 0"] {
        let reply = run(&mut server, &mut memcached, &format!("{command} {keys}\r\n"));
        assert!(
            reply.starts_with("SERVER_ERROR the values of these keys are too large"),
            "{reply}"
        );
    }
    let reply = run(&mut server, &mut memcached, "get k k\r\n");
    assert!(reply.ends_with("END\r\n"));
}
