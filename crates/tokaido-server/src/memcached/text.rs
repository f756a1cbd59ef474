//! The commands of the text protocol: what they do, and what they reply.

use std::borrow::Cow;

use tokaido_store::{composite, transact_in_place};
use tokaido_wire::memcached::{Exptime, Mode, Request, RequestError, Store, Words, text as reply};

use super::{
    MEMCACHED_VERSION, Session,
    failure::Failure,
    figures::Figure,
    meta,
    operations::{self, Count, Counted, StoreOutcome, shown},
    protocol::Step,
    stats,
};
use crate::protocol::Context;

/// Answers a request, or says that it must run on the writer.
pub(super) fn answer(
    session: &Session,
    request: &Request<'_>,
    is_quiet: bool,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Step {
    if writes(request) && session.needs_writer(context) {
        return Step::NeedsWriter;
    }
    let start = output.len();
    match run(session, request, is_quiet, context, output) {
        Ok(step) => step,
        Err(failure) => {
            output.truncate(start);
            if !is_quiet || is_meta(request) {
                reply::line(output, &format!("SERVER_ERROR {failure}"));
            }
            Step::Done
        }
    }
}

/// Whether it is a meta command, whose errors are reported even if it is quiet.
pub(super) fn is_meta(request: &Request<'_>) -> bool {
    use Request::{MetaArithmetic, MetaDelete, MetaGet, MetaSet};
    matches!(request, MetaGet(_) | MetaSet(..) | MetaDelete(_) | MetaArithmetic(_))
}

/// Whether a request cannot be answered without a write. `mg` finds out for itself.
fn writes(request: &Request<'_>) -> bool {
    match request {
        Request::Get { touch, .. } => touch.is_some(),
        Request::Refused { forget, .. } => forget.is_some(),
        Request::Store(_)
        | Request::Delete { .. }
        | Request::Count { .. }
        | Request::Touch { .. }
        | Request::FlushAll { .. }
        | Request::MetaSet(..)
        | Request::MetaDelete(_)
        | Request::MetaArithmetic(_) => true,
        _ => false,
    }
}

fn run(
    session: &Session,
    request: &Request<'_>,
    is_quiet: bool,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Step, Failure> {
    match request {
        Request::Quit => return Ok(Step::Close),
        Request::MetaGet(asked) => return meta::get(session, asked, context, output),
        Request::Stats { arguments } => stats::answer(*arguments, session, context, output)?,
        Request::MetaSet(asked, store) => meta::set(session, asked, store, context, output)?,
        Request::MetaDelete(asked) => meta::delete(session, asked, context, output)?,
        Request::MetaArithmetic(asked) => meta::count(session, asked, context, output)?,
        Request::MetaDebug(asked) => meta::debug(session, asked, context, output)?,
        request => {
            let line = last_line(session, request, context, output)?;
            if !is_quiet {
                reply::line(output, &line);
            }
        }
    }
    Ok(Step::Done)
}

/// Runs a request whose reply ends in a line with its outcome. Returns that line.
fn last_line(
    session: &Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Cow<'static, str>, Failure> {
    let line = match request {
        Request::Get { keys, with_cas, touch } => {
            if let Some(exptime) = touch {
                get_and_touch(session, *keys, *with_cas, *exptime, context, output)?;
            } else {
                get(session, *keys, *with_cas, context, output)?;
            }
            "END"
        }
        Request::Store(store) => stored_line(store_value(session, store, false, context)?),
        Request::Delete { key } => delete(session, key, context)?,
        Request::Count { key, by, is_down } => {
            let how = Count { by: *by, is_down: *is_down, cas: 0, vivify: None, exptime: None };
            match count(session, key, &how, context)? {
                Counted::Moved(counter) | Counted::Made(counter) => {
                    return Ok(counter.number.to_string().into());
                }
                Counted::NotNumeric => NOT_NUMERIC,
                Counted::NotFound | Counted::Exists => "NOT_FOUND",
            }
        }
        Request::Touch { key, exptime } => {
            if touch(session, key, *exptime, context)? {
                "TOUCHED"
            } else {
                "NOT_FOUND"
            }
        }
        Request::FlushAll { delay } => {
            flush(session, *delay, context)?;
            "OK"
        }
        Request::Verbosity { level } => {
            context.shared.memcached.set_verbosity(*level);
            "OK"
        }
        Request::Version => return Ok(format!("VERSION {MEMCACHED_VERSION}").into()),
        Request::Refused { error, forget, .. } => {
            if let Some(key) = forget {
                session.write(context, |tx| Ok(tx.delete(session.database, key.bytes())?))?;
            }
            if *error == RequestError::TooLarge {
                session.count(Figure::StoreTooLarge);
            }
            return Ok(error.to_string().into());
        }
        _ => "MN",
    };
    Ok(line.into())
}

pub(super) const NOT_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";

fn get(
    session: &Session,
    keys: Words<'_>,
    with_cas: bool,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let len_max = output.len() + context.shared.limits().memcached_reply_bytes_max;
    session.read(context, |tx| {
        for key in keys {
            let record = shown(tx.get(session.database, key)?);
            session.count(Figure::CmdGet);
            session.count_either(record.is_some(), Figure::GetHits, Figure::GetMisses);
            if let Some(record) = record {
                let cas = with_cas.then_some(record.version);
                reply::value(output, key, record.flags, record.value, cas);
                if output.len() > len_max {
                    return Err(Failure::ReplyLength);
                }
            }
        }
        Ok(())
    })
}

/// In one transaction; on a database without transactions, key by key.
fn get_and_touch(
    session: &Session,
    keys: Words<'_>,
    with_cas: bool,
    exptime: Exptime,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let len_max = output.len() + context.shared.limits().memcached_reply_bytes_max;
    let keys_max = if session.capabilities.is_transactional { usize::MAX } else { 1 };
    let mut next = Some(keys);
    while let Some(keys) = next {
        let start = output.len();
        let (rest, hits, misses) = session.write(context, |tx| {
            output.truncate(start);
            let (mut rest, mut hits, mut misses) = (keys, 0, 0);
            for key in rest.by_ref().take(keys_max) {
                let touched =
                    operations::touch(tx, session.database, key, exptime, operations::shown_part)?;
                let Some(((flags, value), version)) = touched else {
                    misses += 1;
                    continue;
                };
                hits += 1;
                reply::value(output, key, flags, &value, with_cas.then_some(version));
                if output.len() > len_max {
                    return Err(Failure::ReplyLength);
                }
            }
            Ok((rest, hits, misses))
        })?;
        session.figures().add(Figure::CmdTouch, hits + misses);
        session.figures().add(Figure::TouchHits, hits);
        session.figures().add(Figure::TouchMisses, misses);
        next = (rest.clone().next().is_some()).then_some(rest);
    }
    Ok(())
}

pub(super) fn store_value(
    session: &Session,
    store: &Store<'_>,
    may_be_stale: bool,
    context: &mut Context<'_>,
) -> Result<StoreOutcome, Failure> {
    let len_max = context.shared.limits().memcached_value_bytes_max;
    let outcome = session.write(context, |tx| {
        operations::store(tx, session.database, store, may_be_stale, len_max)
    })?;
    session.count(Figure::CmdSet);
    match outcome {
        StoreOutcome::TooLarge => session.count(Figure::StoreTooLarge),
        StoreOutcome::Stored(_) if store.mode == Mode::Cas => session.count(Figure::CasHits),
        StoreOutcome::Exists if store.mode == Mode::Cas => session.count(Figure::CasBadval),
        StoreOutcome::NotFound => session.count(Figure::CasMisses),
        _ => {}
    }
    Ok(outcome)
}

fn stored_line(outcome: StoreOutcome) -> &'static str {
    match outcome {
        StoreOutcome::Stored(_) => "STORED",
        StoreOutcome::Exists => "EXISTS",
        StoreOutcome::NotFound => "NOT_FOUND",
        StoreOutcome::NotStored => "NOT_STORED",
        StoreOutcome::TooLarge => "SERVER_ERROR object too large for cache",
    }
}

fn delete(
    session: &Session,
    key: &[u8],
    context: &mut Context<'_>,
) -> Result<&'static str, Failure> {
    let deleted = session.write(context, |tx| Ok(tx.delete(session.database, key)?))?;
    session.count_either(deleted, Figure::DeleteHits, Figure::DeleteMisses);
    Ok(if deleted { "DELETED" } else { "NOT_FOUND" })
}

