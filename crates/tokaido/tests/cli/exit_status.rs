//! The exit statuses of all commands, as in docs/command-line.md.

use std::net::TcpListener;

use crate::support::{Directory, Server, tokaido, tokaido_with};

#[test]
fn a_look_up_says_1_for_not_there_and_for_nothing_else() {
    let directory = Directory::new();
    let at = directory.store();
    tokaido(["put", &at, "main", "k", "v"]).ok();
    let served = Directory::new();
    let server = Server::start(&served, &[]);
    tokaido(["put", &server.connect(), "main", "k", "v"]).ok();
    for at in [&at, &server.connect()] {
        for command in ["get", "del"] {
            let absent = tokaido([command, at, "main", "absent"]);
            assert_eq!((absent.code, absent.stderr.as_str()), (Some(1), ""), "{absent:?}");
            let elsewhere = tokaido([command, at, "elsewhere", "k"]);
            assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
            assert_eq!(tokaido([command, at, "main"]).code, Some(2));
            let too_long = "k".repeat(4097);
            let refused = tokaido([command, at, "main", &too_long]);
            assert!(refused.fails(3).contains("4096"), "{refused:?}");
        }
        assert_eq!(tokaido(["get", at, "main", "k"]).code, Some(0));
    }

    let file = directory.text("a.cdb");
    tokaido_with(["cdb", "make", &file], "+1,1:k->v\n\n").ok();
    assert_eq!(tokaido(["cdb", "get", &file, "k"]).code, Some(0));
    assert_eq!(tokaido(["cdb", "get", &file, "absent"]).code, Some(1));
    assert_eq!(tokaido(["cdb", "get", &file]).code, Some(2));
    assert_eq!(tokaido(["cdb", "get", &directory.text("b.cdb"), "k"]).code, Some(3));
}

#[test]
fn every_command_says_3_where_no_server_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("--connect={}", listener.local_addr().unwrap());
    drop(listener);
    for args in [
        &["get", "main", "k"][..],
        &["put", "main", "k", "v"],
        &["del", "main", "k"],
        &["scan", "main"],
        &["dump"],
        &["load", "-"],
        &["call", "x"],
        &["call", "--json", "x"],
        &["shell"],
        &["reload"],
    ] {
        let ran = tokaido([args, &[&at]].concat());
        assert!(ran.fails(3).contains("cannot connect"), "{args:?} {ran:?}");
    }
}

#[test]
fn every_command_says_3_where_there_is_no_store() {
    let directory = Directory::new();
    let (none, other) = (directory.text("none"), directory.text("other"));
    let at = format!("--dir={none}");
    for args in [
        &["get", &at, "main", "k"][..],
        &["del", &at, "main", "k"],
        &["scan", &at, "main"],
        &["dump", &at],
        &["check", &none],
        &["check", &none, "--salvage", &other],
        &["backup", &none, &other],
        &["restore", &none, &other],
        &["compact", &none],
    ] {
        let ran = tokaido(args);
        assert!(ran.fails(3).contains("there is no store in"), "{args:?} {ran:?}");
    }
}

#[test]
fn every_command_says_2_for_a_wrong_line() {
    for command in [
        "serve", "run", "call", "shell", "reload", "load", "dump", "get", "put", "del", "scan",
        "backup", "restore", "check", "compact", "demo",
    ] {
        assert_eq!(tokaido([command, "--no-such-option"]).code, Some(2), "{command}");
        let help = tokaido([command, "--help"]);
        assert!(help.ok().contains("Exit status: 0"), "{command} does not say its exit statuses");
    }
    for command in ["make", "get", "dump", "list", "stats"] {
        assert_eq!(tokaido(["cdb", command, "--no-such-option"]).code, Some(2), "{command}");
        let help = tokaido(["cdb", command, "--help"]);
        assert!(help.ok().contains("Exit status: 0"), "{command} does not say its exit statuses");
    }
}
