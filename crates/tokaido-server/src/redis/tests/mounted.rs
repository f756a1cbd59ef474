//! Caches and constant databases, under the same commands.

use std::{path::Path, sync::Arc};

use tokaido_script::Sources;
use tokaido_store::{
    NewRecord, cache,
    cdb::{self, Duplicates},
    composite::{self, Mount, MountEngine},
};

use super::{Server, TestClock, golden};

fn cache_named(name: &str, clock: Arc<TestClock>) -> Mount {
    let options = cache::Options { bytes_max: 1 << 20, clock, ..cache::Options::default() };
    Mount { name: name.to_owned(), engine: MountEngine::Cache(options) }
}

/// A file that contains one key twice.
fn cdb_named(name: &str, directory: &Path) -> Mount {
    let path = directory.join("ports.cdb");
    let options = cdb::Options { duplicates: Duplicates::Keep, ..cdb::Options::default() };
    let mut writer = cdb::Writer::create(&path, &options).unwrap();
    for (key, value) in [("ssh", "22"), ("http", "80"), ("http", "8080"), ("https", "443")] {
        writer.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    Mount { name: name.to_owned(), engine: MountEngine::Cdb(path) }
}

/// A tree, with a cache `hot` and a file `ports` mounted.
fn server() -> Server {
    Server::with_mounts(None, &Sources::default(), |directory, clock| {
        vec![cache_named("hot", clock), cdb_named("ports", directory)]
    })
}

/// A server whose first database is a cache.
fn cache_server() -> Server {
    Server::with_mounts(None, &Sources::default(), |_, clock| vec![cache_named("main", clock)])
}

/// Replies do not depend on the engine.
#[test]
fn a_cache_answers_as_a_tree_does() {
    for name in ["set", "counters"] {
        golden::check_on(name, cache_server);
    }
}

#[test]
fn cache() {
    golden::check_on("cache", server);
}

#[test]
fn cdb() {
    golden::check_on("cdb", server);
}

#[test]
fn a_write_to_a_cache_needs_no_writer() {
    let mut server = server();
    let mut session = server.session();
    // The test holds the writer, so that anything that needs it fails.
    let store = Arc::clone(server.shared.store());
    let writer = store.writer().unwrap();
    for line in ["SELECT hot", "SET k 1", "INCR k", "GET k", "DEL k", "FLUSHDB"] {
        let (out, _) = server.run(&mut session, line);
        assert!(!out.starts_with(b"-"), "{line}: {}", out.escape_ascii());
    }
    drop(writer);
}

#[test]
fn scans_of_a_cache_meet_every_key_through_cursors_that_clients_can_read() {
    let mut server = server();
    let mut session = server.session();
    server.run(&mut session, "SELECT hot");
    let pairs: String = (0..500).map(|i| format!(" key:{i} {i}")).collect();
    server.run(&mut session, &format!("MSET{pairs}"));
    for options in ["", "COUNT 1", "COUNT 100", "MATCH key:*"] {
        let mut keys = super::scanning::scan(&mut server, &mut session, options);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 500, "{options}");
    }
}

/// The race that only the adapter can lose: the record changes between a command's read and its
/// write.
#[test]
fn counters_of_several_threads_lose_nothing() {
    const EACH: i64 = 2000;
    let server = server();
    let store = Arc::clone(server.shared.store());
    let hot = store.find_database("hot").unwrap();
    let cache = composite::cache(&*store, hot).expect("it is a cache");
    cache.set(b"n", NewRecord::of(b"0")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    cache
                        .transact::<_, tokaido_store::IncrementError>(hot, |tx| {
                            tokaido_store::WriteOperations::increment(tx, hot, b"n", 1)
                        })
                        .unwrap();
                }
            });
        }
    });
    let mut value = Vec::new();
    cache.get(b"n", &mut value).unwrap();
    assert_eq!(value, (3 * EACH).to_string().as_bytes());
}