pub(super) fn count(
    session: &Session,
    key: &[u8],
    how: &Count,
    context: &mut Context<'_>,
) -> Result<Counted, Failure> {
    let counted = session.write(context, |tx| operations::count(tx, session.database, key, how))?;
    match counted {
        Counted::Moved(_) => {
            session.count_either(how.is_down, Figure::DecrHits, Figure::IncrHits);
        }
        Counted::NotFound => {
            session.count_either(how.is_down, Figure::DecrMisses, Figure::IncrMisses);
        }
        _ => {}
    }
    Ok(counted)
}

fn touch(
    session: &Session,
    key: &[u8],
    exptime: Exptime,
    context: &mut Context<'_>,
) -> Result<bool, Failure> {
    let touched = session
        .write(context, |tx| Ok(operations::touch(tx, session.database, key, exptime, |_| ())?))?;
    session.count(Figure::CmdTouch);
    session.count_either(touched.is_some(), Figure::TouchHits, Figure::TouchMisses);
    Ok(touched.is_some())
}

/// Deletes every record. Only a cache can be told to do it after a delay.
pub(super) fn flush(
    session: &Session,
    delay: Exptime,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    session.count(Figure::CmdFlush);
    let store = &**context.shared.store();
    if delay.0 <= 0 {
        return session.write(context, |tx| Ok(tx.clear(session.database)?));
    }
    let Some(cache) = composite::cache(store, session.database) else {
        return Err(Failure::DelayedFlush);
    };
    let now_ms = transact_in_place::<_, Failure>(store, session.database, |tx| Ok(tx.now_ms()))?;
    let at_ms = delay.at_ms(now_ms).unwrap_or(now_ms);
    cache.flush_all(at_ms.saturating_sub(now_ms));
    Ok(())
}
