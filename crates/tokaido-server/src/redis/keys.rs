//! Keys, whatever their type: DEL, EXISTS, RENAME, COPY, MOVE, TYPE and related commands.

use tokaido_store::{
    CollectionId, DatabaseId, Kind, ReadTransaction, Record, ScanRange, Scanner, WriteTransaction,
};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    introspection,
    number::parse_integer,
};

pub(super) const COMMANDS: &[Command] = rows! {
"copy" -3 Write(copy), TWO_KEYS [DENYOOM SPANS] Generic "6.2.0"
    "source destination [DB destination-db] [REPLACE]"
    "Copies a record, with its expiry, to another key.";
"del" -2 Write(del), KEYS [BRIEF] Generic "1.0.0"
    "key [key ...]"
    "Deletes keys; returns how many existed.";
"exists" -2 Read(exists), KEYS [FAST] Generic "1.0.0"
    "key [key ...]"
    "Returns how many of the keys exist.";
"move" 3 Write(move_key), KEY [FAST SPANS] Generic "1.0.0"
    "key db"
    "Moves a record to another database.";
"object" -2 Container(None), NO_KEY [] Generic "2.2.3"
    ""
    "Commands that inspect how a value is stored.";
"object|encoding" 3 Read(object_encoding), SUBKEY [] Generic "2.2.3"
    "key"
    "Returns the encoding that Redis would use for the value.";
"object|freq" 3 Read(object_freq), SUBKEY [] Generic "4.0.0"
    "key"
    "Returns an error if the key exists: how often records are read is not counted.";
"object|help" 2 Server(introspection::help), NO_KEY [] Generic "6.2.0"
    ""
    "Lists the subcommands.";
"object|idletime" 3 Read(object_idletime), SUBKEY [] Generic "2.2.3"
    "key"
    "Returns an error if the key exists: the time at which records are read is not noted.";
"object|refcount" 3 Read(object_refcount), SUBKEY [] Generic "2.2.3"
    "key"
    "Returns 1: values are never shared.";
"rename" 3 Write(rename), TWO_KEYS [] Generic "1.0.0"
    "key newkey"
    "Renames a key, overwriting the new key if it exists.";
"renamenx" 3 Write(renamenx), TWO_KEYS [FAST] Generic "1.0.0"
    "key newkey"
    "Renames a key, unless the new key exists.";
"touch" -2 Read(exists), KEYS [FAST] Generic "3.2.1"
    "key [key ...]"
    "Returns how many of the keys exist.";
"type" 2 Read(type_of), KEY [FAST] Generic "1.0.0"
    "key"
    "Returns the type of a value, or `none` if the key does not exist.";
"unlink" -2 Write(del), KEYS [FAST BRIEF] Generic "4.0.0"
    "key [key ...]"
    "Deletes keys, as DEL does.";
};

/// Copies a record with its expiry and its elements. Replaces what is under the other key.
fn copy_record(
    tx: &mut dyn WriteTransaction,
    (source, from): (DatabaseId, &[u8]),
    (target, to): (DatabaseId, &[u8]),
) -> Result<(), Failure> {
    let Some(record) = tx.get(source, from)? else { return Ok(()) };
    let value = record.value.to_vec();
    let mut copy = record.with_same_value(&value);
    if let Some(collection) = copy.collection {
        copy.collection = Some(copy_elements(tx, source, collection, target)?);
    }
    tx.put(target, to, copy)?;
    Ok(())
}

/// Copies the elements of a collection into a new collection of the target.
fn copy_elements(
    tx: &mut dyn WriteTransaction,
    source: DatabaseId,
    collection: CollectionId,
    target: DatabaseId,
) -> Result<CollectionId, Failure> {
    let copy = tx.new_collection()?;
    let range = ScanRange::prefix(&collection.prefix());
    let mut elements = Scanner::new(source.elements(), range, usize::MAX);
    while let Some(element) = elements.next(tx)? {
        let place = [&copy.prefix(), &element.key[CollectionId::LEN..]].concat();
        let value = element.record.value.to_vec();
        let element = element.record.with_same_value(&value);
        tx.put(target.elements(), &place, element)?;
    }
    Ok(copy)
}

fn del(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut deleted = 0;
    for key in call.request.arguments() {
        deleted += i64::from(tx.delete(call.database, key)?);
    }
    call.reply.integer(deleted);
    Ok(())
}

