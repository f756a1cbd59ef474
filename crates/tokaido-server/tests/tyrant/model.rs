//! Commands in any order, checked against a map. All are sent at once, so replies must be in order, too.

use std::{collections::BTreeMap, io::Read as _};

use proptest::{prelude::*, test_runner::TestRunner};

use crate::{binary::request, pinned};

/// The expected contents of the database.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Command {
    Put(String, String),
    PutKeep(String, String),
    PutCat(String, String),
    PutShl(String, String, usize),
    PutNr(String, String),
    Out(String),
    Get(String),
    Vsiz(String),
    Mget(Vec<String>),
    FwmKeys(String, i32),
    AddInt(String, i32),
    PutList(Vec<(String, String)>),
    GetPart(String, usize, usize),
    Range(String, usize),
    Rnum,
    Vanish,
}

fn command() -> impl Strategy<Value = Command> {
    let key = || "[a-c]{1,2}";
    let value = || "[a-z]{1,5}";
    prop_oneof![
        (key(), value()).prop_map(|(k, v)| Command::Put(k, v)),
        (key(), value()).prop_map(|(k, v)| Command::PutKeep(k, v)),
        (key(), value()).prop_map(|(k, v)| Command::PutCat(k, v)),
        (key(), value(), 0..9_usize).prop_map(|(k, v, width)| Command::PutShl(k, v, width)),
        (key(), value()).prop_map(|(k, v)| Command::PutNr(k, v)),
        key().prop_map(Command::Out),
        key().prop_map(Command::Get),
        key().prop_map(Command::Vsiz),
        prop::collection::vec(key(), 0..4).prop_map(Command::Mget),
        (key(), -1..3_i32).prop_map(|(k, max)| Command::FwmKeys(k, max)),
        (key(), any::<i32>()).prop_map(|(k, by)| Command::AddInt(k, by)),
        prop::collection::vec((key(), value()), 0..4).prop_map(Command::PutList),
        (key(), 0..7_usize, 0..7_usize).prop_map(|(k, at, len)| Command::GetPart(k, at, len)),
        (key(), 0..4_usize).prop_map(|(k, max)| Command::Range(k, max)),
        Just(Command::Rnum),
        prop::bool::weighted(0.2).prop_map(|is_rare| match is_rare {
            true => Command::Vanish,
            false => Command::Rnum,
        }),
    ]
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("small").to_be_bytes()
}

/// A list after the code of a reply.
fn list(items: &[&[u8]]) -> Vec<u8> {
    let mut reply = [DONE, &number(items.len())].concat();
    for item in items {
        reply.extend([&number(item.len())[..], item].concat());
    }
    reply
}

const DONE: &[u8] = &[0];
const FAILED: &[u8] = &[1];
const FAILED_LIST: &[u8] = &[1, 0, 0, 0, 0];

fn code(is_done: bool) -> Vec<u8> {
    if is_done { DONE.to_vec() } else { FAILED.to_vec() }
}

