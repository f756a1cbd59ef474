//! MEMORY: how much records and the server use.

use tokaido_store::{ReadTransaction, Usage};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    introspection,
};
use crate::system::resident_bytes;

pub(super) const COMMANDS: &[Command] = rows! {
"memory" -2 Container(None), NO_KEY [] Server "4.0.0"
    ""
    "Commands about memory usage.";
"memory|doctor" 2 Server(doctor), NO_KEY [] Server "4.0.0"
    ""
    "Explains in words what uses memory.";
"memory|help" 2 Server(introspection::help), NO_KEY [] Server "4.0.0"
    ""
    "Lists the subcommands.";
"memory|malloc-stats" 2 Server(malloc_stats), NO_KEY [] Server "4.0.0"
    ""
    "Reports that the allocator keeps no statistics.";
"memory|purge" 2 Server(purge), NO_KEY [] Server "4.0.0"
    ""
    "Does nothing: the allocator returns memory by itself.";
"memory|stats" 2 Read(stats), NO_KEY [SPANS] Server "4.0.0"
    ""
    "Returns how much memory the server uses.";
"memory|usage" -3 Read(usage), SUBKEY [] Server "4.0.0"
    "key [SAMPLES count]"
    "Returns the size of a key, its value and its header in bytes.";
};

fn doctor(call: &mut Call<'_>) -> Result<(), Failure> {
    let Usage { memtable_bytes, held_bytes, base_bytes, .. } = call.shared.store().usage();
    let text = format!(
        "The process occupies {} bytes, with what it has mapped of a file of {base_bytes} bytes, which the system takes \
         back when it needs to. Of them, {memtable_bytes} hold what was written since the last checkpoint, and \
         {held_bytes} what a snapshot still sees of the one before. limits.memtable_bytes says how much the first may \
         be.\n",
        resident_bytes()
    );
    call.reply.verbatim("txt", &text);
    Ok(())
}

fn malloc_stats(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.verbatim("txt", "Stats not supported for the current allocator\n");
    Ok(())
}

fn purge(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.ok();
    Ok(())
}

/// The fields of Redis that make sense here, and what the store holds in memory.
fn stats(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (mut records, mut bytes) = (0, 0);
    for (database, _) in call.shared.store().databases() {
        let statistics = tx.statistics(database)?;
        records += statistics.records;
        bytes += statistics.key_bytes + statistics.value_bytes;
    }
    let Usage { memtable_bytes, held_bytes, .. } = call.shared.store().usage();
    let fields = [
        ("total.allocated", resident_bytes()),
        ("keys.count", records),
        ("keys.bytes-per-key", bytes.checked_div(records).unwrap_or(0)),
        ("dataset.bytes", bytes),
        ("memtable.bytes", memtable_bytes),
        ("memtable.held-bytes", held_bytes),
    ];
    call.reply.map(fields.len());
    for (name, value) in fields {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(value as i64);
    }
    Ok(())
}

fn usage(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    /// Length of a header: a tag, 4 bytes of flags, 8 of expiry, up to 7 of version.
    const HEADER_LEN: usize = 20;
    /// Length of the collection number, which is also in the header.
    const COLLECTION_LEN: usize = 8;
    let key = call.arg(2);
    match call.len() {
        3 => {}
        5 if call.is_word(3, "SAMPLES") => {
            call.integer(4)?;
        }
        _ => return Err(Failure::Syntax),
    }
    match tx.get(call.database, key)? {
        Some(record) => {
            let header_len = HEADER_LEN + record.collection.map_or(0, |_| COLLECTION_LEN);
            call.reply.integer((key.len() + record.value.len() + header_len) as i64);
        }
        None => call.reply.null(),
    }
    Ok(())
}
