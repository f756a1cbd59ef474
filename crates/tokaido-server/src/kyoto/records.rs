//! What procedures do to one record.

use tokaido_store::{DatabaseId, Kind, NewRecord, ReadTransaction, Record, WriteTransaction};
use tokaido_wire::{
    kyoto::{Fixed, Pairs},
    lenient::integer,
};

use super::{
    expiry::{expires_at_ms, xt_of},
    inputs::{Inputs, output},
    number,
    refusal::{DatabaseError, Refusal},
};

/// The outcome of a procedure.
type Written = Result<Pairs, Refusal>;

/// A record of bytes. These procedures cannot do anything with another kind.
pub(super) fn of_bytes(found: Option<Record<'_>>) -> Result<Option<Record<'_>>, Refusal> {
    match found {
        Some(record) if record.kind != Kind::Bytes => {
            let what = format_args!("a {} is under this key, not bytes", record.kind);
            Err(DatabaseError::Logic.because(what))
        }
        found => Ok(found),
    }
}

fn no_record() -> Refusal {
    DatabaseError::Missing.refusal()
}

/// Adds the value and the expiry of a record to the outputs.
pub(super) fn show(record: &Record<'_>, outputs: &mut Pairs) {
    outputs.insert(b"value".to_vec(), record.value.to_vec());
    show_xt(record, outputs);
}

fn show_xt(record: &Record<'_>, outputs: &mut Pairs) {
    if let Some(xt) = xt_of(record.expires_at_ms) {
        outputs.insert(b"xt".to_vec(), xt.to_string().into());
    }
}

/// Replaces what is there, of whatever kind, by a value.
pub(super) fn put(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
    xt: i64,
) -> Result<(), Refusal> {
    let expires_at_ms = expires_at_ms(xt, tx.now_ms());
    Ok(tx.put(database, key, NewRecord::of(value).expiring(expires_at_ms))?)
}

pub(super) fn get(inputs: &Inputs, tx: &mut dyn ReadTransaction, database: DatabaseId) -> Written {
    let record = of_bytes(tx.get(database, inputs.need("key")?)?)?.ok_or_else(no_record)?;
    let mut outputs = Pairs::new();
    show(&record, &mut outputs);
    Ok(outputs)
}

pub(super) fn check(
    inputs: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Written {
    let record = of_bytes(tx.get(database, inputs.need("key")?)?)?.ok_or_else(no_record)?;
    let mut outputs = output("vsiz", record.value.len().to_string());
    show_xt(&record, &mut outputs);
    Ok(outputs)
}

pub(super) fn set(inputs: &Inputs, tx: &mut dyn WriteTransaction, database: DatabaseId) -> Written {
    put(tx, database, inputs.need("key")?, inputs.need("value")?, inputs.xt())?;
    Ok(Pairs::new())
}

pub(super) fn add(inputs: &Inputs, tx: &mut dyn WriteTransaction, database: DatabaseId) -> Written {
    let (key, value) = (inputs.need("key")?, inputs.need("value")?);
    match tx.get(database, key)? {
        Some(_) => Err(DatabaseError::Duplicate.refusal()),
        None => put(tx, database, key, value, inputs.xt()).map(|()| Pairs::new()),
    }
}

pub(super) fn replace(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let (key, value) = (inputs.need("key")?, inputs.need("value")?);
    match tx.get(database, key)? {
        Some(_) => put(tx, database, key, value, inputs.xt()).map(|()| Pairs::new()),
        None => Err(no_record()),
    }
}

pub(super) fn append(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let (key, value) = (inputs.need("key")?, inputs.need("value")?);
    // The expiry is a new one, so the store's append does not fit.
    let old = of_bytes(tx.get(database, key)?)?.map(|record| record.value).unwrap_or_default();
    let value = [old, value].concat();
    put(tx, database, key, &value, inputs.xt())?;
    Ok(Pairs::new())
}

pub(super) fn cas(inputs: &Inputs, tx: &mut dyn WriteTransaction, database: DatabaseId) -> Written {
    let key = inputs.need("key")?;
    let found = of_bytes(tx.get(database, key)?)?.map(|record| record.value);
    if found != inputs.get("oval") {
        return Err(DatabaseError::Logic.because("status conflict"));
    }
    match inputs.get("nval") {
        Some(value) => put(tx, database, key, value, inputs.xt())?,
        None => drop(tx.delete(database, key)?),
    }
    Ok(Pairs::new())
}

pub(super) fn remove(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let removed = tx.delete(database, inputs.need("key")?)?;
    if removed { Ok(Pairs::new()) } else { Err(no_record()) }
}

pub(super) fn seize(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let outputs = get(inputs, tx, database)?;
    tx.delete(database, inputs.need("key")?)?;
    Ok(outputs)
}

/// What a missing counter begins with.
#[derive(Clone, Copy)]
enum Origin<N> {
    /// It must exist.
    Try,
    /// Zero, even if the counter exists.
    Set,
    Number(N),
}

impl<N: Default> Origin<N> {
    fn read(inputs: &Inputs, number: impl Fn(&[u8]) -> N) -> Self {
        match inputs.get("orig") {
            None => Self::Number(N::default()),
            Some(b"try") => Self::Try,
            Some(b"set") => Self::Set,
            Some(text) => Self::Number(number(text)),
        }
    }
}

fn inconsistent() -> Refusal {
    DatabaseError::Logic.refusal()
}

pub(super) fn increment(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let key = inputs.need("key")?;
    let by = integer(inputs.need("num")?);
    let origin = Origin::read(inputs, integer);
    let found = of_bytes(tx.get(database, key)?)?.map(|record| record.value);
    let old = match (found, origin) {
        (None, Origin::Try) => return Err(inconsistent()),
        (None, Origin::Number(origin)) => origin,
        (Some(value), origin) => {
            let value = value.try_into().map(i64::from_be_bytes).map_err(|_| inconsistent())?;
            match origin {
                Origin::Set => 0,
                // Asking for the number is not a write.
                _ if by == 0 => return Ok(output("num", value.to_string())),
                _ => value,
            }
        }
        (None, Origin::Set) => 0,
    };
    let new = old.checked_add(by).ok_or_else(inconsistent)?;
    put(tx, database, key, &new.to_be_bytes(), inputs.xt())?;
    Ok(output("num", new.to_string()))
}

pub(super) fn increment_double(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Written {
    let key = inputs.need("key")?;
    let by = number::float(inputs.need("num")?);
    let origin = Origin::read(inputs, number::float);
    let found = of_bytes(tx.get(database, key)?)?.map(|record| record.value);
    let old = match (found, origin) {
        (None, Origin::Try) => return Err(inconsistent()),
        (None, Origin::Number(origin)) => Fixed::of(origin),
        (Some(value), origin) => {
            let value = Fixed::read(value).ok_or_else(inconsistent)?;
            match origin {
                Origin::Set => Fixed::ZERO,
                _ if value.value().is_nan() => return Err(inconsistent()),
                // An infinite value stays infinite, and asking for the number is not a write.
                _ if by == 0.0 || !value.is_finite() => {
                    return Ok(output("num", number::show(value.value())));
                }
                _ => value,
            }
        }
        (None, Origin::Set) => Fixed::ZERO,
    };
    let by = Fixed::of(by);
    let new = if by.is_finite() && old.is_finite() { old.plus(by) } else { by };
    if new.value().is_nan() {
        return Err(inconsistent());
    }
    put(tx, database, key, &new.bytes(), inputs.xt())?;
    Ok(output("num", number::show(new.value())))
}

pub(super) fn clear(_: &Inputs, tx: &mut dyn WriteTransaction, database: DatabaseId) -> Written {
    tx.clear(database)?;
    Ok(Pairs::new())
}
