//! Names of databases: what takes one, what frees it, and who may have how many.

mod common;

use std::collections::BTreeSet;

use common::{Client, TestServer, encode};
use tokaido_server::Limits;

const LUA: &str = r#"
    local tokaido = require "tokaido"
    return {
      put = tokaido.write(function(tx, name, value) tx:database(name):put("k", value) end),
      get = tokaido.read(function(tx, name) return tx:database(name):get("k") end),
      look = tokaido.write(function(tx, name) return tx:database(name):get("k") end),
      field = tokaido.write(function(tx) return tx.a:get("k") end),
      drop = tokaido.write(function(tx, name) return tx:drop_database(name) end),
      again = tokaido.write(function(tx, name)
        tx:drop_database(name)
        assert(tx:database(name):get("k") == nil)
        tx:database(name):put("k", "again")
        return tx:database(name):get("k")
      end),
      fail = tokaido.write(function(tx, name)
        tx:drop_database(name)
        error { message = "no" }
      end),
      command = tokaido.write(function(tx, ...) return tx:command(...) end),
    }
"#;

fn start() -> TestServer {
    let limits = Limits { databases_max: 40, client_databases_max: 20, ..Limits::default() };
    TestServer::start_with_lua(LUA, |config| config.limits = limits)
}

/// The databases of the store, without the cache for memcached.
fn names(server: &TestServer) -> BTreeSet<String> {
    let databases = server.server.store().databases().into_iter().map(|(_, name)| name);
    databases.filter(|name| name != "memcached").collect()
}

/// Sends the commands as one pipeline, and checks the reply to each.
#[track_caller]
fn pipeline(client: &mut Client, commands: &[(&[&str], &str)]) {
    client.send(commands.iter().flat_map(|(command, _)| encode(command)).collect::<Vec<_>>());
    for (_, reply) in commands {
        client.expect(reply);
    }
}

#[test]
fn to_name_a_database_without_writing_to_it_takes_nothing() {
    let server = start();
    let mut client = server.connect();
    for n in 0..200 {
        let name = format!("n{n}");
        client.ask(&["select", &name], "+OK\r\n");
        client.ask(&["get", "k"], "$-1\r\n");
        client.ask(&["del", "k"], ":0\r\n");
        client.ask(&["scan", "0"], "*2\r\n$1\r\n0\r\n*0\r\n");
        pipeline(
            &mut client,
            &[
                (&["flushdb"], "+OK\r\n"),
                (&["dbsize"], ":0\r\n"),
                (&["persist", "k"], ":0\r\n"),
                (&["copy", "k", "l", "DB", "elsewhere"], ":0\r\n"),
                (&["move", "k", "elsewhere"], ":0\r\n"),
                (&["multi"], "+OK\r\n"),
                (&["getdel", "k"], "+QUEUED\r\n"),
                (&["exec"], "*1\r\n$-1\r\n"),
                (&["set", "k", "v", "xx"], "$-1\r\n"),
                (&["t.get", &name], "$-1\r\n"),
                (&["t.look", &name], "$-1\r\n"),
                (&["t.command", "DEL", "k"], ":0\r\n"),
                (&["tokaido", "drop", &name], ":0\r\n"),
            ],
        );
        assert_eq!(server.http(&format!("GET /v1/db/{name}/k"), "", "").status, 404);
        assert_eq!(server.http(&format!("DELETE /v1/db/{name}/k"), "", "").status, 404);
        assert_eq!(server.http(&format!("GET /v1/db/{name}"), "", "").status, 404);
        let refused = server.http(&format!("PUT /v1/db/{name}/k"), "if-match: *\r\n", "v");
        assert_eq!(refused.status, 412);
    }
    assert_eq!(names(&server), ["main".to_owned()].into());
    client.ask(&["set", "k", "v"], "+OK\r\n");
    client.ask(&["get", "k"], "$1\r\nv\r\n");
    assert_eq!(names(&server), ["main", "n199"].map(str::to_owned).into());
    client.ask(&["select", "a b"], "-ERR bad database name \"a b\": use 1 to 64 of a-z A-Z 0-9 _ - . with a letter, digit or _ first\r\n");
    for number in 0..16 {
        client.ask(&["select", &number.to_string()], "+OK\r\n");
        pipeline(&mut client, &[(&["set", "n", "1"], "+OK\r\n"), (&["get", "n"], "$1\r\n1\r\n")]);
    }
    client.ask(&["select", "16"], "-ERR DB index is out of range\r\n");
    assert!(names(&server).contains("15"));
}