fn exists(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let mut found = 0;
    for key in call.request.arguments() {
        found += i64::from(tx.get(call.database, key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

fn type_of(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let found = tx.get(call.database, call.arg(1))?;
    call.reply.simple(found.map_or("none", |record| type_name(record.kind)));
    Ok(())
}

/// The name that TYPE, and SCAN with TYPE, use for a kind of value.
pub(super) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bytes => "string",
        Kind::Hash => "hash",
        Kind::List => "list",
        Kind::Set => "set",
        Kind::SortedSet => "zset",
        Kind::Stream => "stream",
    }
}

fn rename(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    rename_if(call, tx, false)?;
    call.reply.ok();
    Ok(())
}

fn renamenx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let renamed = rename_if(call, tx, true)?;
    call.reply.integer(i64::from(renamed));
    Ok(())
}

fn rename_if(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    only_if_free: bool,
) -> Result<bool, Failure> {
    let (database, from, to) = (call.database, call.arg(1), call.arg(2));
    tx.get(database, from)?.ok_or(Failure::NoSuchKey)?;
    if only_if_free && tx.get(database, to)?.is_some() {
        return Ok(false);
    }
    Ok(tx.rename(database, from, to)?)
}

fn copy(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut target = call.database;
    let mut replaces = false;
    let mut at = 3;
    while at < call.len() {
        if call.is_word(at, "REPLACE") {
            replaces = true;
            at += 1;
        } else if call.is_word(at, "DB") && at + 1 < call.len() {
            target = call.open_database_at(tx, at + 1)?;
            at += 2;
        } else {
            return Err(Failure::Syntax);
        }
    }
    let (from, to) = (call.arg(1), call.arg(2));
    if target == call.database && from == to {
        return Err(Failure::SameObject);
    }
    let may_copy =
        tx.get(call.database, from)?.is_some() && (replaces || tx.get(target, to)?.is_none());
    if may_copy {
        copy_record(tx, (call.database, from), (target, to))?;
    }
    call.reply.integer(i64::from(may_copy));
    Ok(())
}

fn move_key(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (source, key, target) = (call.database, call.arg(1), call.open_database_at(tx, 2)?);
    if source == target {
        return Err(Failure::SameObject);
    }
    let may_move = tx.get(source, key)?.is_some() && tx.get(target, key)?.is_none();
    if may_move {
        copy_record(tx, (source, key), (target, key))?;
        tx.delete(source, key)?;
    }
    call.reply.integer(i64::from(may_move));
    Ok(())
}

fn object_encoding(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let found = tx.get(call.database, call.arg(2))?;
    call.reply.bulk_or_null(found.map(encoding));
    Ok(())
}

fn object_refcount(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    match tx.get(call.database, call.arg(2))? {
        Some(_) => call.reply.integer(1),
        None => call.reply.null(),
    }
    Ok(())
}

fn object_freq(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    refuse_unless_missing(
        call,
        tx,
        "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
         switching between policies at runtime LRU and LFU data will take some time to adjust.",
    )
}

fn object_idletime(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    refuse_unless_missing(call, tx, "idle time is not tracked: reading a record notes nothing")
}

/// Replies null without a record; otherwise fails with the reason why there is no answer.
fn refuse_unless_missing(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    why: &str,
) -> Result<(), Failure> {
    if tx.get(call.database, call.arg(2))?.is_some() {
        return Err(Failure::other(why));
    }
    call.reply.null();
    Ok(())
}

/// Redis's name for the value's encoding: in one piece, or with separate elements.
pub(super) fn encoding(record: Record<'_>) -> &'static [u8] {
    /// Maximum length in bytes of a string that Redis keeps in one piece with its header.
    const EMBEDDED_LEN_MAX: usize = 44;
    match (record.kind, record.collection) {
        (Kind::Bytes, _) if parse_integer(record.value).is_some() => b"int",
        (Kind::Bytes, _) if record.value.len() <= EMBEDDED_LEN_MAX => b"embstr",
        (Kind::Bytes, _) => b"raw",
        (Kind::Stream, _) => b"stream",
        (_, None) => b"listpack",
        (Kind::Hash | Kind::Set, Some(_)) => b"hashtable",
        (Kind::List, Some(_)) => b"quicklist",
        (Kind::SortedSet, Some(_)) => b"skiplist",
    }
}
