//! What the commands of the binary protocol do, and their replies.

use tokaido_store::Kind;
use tokaido_wire::tyrant::{
    Verb,
    binary::{DONE, ListWriter, Request, bytes, bytes_len},
    number,
};

use super::{
    access,
    lists::check_parameters,
    misc::{self, Arguments, Results, Work, check_reply},
    records,
    refusal::Refusal,
    restore,
    rights::Door,
    scripts::Script,
    search,
    session::{Session, Stop},
    stat, tables,
};
use crate::protocol::Context;

/// Checks that a client may run a command.
pub(super) fn check(session: &Session, request: &Request<'_>) -> Result<(), Refusal> {
    let command = request.command;
    let keys = [request.key()].into_iter().filter(|_| command.verb != Verb::Mget);
    let keys = keys.chain(request.items);
    access::allow_verb(&session.principal, (command.verb, command.effect), keys)?;
    match session.shared.tyrant.rights.forbid(command.verb, Door::Binary) {
        true => Err(Refusal::forbidden(command.name)),
        false => Ok(()),
    }
}

/// Does what a request asks for, and writes its reply. What a failed request writes does not count.
pub(super) fn answer(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let (key, value) = (request.key(), request.value());
    let verb = request.command.verb;
    match verb {
        Verb::Put | Verb::PutNr => {
            session.write(context, |tx, id| records::put(tx, id, key, value))?;
        }
        Verb::PutKeep => session.write(context, |tx, id| records::putkeep(tx, id, key, value))?,
        Verb::PutCat => {
            let putcat = if session.has_table()? { tables::putcat } else { records::putcat };
            session.write(context, |tx, id| putcat(tx, id, key, value))?;
        }
        Verb::PutShl => {
            // It is not negative, or it would not have been a request.
            let width = usize::try_from(request.numbers()[0]).unwrap_or(0);
            session.write(context, |tx, id| records::putshl(tx, id, key, value, width))?;
        }
        Verb::Out => session.write(context, |tx, id| records::out(tx, id, key))?,
        Verb::Vanish => session.write(context, |tx, id| Ok(tx.clear(id)?))?,
        Verb::Get | Verb::Vsiz => return get(session, request, context, output),
        Verb::Mget => return mget(session, request, context, output),
        Verb::FwmKeys => return fwmkeys(session, request, context, output),
        Verb::IterInit | Verb::IterNext => return iterate(session, verb, context, output),
        Verb::AddInt | Verb::AddDouble => return add(session, request, context, output),
        Verb::Ext => {
            let [name, key, value] = request.parts();
            let script = Script::new(session.principal.clone(), name, key, value);
            let result = session.call(&script, context)?;
            output.push(DONE);
            bytes(&result, output);
            return Ok(());
        }
        Verb::Sync => session.sync(context)?,
        Verb::Optimize => check_parameters(key)?,
        Verb::Copy => session.copy(key, context)?,
        Verb::Restore => restore::answer(session, request, context)?,
        Verb::SetMst | Verb::Repl => Err(Refusal::invalid("there is no replication"))?,
        Verb::Rnum | Verb::Size => {
            let statistics = session.read(context, false, |tx, id| Ok(tx.statistics(id)?))?;
            let bytes = statistics.key_bytes + statistics.value_bytes;
            let number = if verb == Verb::Rnum { statistics.records } else { bytes };
            output.push(DONE);
            output.extend_from_slice(&number.to_be_bytes());
            return Ok(());
        }
        Verb::Stat => {
            let shared = session.shared.clone();
            let described =
                session.read(context, false, |tx, id| stat::describe(&shared, tx, id))?;
            output.push(DONE);
            bytes(stat::text(&shared, described).as_bytes(), output);
            return Ok(());
        }
        Verb::Misc => return call_misc(session, request, context, output),
    }
    output.push(DONE);
    Ok(())
}

fn get(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let is_get = request.command.verb == Verb::Get;
    session.read(context, false, |tx, id| {
        let value = records::get(tx, id, request.key())?;
        output.push(DONE);
        match is_get {
            true => bytes(value, output),
            false => bytes_len(value, output),
        }
        Ok(())
    })
}

