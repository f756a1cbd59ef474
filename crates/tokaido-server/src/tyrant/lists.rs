//! The functions of `misc` for records and lists of them.

use tokaido_store::{DatabaseId, KeyIterator, Kind, ReadTransaction, WriteTransaction};

use super::{
    misc::{Arguments, Results},
    records,
    refusal::Refusal,
};

type Done = Result<(), Refusal>;

pub(super) fn put(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    records::put(tx, database, arguments.need(0)?, arguments.need(1)?)
}

pub(super) fn putkeep(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    records::putkeep(tx, database, arguments.need(0)?, arguments.need(1)?)
}

pub(super) fn putcat(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    records::putcat(tx, database, arguments.need(0)?, arguments.need(1)?)
}

pub(super) fn out(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    records::out(tx, database, arguments.need(0)?)
}

pub(super) fn get(
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    results.item(records::get(tx, database, arguments.need(0)?)?)
}

/// Pairs of keys and values; a key without a value is skipped.
pub(super) fn putlist(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    for pair in arguments.all().chunks_exact(2) {
        records::put(tx, database, pair[0], pair[1])?;
    }
    Ok(())
}

/// Records that do not exist are skipped.
pub(super) fn outlist(
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    for key in arguments.all() {
        tx.delete(database, key)?;
    }
    Ok(())
}

/// Records that do not exist, or are of other kinds, are skipped.
pub(super) fn getlist(
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    for key in arguments.all() {
        let record = tx.get(database, key)?.filter(|record| record.kind == Kind::Bytes);
        if let Some(record) = record {
            results.pair(key, record.value)?;
        }
    }
    Ok(())
}

/// A part of a value: as much of it as is asked for, from an offset within the value on.
pub(super) fn getpart(
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    let size = |place| arguments.integer(place).map(usize::try_from);
    let offset = size(1).and_then(Result::ok).unwrap_or(0);
    let len = size(2).and_then(Result::ok).unwrap_or(usize::MAX);
    let value = records::get(tx, database, arguments.need(0)?)?;
    let part = value.get(offset..).filter(|part| !part.is_empty());
    let part = part.ok_or_else(|| Refusal::invalid("the offset is behind the value"))?;
    results.item(&part[..part.len().min(len)])
}

/// Sets the iterator to the first record, or to a key.
pub(super) fn iterinit(
    arguments: &Arguments<'_>,
    iterator: &mut KeyIterator,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    match arguments.get(0) {
        Some(key) if !key.is_empty() => match iterator.jump(tx, database, key)? {
            true => Ok(()),
            false => Err(Refusal::missing()),
        },
        _ => Ok(iterator.rewind(tx, database)?),
    }
}

/// Returns a key with its value. Records of other kinds are skipped.
pub(super) fn iternext(
    _: &Arguments<'_>,
    iterator: &mut KeyIterator,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    loop {
        let key = iterator.next(tx, database)?.ok_or_else(Refusal::missing)?;
        let record = tx.get(database, &key)?.filter(|record| record.kind == Kind::Bytes);
        if let Some(record) = record {
            return results.pair(&key, record.value);
        }
    }
}

pub(super) fn vanish(
    _: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    _: &mut Results,
) -> Done {
    Ok(tx.clear(database)?)
}

/// Without parameters there is nothing to do: the server keeps its files in shape by itself.
pub(super) fn optimize(
    arguments: &Arguments<'_>,
    _: &mut dyn ReadTransaction,
    _: DatabaseId,
    _: &mut Results,
) -> Done {
    check_parameters(arguments.get(0).unwrap_or_default())
}

/// Refuses parameters for tuning a Tokyo Cabinet database.
pub(super) fn check_parameters(parameters: &[u8]) -> Done {
    match parameters {
        b"" => Ok(()),
        _ => Err(Refusal::invalid("there are no parameters that a database is tuned by")),
    }
}