#[test]
fn a_batch_sees_the_database_that_it_makes() {
    let server = start();
    let (mut client, mut other) = (server.connect(), server.connect());
    other.ask(&["select", "new"], "+OK\r\n");
    other.ask(&["get", "k"], "$-1\r\n");
    other.ask(&["watch", "k"], "+OK\r\n");
    pipeline(
        &mut client,
        &[
            (&["select", "new"], "+OK\r\n"),
            (&["set", "k", "v"], "+OK\r\n"),
            (&["get", "k"], "$1\r\nv\r\n"),
            (&["t.get", "new"], "$1\r\nv\r\n"),
            (&["multi"], "+OK\r\n"),
            (&["select", "newer"], "+QUEUED\r\n"),
            (&["set", "k", "w"], "+QUEUED\r\n"),
            (&["get", "k"], "+QUEUED\r\n"),
            (&["t.command", "GET", "k"], "+QUEUED\r\n"),
            (&["exec"], "*4\r\n+OK\r\n+OK\r\n$1\r\nw\r\n$1\r\nw\r\n"),
            (&["get", "k"], "$1\r\nw\r\n"),
        ],
    );
    other.ask(&["get", "k"], "$1\r\nv\r\n");
    pipeline(
        &mut other,
        &[(&["multi"], "+OK\r\n"), (&["ping"], "+QUEUED\r\n"), (&["exec"], "*-1\r\n")],
    );
    other.command(&["client", "info"]);
    let head = other.read_line();
    let line = other.read_line();
    assert!(line.contains(" db=new "), "{head}{line}");
}

#[test]
fn clients_cannot_use_up_the_names_that_procedures_need() {
    let server = start();
    let mut client = server.connect();
    for n in 1..20 {
        client.ask(&["select", &format!("c{n}")], "+OK\r\n");
        client.ask(&["set", "k", "v"], "+OK\r\n");
    }
    client.ask(&["select", "c20"], "+OK\r\n");
    let full = "the store has 20 databases, which is the limit";
    for command in [&["set", "k", "v"][..], &["incr", "k"]] {
        client.command(command);
        let line = client.read_line();
        assert!(line.contains(full), "{line}");
    }
    let answer = server.http("PUT /v1/db/c20/k", "", "v");
    assert!(answer.status == 400 && answer.text().contains(full), "{}", answer.text());
    client.ask(&["get", "k"], "$-1\r\n");
    assert_eq!(server.http("PUT /v1/db/c19/k", "", "w").status, 204);
    for n in 20..40 {
        client.ask(&["t.put", &format!("p{n}"), "v"], "$-1\r\n");
    }
    client.command(&["t.put", "p40", "v"]);
    let line = client.read_line();
    assert!(line.contains("the store has 40 databases, which is the limit"), "{line}");
    // Dropping a database makes room for another.
    client.ask(&["tokaido", "drop", "p39"], ":1\r\n");
    client.ask(&["t.put", "p40", "v"], "$-1\r\n");
}

#[test]
fn every_interface_drops_a_database_and_gives_its_name_back() {
    let server = start();
    let mut client = server.connect();
    let mut reader = server.connect();
    let drops: [&dyn Fn(&mut Client); 3] = [
        &|client| client.ask(&["TOKAIDO", "DROP", "a"], ":1\r\n"),
        &|_| assert_eq!(server.http("DELETE /v1/db/a", "", "").status, 204),
        &|client| client.ask(&["t.drop", "a"], ":1\r\n"),
    ];
    reader.ask(&["select", "a"], "+OK\r\n");
    for drop in drops {
        client.ask(&["select", "a"], "+OK\r\n");
        pipeline(&mut client, &[(&["set", "k", "1"], "+OK\r\n"), (&["set", "l", "1"], "+OK\r\n")]);
        reader.ask(&["get", "k"], "$1\r\n1\r\n");
        client.ask(&["t.field"], "$1\r\n1\r\n");
        client.command(&["t.fail", "a"]);
        assert!(client.read_line().starts_with('-'));
        reader.ask(&["get", "k"], "$1\r\n1\r\n");
        drop(&mut client);
        assert_eq!(names(&server), ["main".to_owned()].into());
        reader.ask(&["get", "k"], "$-1\r\n");
        client.ask(&["t.field"], "$-1\r\n");
        client.ask(&["dbsize"], ":0\r\n");
        // Another database, which may have taken the place of the dropped one.
        client.ask(&["t.put", "b", "2"], "$-1\r\n");
        client.ask(&["t.field"], "$-1\r\n");
        client.ask(&["t.again", "b"], "$5\r\nagain\r\n");
        client.ask(&["t.drop", "b"], ":1\r\n");
    }
    client.ask(&["t.drop", "a"], "$-1\r\n");
    assert_eq!(server.http("DELETE /v1/db/a", "", "").status, 404);
    client.ask(&["set", "k", "3"], "+OK\r\n");
    // A script whose variable for the key is empty must not drop the database.
    for request in ["DELETE /v1/db/a/", "PUT /v1/db/a/"] {
        let refused = server.http(request, "", "");
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("a key has at least one byte"), "{}", refused.text());
    }
    assert_eq!(server.http("GET /v1/db/a/", "", "").text(), "{\"key\":\"k\",\"value\":\"3\"}\n");
    reader.ask(&["get", "k"], "$1\r\n3\r\n");
    // The database that sessions begin with continues to exist, but is empty.
    client.ask(&["select", "0"], "+OK\r\n");
    client.ask(&["set", "k", "v"], "+OK\r\n");
    client.ask(&["tokaido", "drop", "main"], ":1\r\n");
    client.ask(&["get", "k"], "$-1\r\n");
    client.ask(&["set", "k", "v"], "+OK\r\n");
    client.ask(&["tokaido", "drop", "a"], ":1\r\n");
    let directory = server.stop();
    let server = TestServer::start_in(directory, |_| {});
    assert_eq!(names(&server), ["main".to_owned()].into());
    server.connect().ask(&["get", "k"], "$1\r\nv\r\n");
}

