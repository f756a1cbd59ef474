//! Procedures called by FCALL and by their bare name, and replies for their results.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use tokaido_collections::count_requested;
use tokaido_script::{Source, Sources};
use tokaido_store::{
    Capabilities, DatabaseError, DatabaseId, ReadError, Snapshot, Store, TransactError, WriteError,
    Writer, transact, tree,
};

use super::{Context, START_MS, Server, Session, Step, Target, TestClock, execute, golden::show};

const HITS: &str = r#"
local tokaido = require "tokaido"
local hits = {}

hits.count = tokaido.write(function(tx, page, by)
  return tx.main:increment(page, tonumber(by or 1))
end)

hits.fail = tokaido.write(function(tx, page)
  tx.main:put(page, "half done")
  error("no such page")
end)

hits.get = tokaido.read(function(tx, page)
  return tx.main:get(page)
end)

hits.give = tokaido.read(function(tx, what)
  local values = {
    integer = 42, number = 1.5, large = 2^60, text = "text", yes = true, no = false,
    list = {1, "two", {3}}, map = {name = "Hara", station = 13}, empty = {},
  }
  return values[what]
end)

hits.page = tokaido.http("GET /hits/:page", function(tx, req, res) end)

return hits
"#;

fn sources() -> Sources {
    let mut sources = Sources::default();
    let path = PathBuf::from("hits.lua");
    sources.add(Source {
        module: "hits".to_owned(),
        path,
        text: Arc::from(HITS.as_bytes()),
        dialect: None,
        settings: Vec::new(),
    });
    sources
}

fn server() -> (Server, Session) {
    let server = Server::new(None, &sources());
    let session = server.session();
    (server, session)
}

fn answer(server: &mut Server, session: &mut Session, line: &str) -> String {
    show(&server.run(session, line).0).trim_end().to_owned()
}

#[test]
fn a_procedure_is_called_by_fcall_and_by_its_bare_name() {
    let (mut server, mut session) = server();
    for (line, expected) in [
        ("FCALL hits.count 1 /index", ":1"),
        ("FCALL hits.count 1 /index 41", ":42"),
        ("FCALL hits.count 0 /index", ":43"),
        ("hits.count /index", ":44"),
        ("FCALL_RO hits.get 1 /index", "\"44\""),
        ("GET /index", "\"44\""),
        ("hits.get /missing", "nil"),
        ("FCALL hits.count 2 /index", "-ERR Number of keys can't be greater than number of args"),
        ("FCALL hits.count -1 /index", "-ERR Number of keys can't be negative"),
        ("FCALL hits.count x /index", "-ERR Bad number of keys provided"),
        ("FCALL hits.none 0", "-ERR Function not found"),
        (
            "FCALL_RO hits.count 1 /index",
            "-ERR Can not execute a script with write flag using *_ro command.",
        ),
        ("hits.none x", "-ERR unknown command 'hits.none', with args beginning with: 'x' "),
        ("HITS.COUNT x", "-ERR unknown command 'HITS.COUNT', with args beginning with: 'x' "),
    ] {
        let seen = answer(&mut server, &mut session, line);
        assert_eq!(seen, expected.trim_end(), "{line}");
    }
}

#[test]
fn results_become_replies_of_either_version() {
    let (mut server, mut session) = server();
    for (what, resp2, resp3) in [
        ("integer", ":42", ":42"),
        ("number", "\"1.5\"", ",1.5"),
        ("text", "\"text\"", "\"text\""),
        ("yes", ":1", "#true"),
        ("no", "nil", "#false"),
        ("nothing", "nil", "nil"),
        ("list", "*3\n  :1\n  \"two\"\n  *1\n    :3", "*3\n  :1\n  \"two\"\n  *1\n    :3"),
        (
            "map",
            "*4\n  \"name\"\n  \"Hara\"\n  \"station\"\n  :13",
            "%2\n  \"name\"\n  \"Hara\"\n  \"station\"\n  :13",
        ),
    ] {
        server.run(&mut session, "HELLO 2");
        assert_eq!(
            answer(&mut server, &mut session, &format!("hits.give {what}")),
            resp2,
            "{what}"
        );
        server.run(&mut session, "HELLO 3");
        assert_eq!(
            answer(&mut server, &mut session, &format!("hits.give {what}")),
            resp3,
            "{what}"
        );
    }
}

