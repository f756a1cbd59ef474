//! `tokaido put`, `del` and `scan`, on a directory and through a server.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use crate::support::{Directory, Server, tokaido, tokaido_with};

/// Runs the same test with a directory and with a server: the results must not depend on it.
fn on_both(test: impl Fn(&str)) {
    let directory = Directory::new();
    test(&directory.store());
    let served = Directory::new();
    test(&Server::start(&served, &[]).connect());
}

#[test]
fn what_is_put_is_got_until_it_is_deleted() {
    on_both(|at| {
        assert_eq!(tokaido(["put", at, "main", "k", "one"]).ok(), "");
        assert_eq!(tokaido(["put", at, "main", "k", "two"]).ok(), "");
        assert_eq!(tokaido(["get", at, "main", "k"]).ok(), "two\n");
        assert_eq!(tokaido(["del", at, "main", "k"]).ok(), "");
        let absent = tokaido(["del", at, "main", "k"]);
        assert_eq!((absent.code, absent.text(), absent.stderr.as_str()), (Some(1), "", ""));
        assert_eq!(tokaido(["get", at, "main", "k"]).code, Some(1));
    });
}

#[test]
fn a_database_is_dropped_with_its_records_and_its_name() {
    on_both(|at| {
        tokaido(["put", at, "brief", "k", "v"]).ok();
        tokaido(["put", at, "main", "k", "v"]).ok();
        assert_eq!(tokaido(["drop", at, "brief"]).ok(), "");
        let absent = tokaido(["drop", at, "brief"]);
        assert_eq!((absent.code, absent.text(), absent.stderr.as_str()), (Some(1), "", ""));
        assert!(tokaido(["drop", at, "a b"]).fails(3).contains("bad database name"));
        assert_eq!(tokaido(["get", at, "main", "k"]).ok(), "v\n");
        tokaido(["put", at, "brief", "l", "w"]).ok();
        assert_eq!(tokaido(["scan", at, "brief", "--keys"]).ok(), "l\n");
    });
}

#[test]
fn a_store_that_was_shut_down_cleanly_is_read_without_opening_it() {
    let directory = Directory::new();
    let at = &directory.store();
    tokaido(["put", at, "main", "k", "base"]).ok();
    let data = at.strip_prefix("--dir=").unwrap();
    tokaido(["compact", data]).ok();
    let lmdb_lock = Path::new(data).join("lock.mdb");
    fs::remove_file(&lmdb_lock).unwrap();
    assert_eq!(tokaido(["get", at, "main", "k"]).ok(), "base\n");
    assert!(!lmdb_lock.exists(), "it was opened");
    // This record stays in the log, so the store must be opened.
    tokaido(["put", at, "main", "k", "log"]).ok();
    assert_eq!(tokaido(["get", at, "main", "k"]).ok(), "log\n");
}

#[test]
fn a_value_comes_from_standard_input_as_it_is() {
    on_both(|at| {
        let value = b"\xff\0two\nlines\n";
        tokaido_with(["put", at, "main", "k", "-"], value).ok();
        assert_eq!(tokaido(["get", at, "main", "k"]).stdout, [&value[..], b"\n"].concat());
        tokaido_with(["put", at, "main", "empty", "-"], "").ok();
        assert_eq!(tokaido(["get", at, "main", "empty"]).ok(), "\n");
        let long = vec![b'x'; (64 << 20) + 1];
        let ran = tokaido_with(["put", at, "main", "long", "-"], &long);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(tokaido(["get", at, "main", "long"]).code, Some(1));
    });
}

