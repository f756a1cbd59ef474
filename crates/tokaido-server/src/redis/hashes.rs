//! Hashes: fields, each with a value.

use std::ops::ControlFlow;

use tokaido_collections::Hash;
use tokaido_store::{
    ReadTransaction, WriteTransaction,
    counter::{self, format_float},
};

use super::{
    call::Call,
    command::{Command, rows},
    element_scan::{self, ElementScan},
    failure::Failure,
    number::parse_double,
    random::{self, random},
    written::Written,
};

pub(super) const COMMANDS: &[Command] = rows! {
"hdel" -3 Write(hdel), KEY [FAST BRIEF] Hash "2.0.0"
    "key field [field ...]"
    "Removes fields of a hash; returns how many existed. The hash is deleted with its last field.";
"hexists" 3 Read(hexists), KEY [FAST] Hash "2.0.0"
    "key field"
    "Returns whether a hash has a field.";
"hget" 3 Read(hget), KEY [FAST] Hash "2.0.0"
    "key field"
    "Returns the value of a field.";
"hgetall" 2 Read(hgetall), KEY [] Hash "2.0.0"
    "key"
    "Returns all fields of a hash with their values.";
"hincrby" 4 Write(hincrby), KEY [FAST DENYOOM BRIEF] Hash "2.0.0"
    "key field increment"
    "Increments the counter in a field by a number.";
"hincrbyfloat" 4 Write(hincrbyfloat), KEY [FAST DENYOOM BRIEF] Hash "2.6.0"
    "key field increment"
    "Increments the counter in a field by a floating-point number.";
"hkeys" 2 Read(hkeys), KEY [] Hash "2.0.0"
    "key"
    "Returns all fields of a hash.";
"hlen" 2 Read(hlen), KEY [FAST] Hash "2.0.0"
    "key"
    "Returns the number of fields of a hash.";
"hmget" -3 Read(hmget), KEY [FAST] Hash "2.0.0"
    "key field [field ...]"
    "Returns the values of several fields.";
"hmset" -4 Write(hmset), KEY [FAST DENYOOM BRIEF] Hash "2.0.0"
    "key field value [field value ...]"
    "The old form of HSET.";
"hrandfield" -2 Read(hrandfield), KEY [] Hash "6.2.0"
    "key [count [WITHVALUES]]"
    "Returns random fields of a hash; with a negative count, fields may be repeated.";
"hscan" -3 Read(hscan), KEY [] Hash "2.8.0"
    "key cursor [MATCH pattern] [COUNT count] [NOVALUES]"
    "Returns some fields of a hash with their values, and the cursor to continue with.";
"hset" -4 Write(hset), KEY [FAST DENYOOM BRIEF] Hash "2.0.0"
    "key field value [field value ...]"
    "Sets fields of a hash; returns how many are new.";
"hsetnx" 4 Write(hsetnx), KEY [FAST DENYOOM BRIEF] Hash "2.0.0"
    "key field value"
    "Sets a field of a hash, unless the field exists.";
"hstrlen" 3 Read(hstrlen), KEY [FAST] Hash "3.2.0"
    "key field"
    "Returns the length of a field's value in bytes.";
"hvals" 2 Read(hvals), KEY [] Hash "2.0.0"
    "key"
    "Returns the values of all fields of a hash.";
};

/// The hash named by the first argument.
fn hash<'c>(call: &Call<'c>) -> Hash<'c> {
    Hash::new(call.database, call.arg(1))
}

fn hset(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let added = set_fields(call, tx, "hset")?;
    call.reply.integer(added as i64);
    Ok(())
}

fn hmset(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    set_fields(call, tx, "hmset")?;
    call.reply.ok();
    Ok(())
}

fn set_fields(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    command: &str,
) -> Result<u64, Failure> {
    if !call.len().is_multiple_of(2) {
        return Err(call.wrong_arity(command));
    }
    let fields = (2..call.len()).step_by(2).map(|at| (call.arg(at), call.arg(at + 1)));
    Ok(hash(call).set(tx, call.packing(), fields)?)
}

fn hsetnx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let is_absent = read_field(call, tx, |value| value.is_none())?;
    if is_absent {
        hash(call).set(tx, call.packing(), [(call.arg(2), call.arg(3))])?;
    }
    call.reply.integer(i64::from(is_absent));
    Ok(())
}

fn hdel(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let removed = hash(call).remove(tx, call.request.arguments().skip(1))?;
    call.reply.integer(removed as i64);
    Ok(())
}

/// Applies `read` to the value of the field that the second argument names.
fn read_field<R: Default>(
    call: &Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    read: impl Fn(Option<&[u8]>) -> R,
) -> Result<R, Failure> {
    let mut result = R::default();
    hash(call).look_up(tx, [call.arg(2)], |value| result = read(value))?;
    Ok(result)
}

