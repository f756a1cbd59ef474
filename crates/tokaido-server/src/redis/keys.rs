//! Keys, whatever stands under them: DEL, EXISTS, RENAME, COPY, MOVE, TYPE and what is near them.

use tokaido_store::{DatabaseId, NewRecord, ReadTransaction, WriteTransaction, parse_integer};

use super::{call::Call, failure::Failure};

/// A record that outlives the next call of the transaction.
struct Kept {
    value: Vec<u8>,
    flags: u32,
    expires_at_ms: Option<u64>,
}

impl Kept {
    fn get(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Self>, Failure> {
        let found = tx.get(database, key)?;
        Ok(found.map(|record| Self {
            value: record.value.to_vec(),
            flags: record.flags,
            expires_at_ms: record.expires_at_ms,
        }))
    }

    fn as_record(&self) -> NewRecord<'_> {
        let Self { ref value, flags, expires_at_ms } = *self;
        NewRecord { value, flags, expires_at_ms }
    }
}

pub(super) fn del(call: &mut Call<'_, '_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut deleted = 0;
    for key in call.request.arguments() {
        deleted += i64::from(tx.delete(call.database(), key)?);
    }
    call.reply.integer(deleted);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_, '_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let mut found = 0;
    for key in call.request.arguments() {
        found += i64::from(tx.get(call.database(), key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

pub(super) fn type_of(
    call: &mut Call<'_, '_>,
    tx: &mut dyn ReadTransaction,
) -> Result<(), Failure> {
    let found = tx.get(call.database(), call.arg(1))?;
    call.reply.simple(if found.is_some() { "string" } else { "none" });
    Ok(())
}

pub(super) fn rename(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    rename_if(call, tx, false)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn renamenx(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    let renamed = rename_if(call, tx, true)?;
    call.reply.integer(i64::from(renamed));
    Ok(())
}

fn rename_if(
    call: &Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
    only_if_free: bool,
) -> Result<bool, Failure> {
    let (database, from, to) = (call.database(), call.arg(1), call.arg(2));
    let record = Kept::get(tx, database, from)?.ok_or(Failure::NoSuchKey)?;
    if only_if_free && tx.get(database, to)?.is_some() {
        return Ok(false);
    }
    if from != to {
        tx.put(database, to, record.as_record())?;
        tx.delete(database, from)?;
    }
    Ok(true)
}

pub(super) fn copy(call: &mut Call<'_, '_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut target = call.database();
    let mut replaces = false;
    let mut at = 3;
    while at < call.len() {
        if call.is_word(at, "REPLACE") {
            replaces = true;
            at += 1;
        } else if call.is_word(at, "DB") && at + 1 < call.len() {
            target = call.database_at(at + 1)?;
            at += 2;
        } else {
            return Err(Failure::Syntax);
        }
    }
    let (from, to) = (call.arg(1), call.arg(2));
    if target == call.database() && from == to {
        return Err(Failure::SameObject);
    }
    let copied = match Kept::get(tx, call.database(), from)? {
        Some(record) if replaces || tx.get(target, to)?.is_none() => {
            tx.put(target, to, record.as_record())?;
            true
        }
        _ => false,
    };
    call.reply.integer(i64::from(copied));
    Ok(())
}

pub(super) fn move_key(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    let (source, key, target) = (call.database(), call.arg(1), call.database_at(2)?);
    if source == target {
        return Err(Failure::SameObject);
    }
    let moved = match Kept::get(tx, source, key)? {
        Some(record) if tx.get(target, key)?.is_none() => {
            tx.put(target, key, record.as_record())?;
            tx.delete(source, key)?
        }
        _ => false,
    };
    call.reply.integer(i64::from(moved));
    Ok(())
}

pub(super) fn object_encoding(
    call: &mut Call<'_, '_>,
    tx: &mut dyn ReadTransaction,
) -> Result<(), Failure> {
    /// Longest string that Redis keeps in one piece with its header, in bytes.
    const EMBEDDED_LEN_MAX: usize = 44;
    let found = tx.get(call.database(), call.arg(2))?;
    let encoding = found.map(|record| match record.value {
        value if parse_integer(value).is_some() => &b"int"[..],
        value if value.len() <= EMBEDDED_LEN_MAX => b"embstr",
        _ => b"raw",
    });
    call.reply.bulk_or_null(encoding);
    Ok(())
}

pub(super) fn memory_usage(
    call: &mut Call<'_, '_>,
    tx: &mut dyn ReadTransaction,
) -> Result<(), Failure> {
    /// A tag, four bytes of flags, eight of expiry, up to seven of version.
    const HEADER_LEN: usize = 20;
    let key = call.arg(2);
    match call.len() {
        3 => {}
        5 if call.is_word(3, "SAMPLES") => {
            call.integer(4)?;
        }
        _ => return Err(Failure::Syntax),
    }
    match tx.get(call.database(), key)? {
        Some(record) => call.reply.integer((key.len() + record.value.len() + HEADER_LEN) as i64),
        None => call.reply.null(),
    }
    Ok(())
}
