//! Records of kinds other than strings, under all existing commands.

use std::ops::ControlFlow;

use tokaido_script::Sources;
use tokaido_store::{DatabaseId, Kind, NewRecord, ScanRange, Scanner};

use super::{Server, golden};
use crate::redis::{COMMANDS, Group};

const KINDS: [(&str, Kind); 5] = [
    ("hash", Kind::Hash),
    ("list", Kind::List),
    ("set", Kind::Set),
    ("zset", Kind::SortedSet),
    ("stream", Kind::Stream),
];

/// A server with one record of each kind, with the kind's name as its key.
fn server() -> Server {
    let server = Server::new(None, &Sources::default());
    let mut writer = server.shared.store().writer().unwrap();
    let tx = writer.begin().unwrap();
    for (key, kind) in KINDS {
        // A number: as a string, all commands would accept it.
        let record = NewRecord { kind, ..NewRecord::of(b"1") };
        tx.put(server.shared.main(), key.as_bytes(), record).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    drop(writer);
    server
}

/// A server with a hash of that many elements under `hash`.
fn server_with_elements(count: u16) -> Server {
    let server = Server::new(None, &Sources::default());
    let main = server.shared.main();
    let mut writer = server.shared.store().writer().unwrap();
    let tx = writer.begin().unwrap();
    let collection = tx.new_collection().unwrap();
    let record = NewRecord { kind: Kind::Hash, collection: Some(collection), ..NewRecord::of(b"") };
    tx.put(main, b"hash", record).unwrap();
    for number in 0..count {
        let number = number.to_be_bytes();
        let place = [&collection.prefix()[..], &number].concat();
        tx.put(main.elements(), &place, NewRecord::of(&number)).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    drop(writer);
    server
}

/// The elements of the record under `key`, with their keys' prefix removed.
fn elements(server: &Server, database: DatabaseId, key: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut snapshot = server.shared.store().snapshot().unwrap();
    let Some(record) = snapshot.get(database, key).unwrap() else { return Vec::new() };
    let prefix = record.collection.unwrap().prefix();
    let mut found = Vec::new();
    Scanner::new(database.elements(), ScanRange::prefix(&prefix), usize::MAX)
        .visit(&mut *snapshot, |element| {
            found.push((element.key[prefix.len()..].to_vec(), element.record.value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn elements_go_where_their_record_goes() {
    let mut server = server_with_elements(300);
    let main = server.shared.main();
    let other = server.shared.store().database("1").unwrap();
    let all = elements(&server, main, b"hash");
    assert_eq!(all.len(), 300);
    let mut session = server.session();
    let mut run = |line: &str| golden::show(&server.run(&mut session, line).0);
    assert_eq!(run("OBJECT ENCODING hash"), "\"hashtable\"\n");
    assert_eq!(run("COPY hash copy"), ":1\n");
    assert_eq!(run("COPY hash copy"), ":0\n");
    assert_eq!(run("COPY hash copy REPLACE"), ":1\n");
    assert_eq!(run("MOVE hash 1"), ":1\n");
    assert_eq!(run("RENAME copy renamed"), "+OK\n");
    assert_eq!(run("EXPIRE renamed 100"), ":1\n");
    assert_eq!(elements(&server, main, b"renamed"), all);
    assert_eq!(elements(&server, other, b"hash"), all);
    assert_eq!(elements(&server, main, b"hash"), []);
}

#[test]
fn kinds() {
    golden::check_on("kinds", server);
}

/// A command that is added later must do one or the other as well.
#[test]
fn every_command_of_strings_replaces_another_kind_or_refuses_it() {
    let any_kind = ["mget", "mset", "msetnx", "psetex", "set", "setex", "setnx"];
    for command in COMMANDS.iter().filter(|command| command.group == Group::String) {
        for (key, _) in KINDS {
            let arguments = vec!["1"; usize::from(command.arity.unsigned_abs()) - 2].join(" ");
            let line = format!("{} {key} {arguments}", command.name);
            let mut server = server();
            let mut session = server.session();
            let reply = golden::show(&server.run(&mut session, &line).0);
            // LCS has its own error message.
            let is_refused = reply.starts_with("-WRONGTYPE ")
                || reply.starts_with("-ERR The specified keys must contain string values");
            assert_eq!(is_refused, !any_kind.contains(&command.name), "{line}: {reply}");
            let kind = server.run(&mut session, &format!("TYPE {key}")).0;
            let replaces = ["mset", "psetex", "set", "setex"].contains(&command.name);
            let expected = if replaces { "+string\n".to_owned() } else { format!("+{key}\n") };
            assert_eq!(golden::show(&kind), expected, "{line}");
        }
    }
}