#[test]
fn an_error_is_one_line_and_nothing_of_the_call_remains() {
    let (mut server, mut session) = server();
    let (out, _) = server.run(&mut session, "hits.fail /index");
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("-ERR hits.lua:11: no such page"), "{out}");
    assert_eq!(out.matches("\r\n").count(), 1, "{out}");
    assert_eq!(answer(&mut server, &mut session, "GET /index"), "nil");
}

#[test]
fn in_multi_a_procedure_is_part_of_the_transaction() {
    let (mut server, mut session) = server();
    for line in ["MULTI", "SET a 1", "hits.count /index", "FCALL hits.get 1 /index"] {
        server.run(&mut session, line);
    }
    let seen = answer(&mut server, &mut session, "EXEC");
    assert_eq!(seen, "*3\n  +OK\n  :1\n  \"1\"");

    for line in ["MULTI", "SET a 2", "hits.fail /index"] {
        server.run(&mut session, line);
    }
    let seen = answer(&mut server, &mut session, "EXEC");
    assert!(
        seen.starts_with("-EXECABORT ") && seen.contains("hits.lua:11: no such page"),
        "{seen}"
    );
    assert_eq!(answer(&mut server, &mut session, "MGET a /index"), "*2\n  \"1\"\n  \"1\"");
}

#[test]
fn a_handler_of_http_cannot_be_called_by_name() {
    let (mut server, mut session) = server();
    let seen = answer(&mut server, &mut session, "hits.page");
    assert_eq!(
        seen,
        "-ERR hits.page answers GET /hits/:page over HTTP and cannot be called by name"
    );
}

#[test]
fn the_procedures_are_listed_as_functions() {
    let (mut server, mut session) = server();
    server.run(&mut session, "HELLO 3");
    let seen = answer(&mut server, &mut session, "FUNCTION LIST LIBRARYNAME h*");
    assert!(seen.starts_with("*1\n  %3\n    \"library_name\"\n    \"hits\"\n"), "{seen}");
    assert!(seen.contains("\"hits.get\"") && seen.contains("+no-writes"), "{seen}");
    assert!(!seen.contains("hits.page"), "{seen}");
    assert_eq!(answer(&mut server, &mut session, "FUNCTION LIST LIBRARYNAME x*"), "*0");
}

/// Runs the part of a request that a worker does itself.
fn step_on_worker(server: &mut Server, session: &mut Session, line: &[&[u8]]) -> Step {
    let request = tokaido_wire::resp::Request::from_arguments(line);
    let mut out = Vec::new();
    let mut reply = tokaido_wire::resp::ReplyWriter::new(&mut out, session.version());
    let target = Target::Snapshot(&mut *server.snapshot);
    let (shared, procedures) = (&*server.shared, server.program.procedures());
    let mut context = Context::new(shared, procedures, target, false);
    let step = execute(session, request, &mut context, &mut reply);
    assert_eq!(step == Step::Done, !out.is_empty());
    step
}

#[test]
fn what_may_take_long_is_sent_to_the_pool() {
    let (mut server, mut session) = server();
    let mut step = |line: &[&[u8]]| step_on_worker(&mut server, &mut session, line);
    assert_eq!(step(&[b"KEYS", b"*"]), Step::NeedsPool);
    assert_eq!(step(&[b"hits.get", b"/index"]), Step::NeedsPool);
    assert_eq!(step(&[b"hits.count", b"/index"]), Step::NeedsWriter);
    assert_eq!(step(&[b"GET", b"/index"]), Step::Done);
    assert_eq!(step(&[b"SCAN", b"0"]), Step::Done);
}

