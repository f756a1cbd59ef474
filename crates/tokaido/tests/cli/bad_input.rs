//! Files, directories and servers that are not what they should be: clear errors, and no harm.

use std::{
    io::{Read, Write},
    net::TcpListener,
    process::Command,
};

use crate::support::{Directory, number, skip, tokaido, tokaido_with};

#[test]
fn files_that_cannot_be_read_are_named_before_anything_is_stored() {
    let directory = Directory::new();
    let good = directory.write("good.tsv", "k\tv\n");
    let store = directory.store();
    let absent = directory.text("absent.tsv");
    let ran = tokaido(["load", &store, &good, &absent]);
    assert_eq!(ran.fails(1), format!("tokaido: {absent}: No such file or directory (os error 2)"));
    let ran = tokaido(["load", &store, &good, &directory.text("")]);
    assert!(ran.fails(1).ends_with("is a directory"), "{ran:?}");
    assert!(!directory.path("store").exists());
    let ran = tokaido(["run", &absent]);
    assert!(ran.fails(1).contains("absent.tsv: No such file"), "{ran:?}");
}

#[test]
fn choices_that_do_not_fit_the_file_are_refused() {
    let directory = Directory::new();
    let csv = directory.write("a.csv", "id,name\n1,x\n");
    let store = directory.store();
    let load = |args: &[&str]| tokaido([&["load", &store, &csv], args].concat());
    assert!(load(&["--key=0"]).fails(1).contains("they count from 1"));
    assert!(load(&["--key=name"]).fails(1).contains("say --header"));
    assert!(load(&["--key=age", "--header"]).fails(1).contains("it has: id, name"));
    assert!(load(&["--format=pairs", "--key=1"]).fails(1).contains("--key does not go with"));
    assert!(load(&["--db=no/name"]).fails(1).contains("bad database name"));
    assert_eq!(load(&["--format=xml"]).code, Some(2));
}

#[test]
fn garbage_is_skipped_line_by_line() {
    let directory = Directory::new();
    let mut garbage: Vec<u8> =
        (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    garbage.extend_from_slice(b"\nk\tv\n");
    for format in ["tsv", "csv", "jsonl", "pairs"] {
        let args = ["load", &directory.store(), &format!("--format={format}"), "--value=2", "-"];
        let args = if format == "pairs" { [args[0], args[1], args[2], args[4], ""] } else { args };
        let args = args.iter().filter(|arg| !arg.is_empty());
        let ran = tokaido_with(args, &garbage);
        let (read, stored) = (number(ran.ok(), "rows read"), number(ran.ok(), "stored"));
        assert_eq!(read, stored + number(ran.ok(), "skipped"), "{format}");
    }
}

#[test]
fn bytes_that_are_no_text_are_loaded_as_they_are() {
    let directory = Directory::new();
    tokaido_with(["load", &directory.store(), "-"], b"\xff\xfe\t\x80\n").ok();
    let dump = tokaido(["dump", &directory.store(), "--format=tsv"]);
    assert_eq!(dump.stdout, b"\xff\xfe\t\x80\n");
    let ran =
        tokaido_with(["load", &directory.store(), "--format=jsonl", "-"], b"{\"key\":\"\xff\"}");
    assert!(ran.stderr.starts_with("-:1: not JSON: "), "{ran:?}");
}

#[test]
fn what_is_over_a_limit_is_one_bad_line() {
    let directory = Directory::new();
    let key = "k".repeat(4097);
    let value = "v".repeat((64 << 20) + 1);
    let line = "x".repeat((128 << 20) + (16 << 10));
    let text = format!("{key}\tv\nk\t{value}\n{line}\n\tv\nlast\tv\n");
    let ran = tokaido_with(["load", &directory.store(), "-"], text);
    assert_eq!((number(ran.ok(), "stored"), number(ran.ok(), "skipped")), (1, 4));
    insta::assert_snapshot!(ran.stderr, @"
    -:1: the key has 4097 bytes, the most is 4096
    -:2: the value has 67108865 bytes, the most is 67108864
    -:3: the line is longer than 134226944 bytes
    -:4: the key is empty
    ");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let ran = tokaido_with(["load", "--dir=/proc/no-such-place", "-"], "k\tv");
    assert!(ran.fails(3).contains("cannot open the store in /proc/no-such-place"), "{ran:?}");
    let directory = Directory::new();
    let file = directory.write("file", "not a directory");
    let ran = tokaido_with(["load", &format!("--dir={file}"), "-"], "k\tv");
    assert!(ran.fails(3).contains("cannot open the store in"), "{ran:?}");
}

#[test]
fn looking_into_a_mistyped_directory_leaves_nothing_there() {
    let directory = Directory::new();
    for args in [&["get", "main", "k"][..], &["del", "main", "k"], &["scan", "main"], &["dump"]] {
        let ran = tokaido([args, &[&directory.store()]].concat());
        assert!(ran.fails(3).contains("there is no store in"), "{ran:?}");
    }
    assert!(!directory.path("store").exists());
    tokaido_with(["load", &directory.store(), "-"], "k\tv").ok();
    for args in [&["get", "mian", "k"][..], &["del", "mian", "k"], &["scan", "mian"]] {
        let ran = tokaido([args, &[&directory.store()]].concat());
        assert_eq!(ran.fails(1), "tokaido: there is no database \"mian\"; the store has: main");
    }
}

/// An address that answers every connection with `answer`, and then closes it.
fn impostor(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(answer);
        }
    });
    format!("--connect={address}")
}