/// The bytes of a command, and its expected reply.
fn run(model: &mut Model, command: &Command) -> (Vec<u8>, Vec<u8>) {
    let words = |words: &[&str]| request(&words.join(" "));
    let bytes = |text: &str| text.as_bytes().to_vec();
    match command {
        Command::Put(k, v) => {
            model.insert(bytes(k), bytes(v));
            (words(&["put", k, v]), DONE.to_vec())
        }
        Command::PutNr(k, v) => {
            model.insert(bytes(k), bytes(v));
            (words(&["putnr", k, v]), Vec::new())
        }
        Command::PutKeep(k, v) => {
            let is_new = !model.contains_key(k.as_bytes());
            if is_new {
                model.insert(bytes(k), bytes(v));
            }
            (words(&["putkeep", k, v]), code(is_new))
        }
        Command::PutCat(k, v) => {
            model.entry(bytes(k)).or_default().extend(v.as_bytes());
            (words(&["putcat", k, v]), DONE.to_vec())
        }
        Command::PutShl(k, v, width) => {
            match model.get_mut(k.as_bytes()) {
                None => drop(model.insert(bytes(k), bytes(v))),
                Some(old) => {
                    old.extend(v.as_bytes());
                    old.drain(..old.len().saturating_sub(*width));
                }
            }
            (words(&["putshl", k, v, &width.to_string()]), DONE.to_vec())
        }
        Command::Out(k) => (words(&["out", k]), code(model.remove(k.as_bytes()).is_some())),
        Command::Get(k) => {
            let found = model.get(k.as_bytes());
            let reply = found.map(|v| [DONE, &number(v.len()), v].concat());
            (words(&["get", k]), reply.unwrap_or_else(|| FAILED.to_vec()))
        }
        Command::Vsiz(k) => {
            let reply = model.get(k.as_bytes()).map(|v| [DONE, &number(v.len())].concat());
            (words(&["vsiz", k]), reply.unwrap_or_else(|| FAILED.to_vec()))
        }
        Command::AddInt(k, by) => {
            let old = model
                .get(k.as_bytes())
                .map_or(Some(0), |v| v.as_slice().try_into().ok().map(i32::from_le_bytes));
            let sum = old.map(|old| old.wrapping_add(*by));
            if let Some(sum) = sum {
                model.insert(bytes(k), sum.to_le_bytes().to_vec());
            }
            let reply =
                sum.map_or_else(|| FAILED.to_vec(), |sum| [DONE, &sum.to_be_bytes()].concat());
            (words(&["addint", k, &by.to_string()]), reply)
        }
        Command::Rnum => (words(&["rnum"]), [DONE, &[0; 4], &number(model.len())].concat()),
        Command::Vanish => {
            model.clear();
            (words(&["vanish"]), DONE.to_vec())
        }
        Command::Mget(keys) => {
            let found: Vec<_> =
                keys.iter().filter_map(|k| Some((k, model.get(k.as_bytes())?))).collect();
            let mut reply = [DONE, &number(found.len())].concat();
            for (k, v) in found {
                reply.extend([&number(k.len())[..], &number(v.len()), k.as_bytes(), v].concat());
            }
            (request(format!("mget {}", keys.join(" ")).trim_end()), reply)
        }
        _ => run_search(model, command),
    }
}

fn run_search(model: &mut Model, command: &Command) -> (Vec<u8>, Vec<u8>) {
    match command {
        Command::FwmKeys(prefix, max) => {
            let max_keys = usize::try_from(*max).unwrap_or(usize::MAX);
            let keys = model.keys().filter(|k| k.starts_with(prefix.as_bytes()));
            let keys: Vec<&[u8]> = keys.take(max_keys).map(Vec::as_slice).collect();
            (request(&format!("fwmkeys {prefix} {max}")), list(&keys))
        }
        Command::PutList(pairs) => {
            let words: String = pairs.iter().map(|(k, v)| format!(" {k} {v}")).collect();
            for (k, v) in pairs {
                model.insert(k.as_bytes().to_vec(), v.as_bytes().to_vec());
            }
            (request(&format!("misc putlist 0{words}")), list(&[]))
        }
        Command::GetPart(k, at, len) => {
            let part = model.get(k.as_bytes()).and_then(|v| v.get(*at..)).filter(|p| !p.is_empty());
            let reply = part.map(|part| list(&[&part[..part.len().min(*len)]]));
            let reply = reply.unwrap_or_else(|| FAILED_LIST.to_vec());
            (request(&format!("misc getpart 0 {k} {at} {len}")), reply)
        }
        Command::Range(first, max) => {
            let max_records = if *max == 0 { usize::MAX } else { *max };
            let found = model.range(first.as_bytes().to_vec()..).take(max_records);
            let found: Vec<&[u8]> = found.flat_map(|(k, v)| [k.as_slice(), v]).collect();
            (request(&format!("misc range 0 {first} {max}")), list(&found))
        }
        other => unreachable!("{other:?} is no search"),
    }
}

#[test]
fn commands_do_what_they_do_to_a_map() {
    let server = pinned(|_| {});
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let sequences = prop::collection::vec(command(), 0..60);
    let ran = runner.run(&sequences, |commands| {
        let (mut client, mut model) = (server.connect(), Model::new());
        let (mut requests, mut replies) = run(&mut model, &Command::Vanish);
        for command in &commands {
            let (request, reply) = run(&mut model, command);
            requests.extend(request);
            replies.extend(reply);
        }
        client.send(requests);
        let mut given = vec![0; replies.len()];
        client.0.read_exact(&mut given).expect("as many bytes as should come");
        prop_assert_eq!(given.escape_ascii().to_string(), replies.escape_ascii().to_string());
        Ok(())
    });
    ran.expect("what the map says");
}