#[test]
fn keys_and_values_may_be_any_bytes() {
    on_both(|at| {
        let [key, value] = [&b"\xff\xfe"[..], b"\x80"].map(OsStr::from_bytes);
        let at = OsStr::new(at);
        let words = |words: [&'static str; 2]| words.map(OsStr::new);
        tokaido([&words(["put", "main"])[..], &[at, key, value]].concat()).ok();
        let ran = tokaido([&words(["get", "main"])[..], &[at, key]].concat());
        assert_eq!(ran.stdout, b"\x80\n");
        let prefix = OsStr::new("--prefix");
        let ran = tokaido([&words(["scan", "main"])[..], &[prefix, key, at]].concat());
        assert_eq!(ran.stdout, b"\xff\xfe\t\x80\n");
        tokaido([&words(["del", "main"])[..], &[at, key]].concat()).ok();
    });
}

#[test]
fn a_record_expires_after_its_time() {
    on_both(|at| {
        tokaido(["put", at, "main", "brief", "v", "--ttl", "1ms"]).ok();
        tokaido(["put", at, "main", "long", "v", "--ttl", "7d"]).ok();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(tokaido(["scan", at, "main", "--keys"]).ok(), "long\n");
        let dump = tokaido(["dump", at]);
        assert!(dump.ok().contains("\"expires_at_ms\":"), "{dump:?}");
        // Without the option, the record never expires.
        tokaido(["put", at, "main", "long", "v"]).ok();
        assert!(!tokaido(["dump", at]).ok().contains("expires_at_ms"));
        let wrong = tokaido(["put", at, "main", "k", "v", "--ttl", "soon"]);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
    });
}

#[test]
fn several_keys_are_deleted_at_once() {
    on_both(|at| {
        tokaido_with(["load", at, "-"], "a\t1\nb\t2\nc\t3\n").ok();
        assert_eq!(tokaido(["del", at, "main", "a", "absent", "b"]).code, Some(1));
        assert_eq!(tokaido(["scan", at, "main", "--keys"]).ok(), "c\n");
    });
}

#[test]
fn a_scan_keeps_to_its_bounds_and_its_order() {
    on_both(|at| {
        tokaido_with(["load", at, "-"], "a\t1\nb\t2\nb1\t3\nb2\t4\nc\t5\n").ok();
        let keys = |args: &[&str]| {
            let ran = tokaido([&["scan", at, "main", "--keys"], args].concat());
            ran.ok().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(&[]), "a b b1 b2 c");
        assert_eq!(keys(&["--reverse"]), "c b2 b1 b a");
        assert_eq!(keys(&["--prefix=b"]), "b b1 b2");
        assert_eq!(keys(&["--prefix=b", "--reverse", "--limit=2"]), "b2 b1");
        assert_eq!(keys(&["--from=b", "--before=b2"]), "b b1");
        assert_eq!(keys(&["--after=b", "--to=b2"]), "b1 b2");
        assert_eq!(keys(&["--after=b", "--to=b2", "--reverse"]), "b2 b1");
        assert_eq!(keys(&["--prefix=b", "--after=a", "--to=b1"]), "b b1");
        assert_eq!(keys(&["--prefix=b", "--from=b1", "--before=x"]), "b1 b2");
        assert_eq!(keys(&["--from=d"]), "");
        assert_eq!(keys(&["--limit=0"]), "");
        assert_eq!(tokaido(["scan", at, "main", "--from=a", "--after=a"]).code, Some(2));
    });
}

#[test]
fn a_scan_is_written_in_every_format() {
    on_both(|at| {
        tokaido_with(["load", at, "--format=pairs", "-"], "k\tone\\ntwo\n").ok();
        let scan = |args: &[&str]| tokaido([&["scan", at, "main"], args].concat());
        assert_eq!(scan(&[]).ok(), "k\tone\\ntwo\n");
        assert_eq!(scan(&["--format=csv"]).ok(), "\"k\",\"one\ntwo\"\n");
        assert_eq!(scan(&["--format=jsonl"]).ok(), "{\"key\":\"k\",\"value\":\"one\\ntwo\"}\n");
        let tsv = scan(&["--format=tsv"]);
        assert!(tsv.fails(1).contains("which TSV cannot hold"), "{tsv:?}");
    });
}

#[test]
fn a_scan_longer_than_a_page_is_whole() {
    on_both(|at| {
        let rows: String = (0..2_500).map(|n| format!("{n:04}/値\tvalue {n}\n")).collect();
        tokaido_with(["load", at, "-"], &rows).ok();
        assert_eq!(tokaido(["scan", at, "main"]).ok(), rows);
        let lines: Vec<&str> = rows.lines().rev().take(2_100).collect();
        let ran = tokaido(["scan", at, "main", "--reverse", "--limit=2100"]);
        assert_eq!(ran.ok().lines().collect::<Vec<_>>(), lines);
    });
}

#[test]
fn a_directory_that_a_server_holds_is_refused_with_a_way_out() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    tokaido(["put", &server.connect(), "main", "k", "v"]).ok();
    let at = directory.store();
    for args in [
        &["get", &at, "main", "k"][..],
        &["put", &at, "main", "k", "other"],
        &["del", &at, "main", "k"],
        &["scan", &at, "main"],
        &["dump", &at],
        &["load", &at, "-"],
    ] {
        let ran = tokaido(args);
        let said = ran.fails(3);
        assert!(said.contains("is in use by another tokaido process"), "{said}");
        assert!(said.contains("--connect ADDRESS in place of --dir"), "{said}");
    }
    assert_eq!(tokaido(["get", &server.connect(), "main", "k"]).ok(), "v\n");
}

#[test]
fn a_database_that_is_not_there_is_told() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let ran = tokaido(["scan", &server.connect(), "mian"]);
    assert!(ran.fails(1).contains("there is no such database"), "{ran:?}");
}

#[test]
fn what_has_no_order_is_scanned_and_dumped_page_by_page() {
    let directory = Directory::new();
    let configuration = "[databases.hot]\nengine = \"cache\"\nbytes = \"4 MiB\"\n\
                         [databases.ports]\nengine = \"cdb\"\nfile = \"ports.cdb\"\n";
    directory.write("tokaido.toml", configuration);
    let mut rows: Vec<String> = (0..2500).map(|i| format!("k{i}\t{i}\n")).collect();
    let ports: String = rows.iter().map(|row| row.replace('\t', " ")).collect();
    tokaido_with(["cdb", "make", "-m", &directory.text("ports.cdb"), "-"], ports).ok();
    let server = Server::start(&directory, &[]);
    let at = &server.connect();
    tokaido_with(["load", at, "--db=hot", "-"], rows.concat()).ok();
    assert_eq!(tokaido(["scan", at, "ports"]).ok(), rows.concat());
    let limited = tokaido(["scan", at, "hot", "--limit=1200"]);
    assert_eq!(limited.ok().lines().count(), 1200);
    rows.sort_unstable();
    for command in [["scan", "hot"], ["dump", "--db=hot"], ["dump", "--db=ports"]] {
        let printed = tokaido([command[0], at, command[1], "--format=pairs"]);
        let mut lines: Vec<String> = printed.ok().lines().map(|line| format!("{line}\n")).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines, rows, "{command:?}");
    }
    assert!(tokaido(["scan", at, "hot", "--reverse"]).fails(1).contains("have no order"));
    assert!(tokaido(["put", at, "ports", "k", "v"]).fails(1).contains("tokaido cdb make"));
}
