//! memcached's text lines on an address for Tokyo Tyrant only.

use crate::{common::TestServer, pinned};

/// Sends each line, and expects its answer.
fn talk(server: &TestServer, lines: &[(&str, &str)]) {
    let mut client = server.connect();
    for (line, reply) in lines {
        client.send(line);
        client.expect(reply);
    }
}

#[test]
fn lines_are_answered_as_tokyo_tyrant_does() {
    let server = pinned(|_| {});
    let long = "k".repeat(400);
    talk(
        &server,
        &[
            ("set k 7 99 5\r\nvalue\r\n", "STORED\r\n"),
            // Flags and times are ignored, and so are the versions of `gets`.
            ("get k\r\n", "VALUE k 0 5\r\nvalue\r\nEND\r\n"),
            ("gets k missing k\r\n", "VALUE k 0 5\r\nvalue\r\nVALUE k 0 5\r\nvalue\r\nEND\r\n"),
            ("add k 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
            ("add k2 0 0 1\r\nx\r\n", "STORED\r\n"),
            ("replace missing 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
            ("replace k 0 0 2\r\n12\r\n", "STORED\r\n"),
            ("append missing 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
            ("append k 0 0 1\r\n3\r\n", "STORED\r\n"),
            ("prepend k 0 0 1\r\n0\r\n", "STORED\r\n"),
            ("prepend missing 0 0 1\r\n0\r\n", "NOT_STORED\r\n"),
            ("get k\r\n", "VALUE k 0 4\r\n0123\r\nEND\r\n"),
            ("incr k 7\r\n", "130\r\n"),
            ("decr k 500\r\n", "0\r\n"),
            ("incr k x\r\n", "0\r\n"),
            ("incr missing 1\r\n", "NOT_FOUND\r\n"),
            ("incr k2 5\r\n", "5\r\n"),
            ("delete k2\r\n", "DELETED\r\n"),
            ("delete k2 0\r\n", "NOT_FOUND\r\n"),
            (
                "set q 0 0 1 noreply\r\nv\r\nincr q 4 noreply\r\nget q\r\n",
                "VALUE q 0 1\r\n4\r\nEND\r\n",
            ),
            ("delete q noreply\r\nget q\r\n", "END\r\n"),
            (&format!("set {long} 0 0 1\r\nv\r\n"), "STORED\r\n"),
            (&format!("get {long}\r\n"), &format!("VALUE {long} 0 1\r\nv\r\nEND\r\n")),
            ("version\r\n", "VERSION 1.1.41\r\n"),
            ("flush_all\r\n", "OK\r\n"),
            ("get k\r\n", "END\r\n"),
        ],
    );
}

#[test]
fn what_is_no_command_ends_the_connection() {
    let server = pinned(|_| {});
    let too_few = "CLIENT_ERROR error\r\n";
    for (lines, reply) in [
        ("set k 0 0\r\n", too_few),
        ("get\r\n", too_few),
        ("incr k\r\n", too_few),
        ("delete\r\n", too_few),
        ("quit\r\n", ""),
        ("nothing of it\r\n", ""),
        ("version\r\nset k 0 0 1\r\nvv\r\n", "VERSION 1.1.41\r\n"),
    ] {
        let mut client = server.connect();
        client.send([lines, "version\r\n"].concat());
        assert_eq!(client.text_to_end(), reply, "{lines:?}");
    }
    // A command that only memcached's own protocol has gets an error that says so.
    let mut client = server.connect();
    client.send("mg k v\r\n");
    let told = client.text_to_end();
    assert!(told.contains("speaks tyrant, not memcached"), "{told}");
}

#[test]
fn stats_are_those_of_tokyo_tyrant() {
    let server = pinned(|_| {});
    let mut client = server.connect();
    client.send("set k 0 0 1\r\nv\r\nget k missing\r\ndelete k\r\ndelete k\r\nstats\r\nquit\r\n");
    let text = client.text_to_end();
    for line in [
        "STAT version 1.1.41",
        "STAT pointer_size 64",
        "STAT cmd_set 1",
        "STAT cmd_set_misses 0",
        "STAT cmd_delete 2",
        "STAT cmd_delete_hits 1",
        "STAT cmd_delete_misses 1",
        "STAT cmd_get 2",
        "STAT cmd_get_hits 1",
        "STAT cmd_get_misses 1",
        "STAT curr_items 0",
        "END",
    ] {
        assert!(text.lines().any(|given| given == line), "{line}: {text}");
    }
}
