//! The loop patterns: procedures in Lua on a store in this process.

use std::{sync::Arc, time::Duration};

use tokaido_script::{Limits, Runtime as _, Source, Sources, Transaction, Value, Vm};
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

pub(crate) fn order(place: &Place, is_random: bool, has_etc: bool) -> Outcome<Took> {
    let operations = if has_etc { 7 * KEYS } else { 3 * KEYS };
    let flags = [Value::Boolean(is_random), Value::Boolean(has_etc)];
    run(place, "patterns.order", &flags, operations)
}

pub(crate) fn wicked(place: &Place, iterations: i64) -> Outcome<Took> {
    run(place, "patterns.wicked", &[Value::Integer(iterations)], KEYS * iterations)
}

/// Calls a procedure in one transaction, which is given to the system with the rest of the time
/// that counts. The virtual machine is as warm as a server's, the database is empty.
fn run(place: &Place, name: &str, arguments: &[Value], operations: i64) -> Outcome<Took> {
    let options = Options { sync: SyncMode::Os, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(tree::open(&place.empty("patterns")?, options)?);
    let mut sources = Sources::default();
    sources.add(Source {
        module: "patterns".to_owned(),
        path: "patterns.lua".into(),
        text: include_bytes!("patterns.lua").as_slice().into(),
        dialect: None,
    });
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let (mut vm, errors) = Vm::new(&store, &sources, limits)?;
    if let Some(error) = errors.first() {
        return Err(error.to_string().into());
    }
    let procedure = vm.find(name.as_bytes()).ok_or("the procedure is not there")?;
    let mut writer = store.writer()?;
    let mut call = |database: &str, keys| -> Outcome<u64> {
        let mut all = vec![Value::String(database.into()), Value::Integer(keys)];
        all.extend_from_slice(arguments);
        let result = vm.call(procedure, Transaction::Write(writer.begin()?).into(), &all)?;
        writer.commit()?;
        writer.flush()?;
        match result {
            Value::Integer(sum) => Ok(sum as u64),
            other => Err(format!("{name} gave {other:?}").into()),
        }
    };
    call("warm", WARM_KEYS)?;
    Took::timed(operations as u64, || call("main", KEYS))
}
