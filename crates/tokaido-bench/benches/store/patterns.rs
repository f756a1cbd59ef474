//! The loop patterns: procedures in Lua on a store in this process.

use std::{sync::Arc, time::Duration};

use tokaido_script::{Limits, Lua, Settings, Source, Sources, Transaction, Value, start};
use tokaido_store::{
    Store,
    tree::{self, Options, SyncMode},
};

use crate::{
    Outcome,
    subject::{Place, Took},
};

const KEYS: i64 = 100_000;

/// Keys of the run that compiles the traces, in a database of its own.
const WARM_KEYS: i64 = 2_000;

/// The native procedures, and the same in the dialect of Kyoto Tycoon.
const FILES: [(&str, &[u8]); 2] = [
    ("patterns", include_bytes!("patterns.lua")),
    ("patterns_kyoto", include_bytes!("patterns_kyoto.lua")),
];

pub(crate) fn order(place: &Place, is_random: bool, has_etc: bool) -> Outcome<Took> {
    run(place, "patterns.order", order_operations(has_etc), &|database, keys| {
        let flags = [is_random, has_etc].map(Value::Boolean);
        [vec![text(database), Value::Integer(keys)], flags.to_vec()].concat()
    })
}

pub(crate) fn wicked(place: &Place, iterations: i64) -> Outcome<Took> {
    run(place, "patterns.wicked", KEYS * iterations, &|database, keys| {
        vec![text(database), Value::Integer(keys), Value::Integer(iterations)]
    })
}

pub(crate) fn kyoto_order(place: &Place, is_random: bool, has_etc: bool) -> Outcome<Took> {
    let flags = [("is_random", is_random), ("has_etc", has_etc)];
    let flags = flags.map(|(name, flag)| (name, Value::Boolean(flag)));
    run(place, "order", order_operations(has_etc), &|database, keys| map(database, keys, &flags))
}

pub(crate) fn kyoto_wicked(place: &Place, iterations: i64) -> Outcome<Took> {
    let iterations_of = [("iterations", Value::Integer(iterations))];
    run(place, "wicked", KEYS * iterations, &|database, keys| map(database, keys, &iterations_of))
}

fn order_operations(has_etc: bool) -> i64 {
    if has_etc { 7 * KEYS } else { 3 * KEYS }
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// The one argument of a procedure of Kyoto Tycoon's.
fn map(database: &str, keys: i64, others: &[(&str, Value)]) -> Vec<Value> {
    let mut pairs = vec![(text("database"), text(database)), (text("keys"), Value::Integer(keys))];
    pairs.extend(others.iter().map(|(name, value)| (text(name), value.clone())));
    vec![Value::Map(pairs)]
}

/// Calls a procedure in one transaction, which is given to the system with the rest of the time
/// that counts. The virtual machine is as warm as a server's, the database is empty.
fn run(
    place: &Place,
    name: &str,
    operations: i64,
    arguments: &dyn Fn(&str, i64) -> Vec<Value>,
) -> Outcome<Took> {
    let options = Options { sync: SyncMode::Os, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(tree::open(&place.empty("patterns")?, options)?);
    let mut sources = Sources::default();
    for (module, file) in FILES {
        let (path, text) = (format!("{module}.lua").into(), file.into());
        let (module, settings) = (module.to_owned(), Vec::new());
        sources.add(Source { module, path, text, dialect: None, settings });
    }
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let kyoto_databases = ["main", "warm"].map(str::to_owned).to_vec();
    let settings = Settings { kyoto_databases, ..Settings::default() };
    let language = Arc::new(Lua { settings: Arc::new(settings), ..Lua::default() });
    let (mut runtime, errors) = start(&[language], &store, &sources, limits)?;
    if let Some(error) = errors.first() {
        return Err(error.to_string().into());
    }
    let procedure = runtime.find(name.as_bytes()).ok_or("the procedure is not there")?;
    let mut writer = store.writer()?;
    let mut call = |database: &str, keys| -> Outcome<u64> {
        let arguments = arguments(database, keys);
        let transaction = Transaction::Write(writer.begin()?);
        let result = runtime.call(procedure, transaction.into(), &arguments)?;
        writer.commit()?;
        writer.flush()?;
        sum(&result).ok_or_else(|| format!("{name} gave {result:?}").into())
    };
    call("warm", WARM_KEYS)?;
    Took::timed(operations as u64, || call("main", KEYS))
}

/// The sum that a procedure gives by itself, or in its map.
fn sum(result: &Value) -> Option<u64> {
    match result {
        Value::Integer(sum) => u64::try_from(*sum).ok(),
        Value::Map(pairs) => match &pairs[..] {
            [(_, Value::String(sum))] => str::from_utf8(sum).ok()?.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
