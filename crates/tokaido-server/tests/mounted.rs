//! Caches and constant databases over the wire.

mod common;

use std::{path::Path, thread, time::Duration};

use common::TestServer;
use tokaido_server::{Bytes, Config, DatabaseConfig, Server, StartError};
use tokaido_store::cdb;

fn make_cdb(path: &Path, records: &[(&str, &str)]) {
    let mut writer = cdb::Writer::create(path, &cdb::Options::default()).expect("a writer");
    for (key, value) in records {
        writer.put(key.as_bytes(), value.as_bytes()).expect("a record");
    }
    writer.finish().expect("a file");
}

/// Adds a cache `hot` and a file `ports`, which lies beside the data.
fn mount(config: &mut Config) {
    let file = config.directory.with_file_name("ports.cdb");
    make_cdb(&file, &[("ssh", "22"), ("http", "80"), ("https", "443")]);
    let hot = DatabaseConfig::Cache { bytes: Bytes(1 << 20), shards: 0 };
    config.databases.insert("hot".to_owned(), hot);
    config.databases.insert("ports".to_owned(), DatabaseConfig::Cdb { file });
}

#[test]
fn http_writes_to_a_cache_and_tells_its_versions() {
    let server = TestServer::start_with(mount);
    let created = server.http("PUT /v1/db/hot/k", "tokaido-flags: 7\r\n", "one");
    assert_eq!(created.status, 201);
    let etag = created.header("etag").expect("a tag").to_owned();
    let got = server.http("GET /v1/db/hot/k", "", "");
    assert_eq!((got.status, got.text()), (200, "one"));
    assert_eq!((got.header("etag"), got.header("tokaido-flags")), (Some(etag.as_str()), Some("7")));
    let unchanged = server.http("GET /v1/db/hot/k", &format!("if-none-match: {etag}\r\n"), "");
    assert_eq!(unchanged.status, 304);
    let stale = server.http("PUT /v1/db/hot/k", "if-match: \"999\"\r\n", "two");
    assert_eq!(stale.status, 412);
    let swapped = server.http("PUT /v1/db/hot/k", &format!("if-match: {etag}\r\n"), "two");
    assert_eq!(swapped.status, 204);
    assert_ne!(swapped.header("etag"), Some(etag.as_str()));
    server.connect().ask(&["SELECT", "hot"], "+OK\r\n");
    assert_eq!(server.http("DELETE /v1/db/hot/k", "", "").status, 204);
    assert_eq!(server.http("DELETE /v1/db/hot/k", "", "").status, 404);
    let metrics = server.http("GET /metrics", "", "");
    for line in [
        "tokaido_requests_total{protocol=\"http\",place=\"writer\"} 0",
        "tokaido_cache_bytes_max{database=\"hot\"} 1048576",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "{line} in\n{}", metrics.text());
    }
}

#[test]
fn http_reads_a_constant_database_and_refuses_to_write_it() {
    let server = TestServer::start_with(mount);
    assert_eq!(server.http("GET /v1/db/ports/http", "", "").text(), "80");
    for request in ["PUT /v1/db/ports/http", "DELETE /v1/db/ports/http"] {
        let refused = server.http(request, "", "1");
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
        assert!(refused.text().contains("tokaido cdb make"), "{}", refused.text());
    }
}

#[test]
fn what_is_mounted_is_not_dropped_over_http() {
    let server = TestServer::start_with(mount);
    for name in ["hot", "ports"] {
        let refused = server.http(&format!("DELETE /v1/db/{name}"), "", "");
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains("[databases]"), "{}", refused.text());
    }
    assert_eq!(server.http("GET /v1/db/ports/http", "", "").text(), "80");
}