#[test]
fn flushall_gives_every_name_back() {
    let server = start();
    let mut client = server.connect();
    let mut other = server.connect();
    other.ask(&["select", "7"], "+OK\r\n");
    for _ in 0..3 {
        for name in ["a", "b", "7"] {
            client.ask(&["t.put", name, "v"], "$-1\r\n");
        }
        client.ask(&["select", "0"], "+OK\r\n");
        client.ask(&["set", "k", "v"], "+OK\r\n");
        client.ask(&["flushall"], "+OK\r\n");
        assert_eq!(names(&server), ["main".to_owned()].into());
        client.ask(&["get", "k"], "$-1\r\n");
        other.ask(&["get", "k"], "$-1\r\n");
        client.ask(&["t.get", "a"], "$-1\r\n");
    }
    // A database that the same batch or transaction has created, and creates again.
    pipeline(
        &mut client,
        &[
            (&["select", "new"], "+OK\r\n"),
            (&["set", "k", "v"], "+OK\r\n"),
            (&["flushall"], "+OK\r\n"),
            (&["get", "k"], "$-1\r\n"),
            (&["set", "k", "w"], "+OK\r\n"),
            (&["get", "k"], "$1\r\nw\r\n"),
            (&["multi"], "+OK\r\n"),
            (&["flushall"], "+QUEUED\r\n"),
            (&["get", "k"], "+QUEUED\r\n"),
            (&["set", "k", "x"], "+QUEUED\r\n"),
            (&["exec"], "*3\r\n+OK\r\n$-1\r\n+OK\r\n"),
            (&["multi"], "+OK\r\n"),
            (&["select", "newer"], "+QUEUED\r\n"),
            (&["set", "k", "v"], "+QUEUED\r\n"),
            (&["flushall"], "+QUEUED\r\n"),
            (&["exec"], "*3\r\n+OK\r\n+OK\r\n+OK\r\n"),
        ],
    );
    client.ask(&["get", "k"], "$-1\r\n");
    assert_eq!(names(&server), ["main".to_owned()].into());
    // If a transaction fails, nothing changes.
    client.ask(&["t.put", "a", "v"], "$-1\r\n");
    client.ask(&["select", "0"], "+OK\r\n");
    client.ask(&["set", "k", "text"], "+OK\r\n");
    pipeline(
        &mut client,
        &[
            (&["multi"], "+OK\r\n"),
            (&["flushall"], "+QUEUED\r\n"),
            (&["set", "k", "text"], "+QUEUED\r\n"),
            (&["incr", "k"], "+QUEUED\r\n"),
        ],
    );
    client.command(&["exec"]);
    assert!(client.read_line().starts_with("-EXECABORT"));
    client.ask(&["t.get", "a"], "$1\r\nv\r\n");
    client.ask(&["get", "k"], "$4\r\ntext\r\n");
}

#[test]
fn names_are_given_back_as_often_as_databases_are_made() {
    let server = TestServer::start_with(|config| {
        config.limits.databases_max = 2;
        config.sync = tokaido_store::tree::SyncMode::Os;
    });
    let mut client = server.connect();
    // More databases than there are numbers for them.
    for from in (0..20_000).step_by(500) {
        let mut sent = Vec::new();
        for n in from..from + 500 {
            let name = format!("n{n}");
            sent.extend(encode(&["select", &name]));
            sent.extend(encode(&["set", "k", &name]));
            sent.extend(encode(&["tokaido", "drop", &name]));
        }
        client.send(sent);
        for _ in 0..500 {
            client.expect("+OK\r\n+OK\r\n:1\r\n");
        }
    }
    assert_eq!(names(&server), ["main".to_owned()].into());
}
