//! Counters: INCR, DECR and their like. A counter is a value that is a decimal number.

use tokaido_store::{NewRecord, WriteOperations, WriteTransaction, counter::format_float};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    number::parse_double,
};

pub(super) const COMMANDS: &[Command] = rows! {
"decr" 2 Write(decr), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key"
    "Decrements a counter by one.";
"decrby" 3 Write(decrby), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key decrement"
    "Decrements a counter by a number.";
"incr" 2 Write(incr), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key"
    "Increments a counter by one.";
"incrby" 3 Write(incrby), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key increment"
    "Increments a counter by a number.";
"incrbyfloat" 3 Write(incrbyfloat), KEY [FAST DENYOOM BRIEF] String "2.6.0"
    "key increment"
    "Increments a counter by a floating-point number.";
};

fn incr(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    add(call, tx, 1)
}

fn decr(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    add(call, tx, -1)
}

fn incrby(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let by = call.integer(2)?;
    add(call, tx, by)
}

fn decrby(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let by = call.integer(2)?.checked_neg();
    let by = by.ok_or_else(|| Failure::other("decrement would overflow"))?;
    add(call, tx, by)
}

fn add(call: &mut Call<'_>, tx: &mut dyn WriteTransaction, by: i64) -> Result<(), Failure> {
    let new = tx.increment(call.database, call.arg(1), by)?;
    call.reply.integer(new);
    Ok(())
}

fn incrbyfloat(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let found = call.string(tx, call.arg(1))?;
    let (old, head) = match found {
        Some(record) => {
            let old = parse_double(record.value).ok_or(Failure::NotAFloat)?;
            (old, record.with_number(&[]))
        }
        None => (0.0, NewRecord::of(&[])),
    };
    let new = old + parse_double(call.arg(2)).ok_or(Failure::NotAFloat)?;
    if !new.is_finite() {
        return Err(Failure::NotFinite);
    }
    let value = format_float(new);
    tx.put(call.database, call.arg(1), NewRecord { value: value.as_bytes(), ..head })?;
    call.reply.bulk(value.as_bytes());
    Ok(())
}
