//! The commands PFADD, PFCOUNT and PFMERGE.

use tokaido_store::{NewRecord, ReadTransaction, WriteTransaction};

use super::sketch::{Registers, Sketch};
use crate::redis::{
    bitmaps::check_work,
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"pfadd" -2 Write(pfadd), KEY [FAST DENYOOM] HyperLogLog "2.8.9"
    "key [element [element ...]]"
    "Adds elements to a HyperLogLog; returns 1 if it changed.";
"pfcount" -2 Read(pfcount), KEYS [] HyperLogLog "2.8.9"
    "key [key ...]"
    "Returns the number of distinct elements in all the HyperLogLogs together, to within about one percent.";
"pfmerge" -2 Write(pfmerge), KEYS [DENYOOM] HyperLogLog "2.8.9"
    "destkey [sourcekey [sourcekey ...]]"
    "Merges HyperLogLogs into another one.";
};

/// The sketch under `key`, and its record without the value.
fn find(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    key: &[u8],
) -> Result<Option<(Sketch, NewRecord<'static>)>, Failure> {
    let Some(record) = call.string(tx, key)? else { return Ok(None) };
    Ok(Some((Sketch::read(record.value)?, record.with_value(&[]))))
}

fn pfadd(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let found = find(call, tx, call.arg(1))?;
    let mut is_changed = found.is_none();
    let (mut sketch, head) = found.unwrap_or_else(|| (Sketch::new(), NewRecord::of(&[])));
    for element in call.request.arguments_from(2) {
        is_changed |= sketch.add(element)?;
    }
    if is_changed {
        let value = sketch.into_changed();
        tx.put(call.database, call.arg(1), NewRecord { value: &value, ..head })?;
    }
    call.reply.integer(i64::from(is_changed));
    Ok(())
}

fn pfcount(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    /// The work of counting, expressed as a number of bytes of a value to process.
    const COUNT_BYTES: usize = 64 << 10;
    check_work(call, call.len().saturating_mul(COUNT_BYTES))?;
    let mut registers = Registers::new();
    for key in call.request.arguments() {
        let Some((sketch, _)) = find(call, tx, key)? else { continue };
        if let Some(count) = sketch.known_count().filter(|_| call.len() == 2) {
            call.reply.integer(count);
            return Ok(());
        }
        registers.merge(&sketch)?;
    }
    call.reply.integer(registers.count());
    Ok(())
}

fn pfmerge(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut registers = Registers::new();
    let mut is_dense = false;
    for key in call.request.arguments() {
        let Some((sketch, _)) = find(call, tx, key)? else { continue };
        is_dense |= sketch.is_dense();
        registers.merge(&sketch)?;
    }
    let found = find(call, tx, call.arg(1))?;
    let (mut sketch, head) = found.unwrap_or_else(|| (Sketch::new(), NewRecord::of(&[])));
    if is_dense {
        sketch.make_dense()?;
    }
    for (index, value) in registers.set() {
        sketch.set(index, value)?;
    }
    let value = sketch.into_changed();
    tx.put(call.database, call.arg(1), NewRecord { value: &value, ..head })?;
    call.reply.ok();
    Ok(())
}
