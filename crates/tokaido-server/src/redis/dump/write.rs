//! What RESTORE accepts.

use tokaido_collections::{End, Hash, List, Set, SortedSet};
use tokaido_store::{Amendment, Marks, NewRecord, WriteTransaction};
use tokaido_wire::rdb::{self, PayloadError, Value};

use super::streams;
use crate::redis::{call::Call, failure::Failure};

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

impl Options {
    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let (mut options, mut at) = (Self::default(), 4);
        // The key's idle time or access frequency: one excludes the other. Neither is stored here.
        let (mut is_idle, mut is_counted) = (false, false);
        while at < call.len() {
            let has_more = at + 1 < call.len();
            if call.is_word(at, "REPLACE") {
                options.replaces = true;
            } else if call.is_word(at, "ABSTTL") {
                options.is_absolute = true;
            } else if call.is_word(at, "IDLETIME") && has_more && !is_counted {
                at += 1;
                if call.integer(at)? < 0 {
                    return Err(Failure::other("Invalid IDLETIME value, must be >= 0"));
                }
                is_idle = true;
            } else if call.is_word(at, "FREQ") && has_more && !is_idle {
                at += 1;
                if !(0..=255).contains(&call.integer(at)?) {
                    return Err(Failure::other("Invalid FREQ value, must be >= 0 and <= 255"));
                }
                is_counted = true;
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

pub(super) fn restore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let options = Options::read(call)?;
    let (database, key) = (call.database, call.arg(1));
    if !options.replaces && tx.get(database, key)?.is_some() {
        return Err(Failure::BusyKey);
    }
    let ttl_ms = u64::try_from(call.integer(2)?)
        .map_err(|_| Failure::other("Invalid TTL value, must be >= 0"))?;
    let refused = |error: PayloadError| Failure::other(error.to_string());
    let body = rdb::unseal(call.arg(3)).map_err(refused)?;
    let value = rdb::decode(body, call.shared.limits().reply_bytes_max).map_err(refused)?;
    let now_ms = tx.now_ms();
    let expires_at_ms = match (ttl_ms, options.is_absolute) {
        (0, _) => None,
        (_, true) => Some(ttl_ms),
        (_, false) => Some(now_ms.saturating_add(ttl_ms)),
    };
    if expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        tx.delete(database, key)?;
    } else {
        put(call, tx, &value, expires_at_ms)?;
    }
    call.reply.ok();
    Ok(())
}

/// Replaces what is under the key with the value.
fn put(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    value: &Value,
    expires_at_ms: Option<u64>,
) -> Result<(), Failure> {
    let (database, key, packing) = (call.database, call.arg(1), call.packing());
    let (elements, put) = match value {
        Value::String(text) => {
            tx.put(database, key, NewRecord::of(text).expiring(expires_at_ms))?;
            return Ok(());
        }
        Value::List(items) => {
            tx.delete(database, key)?;
            let list = List::new(database, key);
            (items.len(), list.push(tx, packing, End::Back, items.iter())?)
        }
        Value::Set(members) => {
            let set = Set::new(database, key);
            (members.len(), set.replace(tx, packing, members.iter())?)
        }
        Value::Hash(texts) => {
            tx.delete(database, key)?;
            let field = |place| {
                let text = |place| texts.get(place).unwrap_or_default();
                (text(2 * place), text(2 * place + 1))
            };
            let fields = (0..texts.len() / 2).map(field);
            (texts.len() / 2, Hash::new(database, key).set(tx, packing, fields)?)
        }
        Value::SortedSet(members, scores) => {
            let scored = members.iter().zip(scores.iter().copied());
            let set = SortedSet::new(database, key);
            (members.len(), set.replace(tx, packing, scored)?)
        }
        Value::Stream(stream) => {
            tx.delete(database, key)?;
            streams::put(call, tx, stream)?;
            (0, 0)
        }
    };
    // Some element occurs twice.
    if put != elements as u64 {
        return Err(Failure::Store("Bad data format".to_owned()));
    }
    if expires_at_ms.is_some() {
        tx.amend(database, key, Amendment { expires_at_ms, marks: Marks::default() })?;
    }
    Ok(())
}
