//! SET with all its options, its older forms, and GETEX.

use tokaido_store::{Kind, NewRecord, WriteTransaction};

use super::{
    call::{Call, only_of},
    command::{Command, rows},
    failure::Failure,
    options::Unit,
};

pub(super) const COMMANDS: &[Command] = rows! {
"getex" -2 Write(getex), KEY [FAST BRIEF] String "6.2.0"
    "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]"
    "Returns the value of a key, and optionally sets or removes its expiry.";
"psetex" 4 Write(psetex), KEY [DENYOOM BRIEF] String "2.6.0"
    "key milliseconds value"
    "Sets a value that expires after a number of milliseconds.";
"set" -3 Write(set), KEY [DENYOOM BRIEF] String "1.0.0"
    "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"
    "Sets the value of a key.";
"setex" 4 Write(setex), KEY [DENYOOM BRIEF] String "2.0.0"
    "key seconds value"
    "Sets a value that expires after a number of seconds.";
};

/// What to do with the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expiry<'c> {
    /// No option was given.
    #[default]
    Unsaid,
    /// KEEPTTL, or PERSIST.
    Word,
    /// A unit and a number, not yet parsed because syntax errors come first.
    Time(Unit, &'c [u8]),
}

impl<'c> Expiry<'c> {
    /// Records one option. Options of two different kinds contradict each other.
    fn say(&mut self, said: Self) -> Result<(), Failure> {
        let agrees = match (*self, said) {
            (Self::Unsaid, _) | (Self::Word, Self::Word) => true,
            (Self::Time(before, _), Self::Time(unit, _)) => before == unit,
            _ => false,
        };
        *self = said;
        if agrees { Ok(()) } else { Err(Failure::Syntax) }
    }

    /// Reads `EX 10` and the like at `at`. Returns the number of arguments read.
    fn read(&mut self, call: &Call<'c>, at: usize) -> Result<usize, Failure> {
        match (Unit::option(call, at), call.request.get(at + 1)) {
            (Some(unit), Some(number)) => self.say(Self::Time(unit, number)).map(|()| 2),
            _ => Err(Failure::Syntax),
        }
    }
}

/// The options of SET.
#[derive(Default)]
struct Options<'c> {
    only_if_absent: bool,
    only_if_present: bool,
    gives_old: bool,
    expiry: Expiry<'c>,
}

impl<'c> Options<'c> {
    fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut at = 3;
        while at < call.len() {
            if call.is_word(at, "NX") {
                options.only_if_absent = true;
            } else if call.is_word(at, "XX") {
                options.only_if_present = true;
            } else if call.is_word(at, "GET") {
                options.gives_old = true;
            } else if call.is_word(at, "KEEPTTL") {
                options.expiry.say(Expiry::Word)?;
            } else {
                at += options.expiry.read(call, at)? - 1;
            }
            at += 1;
        }
        if options.only_if_absent && options.only_if_present {
            return Err(Failure::Syntax);
        }
        Ok(options)
    }
}

fn set(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key, value) = (call.database, call.arg(1), call.arg(2));
    if call.len() == 3 {
        tx.put(database, key, NewRecord::of(value))?;
        call.reply.ok();
        return Ok(());
    }
    let options = Options::read(call)?;
    let timed_ms = match options.expiry {
        Expiry::Time(unit, number) => Some(unit.expiry_ms(number, tx.now_ms(), "set")?),
        _ => None,
    };
    let old = tx.get(database, key)?;
    if options.gives_old {
        only_of(Kind::Bytes, old)?;
        call.reply.bulk_or_null(old.map(|record| record.value));
    }
    let is_allowed = match old {
        Some(_) => !options.only_if_absent,
        None => !options.only_if_present,
    };
    if !is_allowed {
        if !options.gives_old {
            call.reply.null();
        }
        return Ok(());
    }
    let expires_at_ms = match options.expiry {
        Expiry::Word => old.and_then(|record| record.expires_at_ms),
        _ => timed_ms,
    };
    tx.put(database, key, NewRecord::of(value).expiring(expires_at_ms))?;
    if !options.gives_old {
        call.reply.ok();
    }
    Ok(())
}

fn setex(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    set_expiring(call, tx, Unit::SECONDS, "setex")
}

fn psetex(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    set_expiring(call, tx, Unit::MILLISECONDS, "psetex")
}

fn set_expiring(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    unit: Unit,
    command: &'static str,
) -> Result<(), Failure> {
    let at_ms = unit.expiry_ms(call.arg(2), tx.now_ms(), command)?;
    tx.put(call.database, call.arg(1), NewRecord::of(call.arg(3)).expiring(Some(at_ms)))?;
    call.reply.ok();
    Ok(())
}

fn getex(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key, now_ms) = (call.database, call.arg(1), tx.now_ms());
    let mut expiry = Expiry::default();
    let mut at = 2;
    while at < call.len() {
        if call.is_word(at, "PERSIST") {
            expiry.say(Expiry::Word)?;
            at += 1;
        } else {
            at += expiry.read(call, at)?;
        }
    }
    let Some(record) = call.string(tx, key)? else {
        call.reply.null();
        return Ok(());
    };
    let timed_ms = match expiry {
        Expiry::Time(unit, number) => Some(unit.expiry_ms(number, now_ms, "getex")?),
        _ => None,
    };
    call.reply.bulk(record.value);
    if expiry == Expiry::Unsaid || record.expires_at_ms == timed_ms {
        return Ok(());
    }
    let value = record.value.to_vec();
    let new = record.with_same_value(&value).expiring(timed_ms);
    tx.put(database, key, new)?;
    Ok(())
}
