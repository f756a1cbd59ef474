//! Whole databases: DBSIZE, RANDOMKEY, FLUSHDB, FLUSHALL.

use tokaido_store::{ReadTransaction, WriteTransaction, check_database_name};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    introspection,
    random::random,
    random_key,
};
use crate::selected;

pub(super) const COMMANDS: &[Command] = rows! {
"dbsize" 1 Read(dbsize), NO_KEY [FAST] Server "1.0.0"
    ""
    "Returns the number of records in the database, including expired ones that have not been removed yet. While a large \
     database is being written to, this is an estimate.";
"flushall" -1 Write(flushall), NO_KEY [DANGEROUS SPANS] Server "1.0.0"
    "[ASYNC | SYNC]"
    "Deletes all records of all databases except constant ones, and all databases except `main` and mounted ones.";
"flushdb" -1 Write(flushdb), NO_KEY [DANGEROUS] Server "1.0.0"
    "[ASYNC | SYNC]"
    "Deletes all records of the database.";
"randomkey" 1 Read(randomkey), NO_KEY [LONG] Generic "1.0.0"
    ""
    "Returns a random key of the database.";
"swapdb" 3 Write(swapdb), NO_KEY [FAST DANGEROUS SPANS] Server "4.0.0"
    "index1 index2"
    "Swaps the records of two databases.";
"tokaido" -2 Container(None), NO_KEY [] Server "7.2.0"
    ""
    "Commands that Redis does not have.";
"tokaido|drop" 3 Write(drop_database), NO_KEY [DANGEROUS SPANS] Server "7.2.0"
    "database"
    "Deletes a database with all its records, and frees its name.";
"tokaido|help" 2 Server(introspection::help), NO_KEY [] Server "7.2.0"
    ""
    "Lists the subcommands.";
};

fn dbsize(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let statistics = tx.statistics(call.database)?;
    call.reply.integer(statistics.records as i64);
    Ok(())
}

fn flushdb(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    check_flush(call)?;
    tx.clear(call.database)?;
    call.reply.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    check_flush(call)?;
    tx.drop_all_databases()?;
    let store = call.shared.store();
    for (database, _) in store.databases() {
        // Skip constant databases, or one would keep all from being emptied.
        if database.mount().is_some() && store.capabilities(database).is_writable {
            tx.clear(database)?;
        }
    }
    call.reply.ok();
    Ok(())
}

fn swapdb(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (one, other) = (call.open_database_at(tx, 1)?, call.open_database_at(tx, 2)?);
    tx.swap_databases(one, other)?;
    call.reply.ok();
    Ok(())
}

/// Replies 1, or 0 if there was no such database.
fn drop_database(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let name = call.database_name_at(2)?;
    check_database_name(&name)?;
    let database = selected::find_in(&name, tx);
    let was_there = tx.drop_database(database)?;
    call.reply.integer(i64::from(was_there));
    Ok(())
}

/// Clearing takes constant time either way.
fn check_flush(call: &Call<'_>) -> Result<(), Failure> {
    match call.len() {
        1 => Ok(()),
        2 if call.is_word(1, "ASYNC") || call.is_word(1, "SYNC") => Ok(()),
        _ => Err(Failure::Syntax),
    }
}

fn randomkey(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let database = call.database;
    if !call.capabilities().is_ordered {
        return random_of_page(call, tx);
    }
    let key = random_key::draw(tx, database)?;
    call.reply.bulk_or_null(key.as_deref());
    Ok(())
}

/// A key from the first non-empty page of a database without an order.
fn random_of_page(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    const PAGE_RECORDS: usize = 100;
    let (mut keys, mut cursor) = (Vec::new(), 0);
    while keys.is_empty() {
        let next = tx.page(call.database, cursor, PAGE_RECORDS, &mut |entry| {
            keys.push(entry.key.to_vec());
        })?;
        let Some(next) = next else { break };
        cursor = next;
    }
    call.reply.bulk_or_null(keys.get(random() as usize % keys.len().max(1)).map(Vec::as_slice));
    Ok(())
}
