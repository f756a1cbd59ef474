//! `tokaido call`.

use crate::support::{Directory, Ran, Server, root, tokaido};

fn procedures() -> String {
    let directory = root().join("crates/tokaido/tests/data/procedures");
    format!("--procedures={}", directory.display())
}

fn call(endpoint: &[&str], args: &[&str]) -> Ran {
    tokaido([&["call"], endpoint, args].concat())
}

/// A store in the process and a server must behave alike.
fn check(endpoint: &[&str]) {
    assert_eq!(call(endpoint, &["hits.count", "/index"]).ok(), "1\n");
    assert_eq!(call(endpoint, &["hits.count", "/index"]).ok(), "2\n");
    let echo = call(endpoint, &["hits.echo", "a b", "-1", "品川"]);
    assert_eq!(echo.ok(), "{ \"a b\", \"-1\", \"品川\" }\n");

    let json = call(endpoint, &["--json", "hits.echo", "1", "\"品川\"", "{\"a\": [true, 2.5]}"]);
    let value: serde_json::Value = serde_json::from_str(json.ok()).unwrap();
    assert_eq!(value, serde_json::json!([1, "品川", {"a": [true, 2.5]}]));

    for flag in [&[][..], &["--json"]] {
        let argument = if flag.is_empty() { "/index" } else { "\"/index\"" };
        let refused = call(endpoint, &[flag, &["hits.refuse", argument]].concat());
        assert!(refused.fails(1).contains("refused on purpose"), "{refused:?}");
        let absent = call(endpoint, &[flag, &["hits.nothing"]].concat());
        assert!(absent.fails(1).contains("hits.nothing"), "{absent:?}");
    }
    assert_eq!(
        call(endpoint, &["hits.count", "/index"]).ok(),
        "3\n",
        "a refused call left a trace"
    );
    let not_json = call(endpoint, &["--json", "hits.echo", "text"]);
    assert!(not_json.fails(2).contains("argument 1 is not JSON"), "{not_json:?}");
}

#[test]
fn procedures_are_called_on_a_store_in_the_process() {
    let directory = Directory::new();
    check(&[&directory.store(), &procedures()]);
    let ran = call(&[&directory.store()], &["hits.count", "/index"]);
    assert!(ran.fails(2).contains("--procedures"), "{ran:?}");
}

#[test]
fn procedures_are_called_on_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[&procedures()]);
    check(&[&server.connect()]);
}

#[test]
fn procedures_are_called_through_a_unix_socket() {
    let directory = Directory::new();
    let address = format!("unix:{}", directory.text("t.sock"));
    let server = Server::start_at(&address, &directory, &[&procedures()]);
    assert_eq!(server.connect(), format!("--connect={address}"));
    check(&[&server.connect()]);
    let absent = call(&["--connect=unix:nothing.sock"], &["hits.count", "/index"]);
    assert!(absent.fails(3).contains("cannot connect to unix:nothing.sock"), "{absent:?}");
}