#[test]
fn what_visits_many_elements_is_sent_to_the_pool() {
    let (mut server, mut session) = server();
    let texts = |text: fn(usize) -> String| (0..1001).map(text).collect::<String>();
    server.run(&mut session, &format!("HSET hash{}", texts(|i| format!(" f{i} v"))));
    server.run(&mut session, &format!("RPUSH list{}", texts(|i| format!(" {i}"))));
    server.run(&mut session, &format!("ZADD zset{}", texts(|i| format!(" {i} m{i}"))));
    server.run(&mut session, "PING");
    let mut step = |line: &[&[u8]]| step_on_worker(&mut server, &mut session, line);
    assert_eq!(step(&[b"HGETALL", b"hash"]), Step::NeedsPool);
    assert_eq!(step(&[b"HGET", b"hash", b"f1000"]), Step::Done);
    assert_eq!(step(&[b"HRANDFIELD", b"hash", b"10"]), Step::Done);
    assert_eq!(step(&[b"LRANGE", b"list", b"0", b"-1"]), Step::NeedsPool);
    assert_eq!(step(&[b"LRANGE", b"list", b"-100", b"-1"]), Step::Done);
    assert_eq!(step(&[b"LINDEX", b"list", b"-1"]), Step::Done);
    assert_eq!(step(&[b"ZRANGE", b"zset", b"0", b"-1"]), Step::NeedsPool);
    assert_eq!(step(&[b"ZRANGEBYSCORE", b"zset", b"-inf", b"+inf"]), Step::NeedsPool);
    assert_eq!(step(&[b"ZRANGE", b"zset", b"-9", b"-1"]), Step::Done);
    assert_eq!(step(&[b"ZUNION", b"1", b"zset"]), Step::NeedsPool);
}

/// A rank that takes a walk is found in the pool, and is the reason to count the members; then a worker finds it.
#[test]
fn ranks_in_large_sorted_sets_are_sent_to_the_pool_until_the_members_are_counted() {
    let (mut server, mut session) = server();
    let members: String = (0..1001).map(|i| format!(" {i} m{i}")).collect();
    server.run(&mut session, &format!("ZADD zset{members}"));
    server.run(&mut session, "PING");
    let requests: [&[&[u8]]; 4] = [
        &[b"ZRANK", b"zset", b"m700"],
        &[b"ZCOUNT", b"zset", b"100", b"900"],
        &[b"ZRANGE", b"zset", b"500", b"502"],
        &[b"ZRANGEBYSCORE", b"zset", b"5", b"+inf", b"LIMIT", b"600", b"2"],
    ];
    for request in requests {
        assert_eq!(step_on_worker(&mut server, &mut session, request), Step::NeedsPool);
    }
    let replies = ["ZRANK zset m700", "ZCOUNT zset 100 900", "ZRANGE zset 500 502"];
    let before = replies.map(|line| answer(&mut server, &mut session, line));
    assert_eq!(before[0], ":700");
    let mut writer = server.shared.store().writer().unwrap();
    let counted = transact(&mut *writer, |tx| count_requested(tx, 10_000));
    assert_eq!(counted.map_err(|error: TransactError<WriteError>| error.to_string()), Ok(1001));
    drop(writer);
    server.run(&mut session, "PING");
    for request in requests {
        assert_eq!(step_on_worker(&mut server, &mut session, request), Step::Done);
    }
    assert_eq!(replies.map(|line| answer(&mut server, &mut session, line)), before);
}

/// An engine whose reads block.
struct SlowStore(tree::TreeStore);

impl Store for SlowStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        self.0.database(name)
    }
    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.0.find_database(name)
    }
    fn databases(&self) -> Vec<(DatabaseId, String)> {
        self.0.databases()
    }
    fn capabilities(&self, _: DatabaseId) -> Capabilities {
        Capabilities { name: "slow", reads_block: true, ..Capabilities::TREE }
    }
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.0.snapshot()
    }
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        self.0.writer()
    }
}

#[test]
fn no_read_of_an_engine_whose_reads_block_runs_on_a_worker() {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(directory.path(), tree::Options::default()).unwrap();
    let clock = Arc::new(TestClock(AtomicU64::new(START_MS)));
    let store = Arc::new(SlowStore(store));
    let mut server = Server::over(store, directory, clock, None, &sources());
    let mut session = server.session();
    // On another engine, the procedure's calls would run on workers by now.
    for _ in 0..10 {
        server.run(&mut session, "hits.get /index");
    }
    let mut step = |line: &[&[u8]]| step_on_worker(&mut server, &mut session, line);
    assert_eq!(step(&[b"GET", b"k"]), Step::NeedsPool);
    assert_eq!(step(&[b"SCAN", b"0"]), Step::NeedsPool);
    assert_eq!(step(&[b"WATCH", b"k"]), Step::NeedsPool);
    assert_eq!(step(&[b"hits.get", b"/index"]), Step::NeedsPool);
    assert_eq!(step(&[b"SET", b"k", b"v"]), Step::NeedsWriter);
    assert_eq!(step(&[b"PING"]), Step::Done);
}
