//! Records that are not bytes where bytes are expected: neither HTTP nor Lua reveals what they
//! contain in place of a value.

mod common;

use common::TestServer;
use tokaido_store::{Kind, NewRecord, Store, tree};

const LUA: &str = r#"
local tokaido = require "tokaido"
local t = {}
t.get = tokaido.read(function(tx, key) return tx.main:get(key) end)
t.record = tokaido.read(function(tx, key) return tx.main:record(key) end)
t.many = tokaido.read(function(tx) return tx.main:get_many { "a", "h" } end)
t.all = tokaido.read(function(tx) return tx.main:get_all("h") end)
t.scan = tokaido.read(function(tx) for _ in tx.main:scan() do end end)
t.first = tokaido.read(function(tx) for key in tx.main:scan() do return key end end)
t.keys = tokaido.read(function(tx) local n = 0 for _ in tx.main:keys() do n = n + 1 end return n end)
t.exists = tokaido.read(function(tx, key) return tx.main:exists(key) end)
return t
"#;

/// A server with the record `a` and the hash `h`, created with the store's API.
fn server() -> TestServer {
    TestServer::start_with_lua(LUA, |config| {
        let store = tree::open(&config.directory, tree::Options::default()).expect("a store");
        let main = store.database("main").expect("a database");
        let mut writer = store.writer().expect("the writer");
        let tx = writer.begin().expect("a transaction");
        tx.put(main, b"a", NewRecord::of(b"bytes")).expect("a record");
        let collection = Some(tx.new_collection().expect("a collection"));
        let record = NewRecord { kind: Kind::Hash, collection, ..NewRecord::of(b"inside") };
        tx.put(main, b"h", record).expect("a record");
        writer.commit().expect("a commit");
        writer.flush().expect("a flush");
    })
}

#[test]
fn http_refuses_what_has_no_bytes() {
    let server = server();
    assert_eq!(server.http("GET /v1/db/main/a", "", "").text(), "bytes");
    let refused = server.http("GET /v1/db/main/h", "", "");
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("a hash is under this key, not bytes"), "{}", refused.text());
    let listing = server.http("GET /v1/db/main", "", "");
    let lines = "{\"key\":\"a\",\"value\":\"bytes\"}\n{\"key\":\"h\",\"kind\":\"hash\"}\n";
    assert_eq!(listing.text(), lines);
    // Like SET, PUT replaces it.
    assert_eq!(server.http("PUT /v1/db/main/h", "", "new").status, 204);
    assert_eq!(server.http("GET /v1/db/main/h", "", "").text(), "new");
}

#[test]
fn lua_refuses_what_has_no_bytes() {
    let server = server();
    let mut redis = server.connect();
    redis.ask(&["t.get", "a"], "$5\r\nbytes\r\n");
    for call in [&["t.get", "h"][..], &["t.record", "h"], &["t.many"], &["t.all"], &["t.scan"]] {
        redis.command(call);
        let line = redis.read_line();
        assert!(line.starts_with("-WRONGTYPE "), "{call:?}: {line}");
        assert!(line.contains("a hash is under this key, not bytes"), "{call:?}: {line}");
    }
    redis.ask(&["t.exists", "h"], ":1\r\n");
    redis.ask(&["t.first"], "$1\r\na\r\n");
    redis.ask(&["t.keys"], ":2\r\n");
}
