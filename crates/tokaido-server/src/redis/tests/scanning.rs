//! SCAN from start to end.

use std::collections::{BTreeMap, BTreeSet};

use tokaido_script::Sources;
use tokaido_wire::resp::{Reply, ReplyDecoder};

use super::{Server, Session};

/// One step of a scan: the next cursor and the keys.
fn step(server: &mut Server, session: &mut Session, line: &str) -> (String, Vec<String>) {
    let out = server.run(session, line).0;
    let Some((Reply::Array(parts), _)) = ReplyDecoder::new().decode(&out).unwrap() else {
        panic!("{line}: {}", out.escape_ascii());
    };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    let Reply::Array(keys) = &parts[1] else { panic!("{parts:?}") };
    (text(&parts[0]), keys.iter().map(text).collect())
}

pub(super) fn scan(server: &mut Server, session: &mut Session, options: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let (next, found) = step(server, session, &format!("SCAN {cursor} {options}"));
        keys.extend(found);
        if next == "0" {
            return keys;
        }
        assert!(next.parse::<u64>().unwrap() < 1 << 53);
        cursor = next;
    }
}

fn filled(count: usize) -> (Server, Session) {
    let mut server = Server::new(None, &Sources::default());
    let mut session = server.session();
    let keys: Vec<usize> = (0..count).collect();
    for keys in keys.chunks(1000) {
        let pairs: String = keys.iter().map(|i| format!(" key:{i} {i}")).collect();
        server.run(&mut session, &format!("MSET{pairs}"));
    }
    (server, session)
}

#[test]
fn a_scan_gives_every_key_once_and_in_order() {
    let (mut server, mut session) = filled(137);
    let expected: BTreeSet<String> = (0..137).map(|i| format!("key:{i}")).collect();
    for options in ["", "COUNT 1", "COUNT 7", "COUNT 137", "COUNT 138", "MATCH key:* COUNT 50"] {
        let keys = scan(&mut server, &mut session, options);
        assert!(keys.iter().eq(&expected), "{options}: {keys:?}");
    }
    assert_eq!(scan(&mut server, &mut session, "MATCH key:13? COUNT 2").len(), 7);
    assert_eq!(scan(&mut server, &mut session, "TYPE hash").len(), 0);
}

#[test]
fn a_scan_outlives_changes_under_it() {
    let (mut server, mut session) = filled(20);
    let (cursor, first) = step(&mut server, &mut session, "SCAN 0 COUNT 5");
    // Delete the very key at which the scan stopped.
    server.run(&mut session, &format!("DEL {}", first.last().unwrap()));
    server.run(&mut session, "SET zzz 1");
    let (_, rest) = step(&mut server, &mut session, &format!("SCAN {cursor} COUNT 100"));
    assert_eq!(first.len() + rest.len(), 21);
    assert_eq!(rest.last().unwrap(), "zzz");
}

#[test]
fn a_cursor_belongs_to_its_database() {
    let (mut server, mut session) = filled(20);
    let (cursor, _) = step(&mut server, &mut session, "SCAN 0");
    server.run(&mut session, "SELECT 1");
    let (out, _) = server.run(&mut session, &format!("SCAN {cursor}"));
    assert!(out.starts_with(b"-ERR cursor "), "{}", out.escape_ascii());
}

/// How often each key was drawn.
fn draws(server: &mut Server, session: &mut Session, count: usize) -> BTreeMap<String, usize> {
    let mut met = BTreeMap::new();
    for _ in 0..count {
        let out = server.run(session, "RANDOMKEY").0;
        let Some((Reply::Bulk(key), _)) = ReplyDecoder::new().decode(&out).unwrap() else {
            panic!("{}", out.escape_ascii());
        };
        *met.entry(String::from_utf8(key).unwrap()).or_default() += 1;
    }
    met
}

#[test]
fn every_key_is_drawn_as_often_as_any_other() {
    let (mut server, mut session) = filled(200);
    server.run(&mut session, "SET far-away 1");
    let met = draws(&mut server, &mut session, 4000);
    assert_eq!(met.len(), 201);
    assert!(met.values().all(|&times| times < 60), "{met:?}");
}

#[test]
fn keys_with_few_neighbours_are_not_drawn_much_more_often() {
    let (mut server, mut session) = filled(12_000);
    let met = draws(&mut server, &mut session, 600);
    let short: usize = met.iter().filter(|(key, _)| key.len() <= 7).map(|(_, times)| times).sum();
    assert!(met.len() > 500, "{}", met.len());
    // A twelfth of the keys are that short.
    assert!((20..=110).contains(&short), "{short}");
}