/// The records that exist; those of other kinds are skipped.
fn mget(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let bytes_max = session.shared.limits().tyrant_reply_bytes_max;
    session.read(context, false, |tx, id| {
        let start = output.len();
        let mut list = ListWriter::begin(DONE, output);
        for key in request.items {
            // No record can have an empty key.
            if key.is_empty() {
                continue;
            }
            let record = tx.get(id, key)?.filter(|record| record.kind == Kind::Bytes);
            if let Some(record) = record {
                list.record(key, record.value, output);
                check_reply(output.len() - start, bytes_max)?;
            }
        }
        list.end(output);
        Ok(())
    })
}

fn fwmkeys(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let bytes_max = session.shared.limits().tyrant_reply_bytes_max;
    session.read(context, true, |tx, id| {
        let start = output.len();
        let mut list = ListWriter::begin(DONE, output);
        search::fwmkeys(tx, id, request.key(), request.numbers()[0], &mut |key| {
            list.item(key, output);
            check_reply(output.len() - start, bytes_max)
        })?;
        list.end(output);
        Ok(())
    })
}

fn iterate(
    session: &mut Session,
    verb: Verb,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let mut iterator = std::mem::take(&mut session.iterator);
    let moved = session.read(context, false, |tx, id| match verb {
        Verb::IterInit => Ok(iterator.rewind(tx, id).map(|()| None)?),
        _ => Ok(Some(iterator.next(tx, id)?.ok_or_else(Refusal::missing)?)),
    });
    session.iterator = iterator;
    let key = moved?;
    output.push(DONE);
    if let Some(key) = key {
        bytes(&key, output);
    }
    Ok(())
}

fn add(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let (key, [first, second, _]) = (request.key(), request.numbers());
    let is_table = session.has_table()?;
    if request.command.verb == Verb::AddInt {
        // It arrived as 32 bits.
        let by = i32::try_from(first).unwrap_or(0);
        let sum = session.write(context, |tx, id| match is_table {
            // Converted as in C, except that a sum that is too large becomes the largest.
            true => tables::add(tx, id, key, by.into()).map(|sum| sum as i32),
            false => records::addint(tx, id, key, by),
        })?;
        output.push(DONE);
        output.extend_from_slice(&sum.to_be_bytes());
        return Ok(());
    }
    let by = number::unpack([first, second]);
    let add = if is_table { tables::add } else { records::adddouble };
    let sum = session.write(context, |tx, id| add(tx, id, key, by))?;
    output.push(DONE);
    for part in number::pack(sum) {
        output.extend_from_slice(&part.to_be_bytes());
    }
    Ok(())
}

fn call_misc(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let arguments = Arguments::new(request.items);
    let function = misc::find(request.key(), &arguments, session.has_table()?)?;
    access::allow_misc(&session.principal, function, &arguments)?;
    if session.shared.tyrant.rights.forbid(function.like, Door::Binary) {
        return Err(Refusal::forbidden(function.name).into());
    }
    let bytes_max = session.shared.limits().tyrant_reply_bytes_max;
    let fresh = || Results::new(bytes_max);
    let results = match function.work {
        Work::Read(read) | Work::Search(read) => {
            let is_long = matches!(function.work, Work::Search(_));
            session.read(context, is_long, |tx, id| {
                let mut results = fresh();
                read(&arguments, tx, id, &mut results).map(|()| results)
            })?
        }
        Work::Write(write) => session.write(context, |tx, id| {
            let mut results = fresh();
            write(&arguments, tx, id, &mut results).map(|()| results)
        })?,
        Work::Iterate(iterate) => {
            let mut iterator = std::mem::take(&mut session.iterator);
            let moved = session.read(context, false, |tx, id| {
                let mut results = fresh();
                iterate(&arguments, &mut iterator, tx, id, &mut results).map(|()| results)
            });
            session.iterator = iterator;
            moved?
        }
        Work::Sync => session.sync(context).map(|()| fresh())?,
        Work::Error => {
            let mut results = fresh();
            results.error(session.error)?;
            results
        }
        Work::Refuse(reason) => return Err(Refusal::invalid(reason).into()),
    };
    let mut list = ListWriter::begin(DONE, output);
    for item in &results.items {
        list.item(item, output);
    }
    list.end(output);
    Ok(())
}