#[test]
fn listings_go_through_what_has_no_order() {
    let server = TestServer::start_with(mount);
    let list = |query: &str| server.http(&format!("GET /v1/db/ports?{query}"), "", "");
    insta::assert_snapshot!(list("").text(), @r#"
    {"key":"ssh","value":"22"}
    {"key":"http","value":"80"}
    {"key":"https","value":"443"}
    "#);
    let prefixed = list("prefix=http&values=false");
    assert_eq!(prefixed.text(), "{\"key\":\"http\"}\n{\"key\":\"https\"}\n");
    assert_eq!(list("from=i").text(), "{\"key\":\"ssh\",\"value\":\"22\"}\n");
    let first = list("limit=1&values=false");
    let (entry, next) = first.text().split_once('\n').expect("two lines");
    assert_eq!(entry, "{\"key\":\"ssh\"}");
    let cursor = next.trim().strip_prefix("{\"next_cursor\":").and_then(|n| n.strip_suffix('}'));
    let rest = list(&format!("values=false&cursor={}", cursor.expect("a cursor")));
    assert_eq!(rest.text(), "{\"key\":\"http\"}\n{\"key\":\"https\"}\n");
    assert_eq!(list("cursor=4398046511104").status, 409);
    assert_eq!(list("reverse=true").status, 400);
    assert_eq!(list("after=ssh").status, 400);
    assert_eq!(server.http("GET /v1/db/main?cursor=1", "", "").status, 400);
    for i in 0..300 {
        server.http(&format!("PUT /v1/db/hot/k{i}"), "", "v");
    }
    let (mut keys, mut query) = (Vec::new(), "limit=50&values=false".to_owned());
    loop {
        let page = server.http(&format!("GET /v1/db/hot?{query}"), "", "");
        let (next, entries): (Vec<_>, Vec<_>) =
            page.text().lines().map(str::to_owned).partition(|l| l.contains("next_cursor"));
        keys.extend(entries);
        let Some(next) = next.first() else { break };
        let digits: String = next.chars().filter(char::is_ascii_digit).collect();
        query = format!("limit=50&values=false&cursor={digits}");
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 300);
}

#[test]
fn engines_are_listed() {
    let server = TestServer::start_with(mount);
    let listing = server.http("GET /v1/db", "", "");
    insta::assert_snapshot!(listing.text(), @r#"{"databases":[{"engine":"cache","key_bytes":0,"name":"hot","records":0,"value_bytes":0},{"engine":"tree","key_bytes":0,"name":"main","records":0,"value_bytes":0},{"engine":"cache","key_bytes":0,"name":"memcached","records":0,"value_bytes":0},{"engine":"cdb","key_bytes":12,"name":"ports","records":3,"value_bytes":7}]}"#);
}

#[test]
fn a_replaced_file_is_served_without_a_restart() {
    let server = TestServer::start_with(mount);
    make_cdb(&server.path().join("ports.cdb"), &[("http", "8080")]);
    while server.http("GET /v1/db/ports/http", "", "").text() != "8080" {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.http("GET /v1/db/ports/ssh", "", "").status, 404);
}

#[test]
fn what_cannot_be_mounted_keeps_the_server_from_starting() {
    let server = TestServer::start();
    server.http("PUT /v1/db/taken/k", "", "v");
    let directory = server.stop();
    let refusal = |name: &str, database: DatabaseConfig| {
        let mut config = common::config(directory.path());
        config.databases.insert(name.to_owned(), database);
        match Server::start(config) {
            Err(error @ StartError::Mount { .. }) => error.to_string(),
            other => panic!("{:?}", other.map(drop)),
        }
    };
    let cache = |bytes| DatabaseConfig::Cache { bytes: Bytes(bytes), shards: 0 };
    assert!(refusal("taken", cache(1 << 20)).contains("has 1 records in the store"));
    assert!(refusal("hot", cache(1)).contains("(see [databases] in the configuration)"));
    assert!(refusal("hot", cache(1)).contains("database hot: a cache needs"));
    assert!(refusal("a b", cache(1 << 20)).contains("bad database name"));
    // The error for the implicit cache says where it comes from.
    let mut config = common::config(directory.path());
    config.memcached.database = "taken".to_owned();
    let error = Server::start(config).map(drop).expect_err("it is taken").to_string();
    assert!(error.contains("(see memcached.database and memcached.bytes"), "{error}");
    let missing = DatabaseConfig::Cdb { file: directory.path().join("none.cdb") };
    assert!(refusal("ports", missing).contains("database ports: cannot read"));
}
