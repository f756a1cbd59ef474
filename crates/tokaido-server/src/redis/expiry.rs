//! Expiry: EXPIRE and its variants, TTL and its variants, PERSIST.

use tokaido_store::{ReadTransaction, Record, WriteTransaction};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    options::Unit,
};

pub(super) const COMMANDS: &[Command] = rows! {
"expire" -3 Write(expire), KEY [FAST BRIEF] Generic "1.0.0"
    "key seconds [NX | XX | GT | LT]"
    "Sets a key to expire after a number of seconds.";
"expireat" -3 Write(expireat), KEY [FAST BRIEF] Generic "1.2.0"
    "key unix-time-seconds [NX | XX | GT | LT]"
    "Sets a key to expire at a Unix time in seconds.";
"expiretime" 2 Read(expiretime), KEY [FAST] Generic "7.0.0"
    "key"
    "Returns the Unix time at which a key expires, in seconds.";
"persist" 2 Write(persist), KEY [FAST BRIEF] Generic "2.2.0"
    "key"
    "Removes the expiry of a key.";
"pexpire" -3 Write(pexpire), KEY [FAST BRIEF] Generic "2.6.0"
    "key milliseconds [NX | XX | GT | LT]"
    "Sets a key to expire after a number of milliseconds.";
"pexpireat" -3 Write(pexpireat), KEY [FAST BRIEF] Generic "2.6.0"
    "key unix-time-milliseconds [NX | XX | GT | LT]"
    "Sets a key to expire at a Unix time in milliseconds.";
"pexpiretime" 2 Read(pexpiretime), KEY [FAST] Generic "7.0.0"
    "key"
    "Returns the Unix time at which a key expires, in milliseconds.";
"pttl" 2 Read(pttl), KEY [FAST] Generic "2.6.0"
    "key"
    "Returns the time to live of a key in milliseconds.";
"ttl" 2 Read(ttl), KEY [FAST] Generic "1.0.0"
    "key"
    "Returns the time to live of a key in seconds.";
};

fn expire(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    expire_in(call, tx, Unit::SECONDS, "expire")
}

fn pexpire(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    expire_in(call, tx, Unit::MILLISECONDS, "pexpire")
}

fn expireat(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    expire_in(call, tx, Unit::AT_SECONDS, "expireat")
}

fn pexpireat(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    expire_in(call, tx, Unit::AT_MILLISECONDS, "pexpireat")
}

/// The conditions for changing an expiry.
#[derive(Default)]
struct Conditions {
    only_if_none: bool,
    only_if_some: bool,
    only_if_later: bool,
    only_if_sooner: bool,
}

impl Conditions {
    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let mut conditions = Self::default();
        for at in 3..call.len() {
            *(if call.is_word(at, "NX") {
                &mut conditions.only_if_none
            } else if call.is_word(at, "XX") {
                &mut conditions.only_if_some
            } else if call.is_word(at, "GT") {
                &mut conditions.only_if_later
            } else if call.is_word(at, "LT") {
                &mut conditions.only_if_sooner
            } else {
                let option = String::from_utf8_lossy(call.arg(at));
                return Err(Failure::other(format!("Unsupported option {option}")));
            }) = true;
        }
        let Self { only_if_none, only_if_some, only_if_later, only_if_sooner } = conditions;
        if only_if_none && (only_if_some || only_if_later || only_if_sooner) {
            return Err(Failure::other(
                "NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if only_if_later && only_if_sooner {
            return Err(Failure::other("GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// A record without an expiry counts as the last to expire.
    fn hold(&self, old_ms: Option<u64>, new_ms: i64) -> bool {
        let old = old_ms.map_or(i128::MAX, i128::from);
        let new = i128::from(new_ms);
        !(self.only_if_none && old_ms.is_some()
            || self.only_if_some && old_ms.is_none()
            || self.only_if_later && new <= old
            || self.only_if_sooner && new >= old)
    }
}

fn expire_in(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    unit: Unit,
    command: &'static str,
) -> Result<(), Failure> {
    let conditions = Conditions::read(call)?;
    let now_ms = tx.now_ms();
    let at_ms = unit.time_ms(call.integer(2)?, now_ms).ok_or(Failure::ExpireTime { command })?;
    let (database, key) = (call.database, call.arg(1));
    let Some(record) = tx.get(database, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    if !conditions.hold(record.expires_at_ms, at_ms) {
        call.reply.integer(0);
        return Ok(());
    }
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms > now_ms => {
            let value = record.value.to_vec();
            let new = record.with_same_value(&value).expiring(Some(at_ms));
            tx.put(database, key, new)?;
        }
        _ => {
            tx.delete(database, key)?;
        }
    }
    call.reply.integer(1);
    Ok(())
}

fn persist(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key) = (call.database, call.arg(1));
    let found = tx.get(database, key)?.filter(|record| record.expires_at_ms.is_some());
    let Some(record) = found else {
        call.reply.integer(0);
        return Ok(());
    };
    let value = record.value.to_vec();
    let new = record.with_same_value(&value).expiring(None);
    tx.put(database, key, new)?;
    call.reply.integer(1);
    Ok(())
}

fn ttl(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let now_ms = tx.now_ms();
    tell(call, tx, |at_ms| to_seconds(at_ms.saturating_sub(now_ms)))
}

fn pttl(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let now_ms = tx.now_ms();
    tell(call, tx, |at_ms| at_ms.saturating_sub(now_ms))
}

fn expiretime(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    tell(call, tx, to_seconds)
}

fn pexpiretime(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    tell(call, tx, |at_ms| at_ms)
}

/// Rounds to the nearest second, as Redis does.
fn to_seconds(ms: u64) -> u64 {
    ms.saturating_add(500) / 1000
}

/// Replies -2 without a record, -1 without an expiry, or the expiry converted by `form`.
fn tell(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    form: impl Fn(u64) -> u64,
) -> Result<(), Failure> {
    let answer = match tx.get(call.database, call.arg(1))? {
        None => -2,
        Some(Record { expires_at_ms: None, .. }) => -1,
        Some(Record { expires_at_ms: Some(at_ms), .. }) => {
            i64::try_from(form(at_ms)).unwrap_or(i64::MAX)
        }
    };
    call.reply.integer(answer);
    Ok(())
}