#[test]
fn a_wrong_address_is_told_from_a_wrong_server() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (connect, said, code) in [
        (format!("--connect={closed}"), "is a server running there?", 3),
        ("--connect=no.such.host.invalid:1".to_owned(), "cannot find the host", 3),
        ("--connect=a:b".to_owned(), "is no address", 2),
        (impostor(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak the Redis protocol", 3),
        (impostor(b""), "closed the connection", 3),
    ] {
        for args in [
            &["get", "main", "k"][..],
            &["put", "main", "k", "v"],
            &["del", "main", "k"],
            &["load", "-"],
            &["dump"],
            &["shell"],
            &["call", "x"],
        ] {
            let ran = tokaido([args, &[&connect]].concat());
            assert!(ran.fails(code).contains(said), "{args:?} {connect} {ran:?}");
            assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        }
    }
}

#[test]
fn a_server_without_http_is_told_from_a_wrong_call() {
    for (answer, said, code) in [
        (&b"+PONG\r\n"[..], "does not speak HTTP (no status line)", 3),
        (b"HTTP/1.1 200 OK\r\n\r\n", "does not speak HTTP (no Content-Length)", 3),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "closed the connection", 3),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", "x failed: 503 busy", 1),
    ] {
        let ran = tokaido(["call", "--json", "x", &impostor(answer)]);
        assert!(ran.fails(code).contains(said), "{said} {ran:?}");
    }
}

#[test]
fn a_full_disk_stops_a_load_and_keeps_what_was_stored() {
    let directory = Directory::new();
    let mount = directory.path("store");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "tokaido-test"])
        .arg(&mount)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        skip("this user may not mount a small disk");
        return;
    }
    let rows: String = (0..40_000).map(|i| format!("{i:05}\t{}\n", "x".repeat(200))).collect();
    let ran = tokaido_with(["load", &directory.store(), "-"], rows);
    let kept = tokaido(["dump", &directory.store(), "--format=tsv"]);
    let unmounted = Command::new("umount").arg(&mount).status().unwrap();
    assert!(unmounted.success());
    assert!(ran.fails(1).contains("the disk is full"), "{ran:?}");
    assert!(ran.fails(1).contains("10000 rows before that are stored"), "{ran:?}");
    assert_eq!(kept.ok().lines().count(), 10_000);
}