fn hget(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    hash(call).look_up(tx, [call.arg(2)], |value| call.reply.bulk_or_null(value))?;
    Ok(())
}

fn hmget(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let fields = call.request.arguments().skip(1);
    call.reply.array(call.len() - 2);
    hash(call).look_up(tx, fields, |value| call.reply.bulk_or_null(value))?;
    Ok(())
}

fn hexists(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let exists = read_field(call, tx, |value| value.is_some())?;
    call.reply.integer(i64::from(exists));
    Ok(())
}

fn hstrlen(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = read_field(call, tx, |value| value.map_or(0, <[u8]>::len))?;
    call.reply.integer(len as i64);
    Ok(())
}

fn hlen(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = hash(call).len(tx)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn hgetall(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = visited_len(call, tx)?;
    call.reply.map(len);
    write_all(call, tx, len, |call, field, value| {
        call.reply.bulk(field);
        call.reply.bulk(value);
    })
}

fn hkeys(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = visited_len(call, tx)?;
    call.reply.array(len);
    write_all(call, tx, len, |call, field, _| call.reply.bulk(field))
}

fn hvals(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = visited_len(call, tx)?;
    call.reply.array(len);
    write_all(call, tx, len, |call, _, value| call.reply.bulk(value))
}

/// The number of fields, all of which the caller will visit.
fn visited_len(call: &Call<'_>, tx: &mut dyn ReadTransaction) -> Result<usize, Failure> {
    let len = hash(call).len(tx)?;
    call.check_visit(len)?;
    Ok(len as usize)
}

/// Writes every field; the reply's header has announced `len`.
fn write_all(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    len: usize,
    write: impl Fn(&mut Call<'_>, &[u8], &[u8]),
) -> Result<(), Failure> {
    let mut written = 0;
    hash(call).visit(tx, |field, value| {
        written += 1;
        write(call, field, value);
        call.reply.flow()
    })?;
    call.check_written(written, len)
}

fn hincrby(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let by = call.integer(3)?;
    let old = read_field(call, tx, |value| value.map_or(Some(0), counter::parse))?;
    let old = old.ok_or_else(|| Failure::other("hash value is not an integer"))?;
    let new = old.checked_add(by).ok_or(Failure::Overflow)?;
    let mut digits = itoa::Buffer::new();
    hash(call).set(tx, call.packing(), [(call.arg(2), digits.format(new).as_bytes())])?;
    call.reply.integer(new);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let by = parse_double(call.arg(3)).ok_or(Failure::NotAFloat)?;
    if !by.is_finite() {
        return Err(Failure::other("value is NaN or Infinity"));
    }
    let old = read_field(call, tx, |value| value.map_or(Some(0.0), parse_double))?;
    let old = old.ok_or_else(|| Failure::other("hash value is not a float"))?;
    let new = old + by;
    if !new.is_finite() {
        return Err(Failure::NotFinite);
    }
    let value = format_float(new);
    hash(call).set(tx, call.packing(), [(call.arg(2), value.as_bytes())])?;
    call.reply.bulk(value.as_bytes());
    Ok(())
}

fn hrandfield(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    if call.len() == 2 {
        let hash = hash(call);
        let mut drawn = Written::begin(call.reply);
        hash.draw(tx, 1, &mut random, |field, _| drawn.bulk(field))?;
        drawn.end_as_one();
        return Ok(());
    }
    let count = random::count(call, 2)?;
    let with_values = match call.len() {
        3 => false,
        4 if call.is_word(3, "WITHVALUES") => true,
        _ => return Err(Failure::Syntax),
    };
    let hash = hash(call);
    let len = hash.len(tx)?;
    let times = random::check_count(call, count, len, with_values)?;
    let mut fields = Written::begin(call.reply);
    let show = |field: &[u8], value: &[u8]| {
        fields.element(|reply| {
            if with_values {
                reply.pair();
            }
            reply.bulk(field);
            if with_values {
                reply.bulk(value);
            }
        })
    };
    match count {
        0.. => hash.sample(tx, times, &mut random, show)?,
        _ => hash.draw(tx, times, &mut random, show)?,
    }
    fields.end(|reply, len| if with_values { reply.pairs(len) } else { reply.array(len) });
    Ok(())
}

fn hscan(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let cursor = ElementScan::cursor(call)?;
    let hash = hash(call);
    if hash.is_empty(tx)? {
        return element_scan::write(call, |_| Ok(0));
    }
    let scan = ElementScan::read(call)?;
    element_scan::write(call, |found| {
        hash.page(tx, cursor, scan.count, |field, value| {
            if !scan.admits(field) {
                return ControlFlow::Continue(());
            }
            found.bulk(field)?;
            if scan.without_values { ControlFlow::Continue(()) } else { found.bulk(value) }
        })
    })
}
