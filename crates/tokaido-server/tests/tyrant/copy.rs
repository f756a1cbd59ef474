//! `copy`: a backup requested by a client, below the directory that the operator has configured.

use std::{
    ffi::CString,
    fs,
    io::Read as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tokaido_server::{Bytes, Config, DatabaseConfig};
use tokaido_store::{Store, tree};

use crate::{
    binary::{ask, request},
    common::TestServer,
};

const DONE: &[u8] = b"\0";
const FAILED: &[u8] = b"\x01";

/// `pair.hit` increments two counters in one transaction.
const PAIRS: &str = r#"
local tokaido = require("tokaido")
return {
  hit = tokaido.write(function(tx, key)
    tx.main:increment(key .. ":left", 1)
    tx.main:put(key .. ":filler", string.rep("x", 2000))
    return tostring(tx.main:increment(key .. ":right", 1))
  end),
}
"#;

/// A server with a directory for backups, and that directory.
fn server(change: impl FnOnce(&mut Config)) -> (TestServer, PathBuf) {
    let mut root = PathBuf::new();
    let server = TestServer::start_with_lua(PAIRS, |config| {
        root = config.directory.with_file_name("backups");
        config.backups = Some(root.clone());
        change(config);
    });
    fs::create_dir(&root).expect("a directory");
    (server, root)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

/// The value of a key in `main` of a copy, which must pass the check.
fn value(copy: &Path, key: &str) -> Option<String> {
    assert!(tree::check(copy).expect("it can be checked").is_sound(), "{}", copy.display());
    let store = tree::open(copy, tree::Options::default()).expect("it opens");
    let id = store.find_database("main")?;
    let mut snapshot = store.snapshot().expect("a snapshot");
    let record = snapshot.get(id, key.as_bytes()).expect("it can be read");
    record.map(|record| String::from_utf8_lossy(record.value).into_owned())
}

#[test]
fn a_copy_that_is_taken_amid_writes_is_of_one_moment() {
    let (server, root) = server(|config| config.limits.memtable_bytes = 1 << 20);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for key in ["a", "b"] {
            let (mut client, is_done) = (server.connect(), &is_done);
            scope.spawn(move || {
                for n in 1.. {
                    let reply = format!("\0\0\0\0{}{n}", char::from(n.to_string().len() as u8));
                    ask(&mut client, &format!("ext t.hit 0 {key} -"), reply.as_bytes());
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let mut client = server.connect();
        for n in 0..8 {
            ask(&mut client, &format!("put number {n}"), DONE);
            ask(&mut client, &format!("copy copy-{n}"), DONE);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for n in 0..8 {
        let copy = root.join(format!("copy-{n}"));
        assert_eq!(value(&copy, "number"), Some(n.to_string()), "what was answered is in it");
        for key in ["a", "b"] {
            let [left, right] =
                ["left", "right"].map(|side| value(&copy, &format!("{key}:{side}")));
            assert_eq!(left, right, "copy-{n}");
        }
    }
    assert_eq!(names(&root).len(), 8);
}

#[test]
fn what_stands_before_a_copy_in_a_pipeline_is_in_it() {
    let (server, root) = server(|_| {});
    let mut client = server.connect();
    for n in 0..50 {
        let lines = [
            format!("put k {n}"),
            format!("copy {n}"),
            "put k later".to_owned(),
            "get k".to_owned(),
        ];
        client.send(lines.iter().flat_map(|line| request(line)).collect::<Vec<u8>>());
        let mut replies = [0; 13];
        client.0.read_exact(&mut replies).expect("four replies");
        assert_eq!(&replies, b"\0\0\0\0\0\0\0\x05later");
        assert_eq!(value(&root.join(n.to_string()), "k"), Some(n.to_string()));
    }
}

/// Makes a pipe in place of a segment of the log: copying the log waits until it is opened.
fn stop_copies(root: &Path) -> PathBuf {
    let segment = root.with_file_name("data").join("log/00000000000900000000");
    let path = CString::new(segment.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: the path is a C string.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    segment
}

/// Lets a copy that waits for the pipe continue. Removes the pipe before the copy reaches its end: the copy lists the log
/// a second time, and would wait forever if it found the pipe then.
fn let_copies_go_on(segment: &Path) {
    let pipe = fs::File::options().write(true).open(segment).expect("somebody reads it");
    fs::remove_file(segment).expect("it is there");
    drop(pipe);
}

#[test]
fn a_server_that_makes_a_copy_answers_everybody_else() {
    let (server, root) = server(|config| config.workers = 1);
    let (mut copying, mut other) = (server.connect(), server.connect());
    ask(&mut copying, "put k before", DONE);
    let segment = stop_copies(&root);
    copying.send(request("copy slow"));
    wait_for_making(&root, "slow");
    ask(&mut other, "copy another", FAILED);
    ask(&mut other, "put k meanwhile", DONE);
    ask(&mut other, "get k", b"\0\0\0\0\x09meanwhile");
    assert!(!root.join("slow").exists(), "it has no name yet");
    let_copies_go_on(&segment);
    let mut code = [9];
    copying.0.read_exact(&mut code).expect("a reply");
    assert_eq!(code, *DONE);
    ask(&mut other, "copy another", DONE);
    assert_eq!(names(&root), ["another", "slow"]);
}

/// Waits until a copy of that name has begun.
fn wait_for_making(root: &Path, name: &str) {
    let begins = format!("{name}.");
    while !names(root).iter().any(|name| name.starts_with(&begins)) {
        thread::yield_now();
    }
}

#[test]
fn a_copy_is_made_though_its_client_has_gone() {
    let (server, root) = server(|_| {});
    let segment = stop_copies(&root);
    let mut client = server.connect();
    client.send(request("copy left"));
    wait_for_making(&root, "left");
    drop(client);
    let_copies_go_on(&segment);
    while names(&root) != ["left"] {
        thread::yield_now();
    }
    // The copy gets its name a moment before the next one may begin.
    let (mut client, mut code) = (server.connect(), [9]);
    while code != *DONE {
        client.send(request("copy next"));
        client.0.read_exact(&mut code).expect("a reply");
    }
    assert!(value(&root.join("left"), "k").is_none());
}

#[test]
fn a_copy_that_cannot_be_made_leaves_nothing() {
    let (server, root) = server(|_| {});
    let mut client = server.connect();
    ask(&mut client, "copy once", DONE);
    for path in ["once", "../out", "/tmp/out", "@true", "nowhere/x", "-"] {
        ask(&mut client, &format!("copy {path}"), FAILED);
    }
    ask(&mut client, "misc error 0", b"\0\0\0\0\x01\0\0\0\x142: invalid operation");
    assert_eq!(names(&root), ["once"]);
    assert!(!root.with_file_name("out").exists());
    // No user at all can create a directory there.
    let server = TestServer::start_with(|config| config.backups = Some("/proc".into()));
    let mut client = server.connect();
    ask(&mut client, "copy x", FAILED);
    ask(&mut client, "misc error 0", b"\0\0\0\0\x01\0\0\0\x199999: miscellaneous error");
}

#[test]
fn a_copy_needs_a_directory_a_right_and_a_database_of_the_store() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let (server, root) = server(|config| change(config));
        ask(&mut server.connect(), "copy x", FAILED);
        assert!(names(&root).is_empty());
    };
    refused(&|config| config.backups = None);
    refused(&|config| config.password = Some("sesame".into()));
    refused(&|config| config.tyrant.mask = vec!["allmanage".to_owned()]);
    refused(&|config| {
        let cache = DatabaseConfig::Cache { bytes: Bytes(1 << 20), shards: 0 };
        config.databases.insert("cache".to_owned(), cache);
        config.tyrant.database = "cache".to_owned();
    });
}
