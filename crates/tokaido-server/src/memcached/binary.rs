//! The operations of the binary protocol: what they do, and what they reply.

use tokaido_store::CommitNumber;
use tokaido_wire::memcached::{
    BinaryRequest, BinaryVerb, Exptime, Mode, Operation, Store,
    binary::{self as reply, Body, Echo, Status},
};

use super::{
    MEMCACHED_VERSION, Session,
    failure::Failure,
    figures::Figure,
    operations::{self, Count, Counted, StoreOutcome, shown},
    protocol::Step,
    stats::{self, Told},
    text,
};
use crate::protocol::Context;

/// The only authentication mechanism.
const MECHANISM: &[u8] = b"PLAIN";

/// A request with its row of the table, and what its reply repeats.
pub(super) struct Asked<'r> {
    pub(super) operation: &'static Operation,
    pub(super) echo: Echo,
    pub(super) request: &'r BinaryRequest<'r>,
}

/// Answers a request, or says that it must run on the writer.
pub(super) fn answer(
    session: &mut Session,
    asked: &Asked<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Step {
    if writes(asked.request) && session.needs_writer(context) {
        return Step::NeedsWriter;
    }
    let start = output.len();
    match run(session, asked, context, output) {
        Ok(step) => step,
        Err(failure) => {
            output.truncate(start);
            reply::error(output, asked.echo, Status::Internal, &failure.to_string());
            Step::Done
        }
    }
}

fn writes(request: &BinaryRequest<'_>) -> bool {
    match request {
        BinaryRequest::Get { touch, .. } => touch.is_some(),
        BinaryRequest::Refused { forget, .. } => forget.is_some(),
        BinaryRequest::Stat { .. } | BinaryRequest::Authenticate { .. } | BinaryRequest::Plain => {
            false
        }
        _ => true,
    }
}

fn run(
    session: &mut Session,
    asked: &Asked<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Step, Failure> {
    let is_quiet = asked.operation.is_quiet;
    // What remains to be replied: that it is done, or what is wrong.
    let (status, cas) = match asked.request {
        BinaryRequest::Get { key, touch } => {
            get(session, asked, key, *touch, context, output)?;
            return Ok(Step::Done);
        }
        BinaryRequest::Touch { key, exptime } => {
            touch(session, asked, key, *exptime, context, output)?;
            return Ok(Step::Done);
        }
        BinaryRequest::Store(store) => store_value(session, asked, store, context)?,
        BinaryRequest::Delete { key, cas } => (delete(session, key, *cas, context)?, 0),
        BinaryRequest::Count { .. } => {
            count(session, asked, context, output)?;
            return Ok(Step::Done);
        }
        BinaryRequest::Flush { delay } => {
            text::flush(session, *delay, context)?;
            (Status::Success, 0)
        }
        BinaryRequest::Stat { group } => {
            stat(session, asked, group, context, output)?;
            return Ok(Step::Done);
        }
        BinaryRequest::Authenticate { mechanism, response } => {
            authenticate(session, asked, mechanism, response, context, output);
            return Ok(Step::Done);
        }
        BinaryRequest::Plain => return Ok(plain(asked, context, output)),
        BinaryRequest::Refused { status, closes, forget, .. } => {
            return refuse(session, asked.echo, (*status, *closes), *forget, context, output);
        }
    };
    if status != Status::Success {
        reply::error(output, asked.echo, status, status.text());
    } else if !is_quiet {
        reply::reply(output, asked.echo, status, cas, Body::default());
    }
    Ok(Step::Done)
}

/// Replies why a request is not done.
fn refuse(
    session: &Session,
    echo: Echo,
    (status, closes): (Status, bool),
    forget: Option<&[u8]>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Step, Failure> {
    if let Some(key) = forget {
        session.write(context, |tx| Ok(tx.delete(session.database, key)?))?;
    }
    if status == Status::TooLarge {
        session.count(Figure::StoreTooLarge);
    }
    reply::error(output, echo, status, status.text());
    Ok(if closes { Step::Close } else { Step::Done })
}

/// A hit: flags, the key if it is wanted, and the value.
fn hit(
    asked: &Asked<'_>,
    key: &[u8],
    flags: u32,
    cas: CommitNumber,
    value: &[u8],
    output: &mut Vec<u8>,
) {
    let key = if asked.operation.with_key { key } else { b"" };
    let body = Body { extras: &flags.to_be_bytes(), key, value };
    reply::reply(output, asked.echo, Status::Success, cas, body);
}

fn get(
    session: &Session,
    asked: &Asked<'_>,
    key: &[u8],
    touch: Option<Exptime>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let start = output.len();
    let is_hit = match touch {
        None => session.read(context, |tx| {
            let Some(record) = shown(tx.get(session.database, key)?) else { return Ok(false) };
            hit(asked, key, record.flags, record.version, record.value, output);
            Ok(true)
        })?,
        Some(exptime) => session.write(context, |tx| {
            output.truncate(start);
            let touched =
                operations::touch(tx, session.database, key, exptime, operations::shown_part)?;
            let Some(((flags, value), version)) = touched else { return Ok(false) };
            hit(asked, key, flags, version, &value, output);
            Ok(true)
        })?,
    };
    if touch.is_some() {
        session.count(Figure::CmdTouch);
        session.count_either(is_hit, Figure::TouchHits, Figure::TouchMisses);
    } else {
        session.count(Figure::CmdGet);
        session.count_either(is_hit, Figure::GetHits, Figure::GetMisses);
    }
    if !is_hit && !asked.operation.is_quiet {
        miss(asked, key, output);
    }
    Ok(())
}

/// A miss comes with its message, or with the key.
fn miss(asked: &Asked<'_>, key: &[u8], output: &mut Vec<u8>) {
    let status = Status::NotFound;
    let body = if asked.operation.with_key {
        Body { key, ..Body::default() }
    } else {
        Body { value: status.text().as_bytes(), ..Body::default() }
    };
    reply::reply(output, asked.echo, status, 0, body);
}

/// Like a hit, without the value.
fn touch(
    session: &Session,
    asked: &Asked<'_>,
    key: &[u8],
    exptime: Exptime,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let touched = session.write(context, |tx| {
        Ok(operations::touch(tx, session.database, key, exptime, |record| record.flags)?)
    })?;
    session.count(Figure::CmdTouch);
    session.count_either(touched.is_some(), Figure::TouchHits, Figure::TouchMisses);
    match touched {
        Some((flags, version)) => hit(asked, key, flags, version, b"", output),
        None => miss(asked, key, output),
    }
    Ok(())
}

fn store_value(
    session: &Session,
    asked: &Asked<'_>,
    store: &Store<'_>,
    context: &mut Context<'_>,
) -> Result<(Status, CommitNumber), Failure> {
    let status = match text::store_value(session, store, false, context)? {
        StoreOutcome::Stored(version) => return Ok((Status::Success, version)),
        StoreOutcome::Exists => Status::Exists,
        StoreOutcome::NotFound => Status::NotFound,
        StoreOutcome::TooLarge => Status::TooLarge,
        StoreOutcome::NotStored => match asked.operation.verb {
            BinaryVerb::Store(Mode::Add) => Status::Exists,
            BinaryVerb::Store(Mode::Replace) => Status::NotFound,
            _ => Status::NotStored,
        },
    };
    Ok((status, 0))
}

fn delete(
    session: &Session,
    key: &[u8],
    cas: u64,
    context: &mut Context<'_>,
) -> Result<Status, Failure> {
    let deleted =
        session.write(context, |tx| Ok(operations::delete(tx, session.database, key, cas)?))?;
    match deleted {
        Some(true) => session.count(Figure::DeleteHits),
        Some(false) => {}
        None => session.count(Figure::DeleteMisses),
    }
    Ok(match deleted {
        Some(true) => Status::Success,
        Some(false) => Status::Exists,
        None => Status::NotFound,
    })
}

fn count(
    session: &Session,
    asked: &Asked<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let BinaryRequest::Count { key, by, initial, vivify, cas } = asked.request else {
        return Ok(());
    };
    let how = Count {
        by: *by,
        is_down: asked.operation.verb == BinaryVerb::Decrement,
        cas: *cas,
        vivify: vivify.map(|exptime| (*initial, exptime)),
        exptime: None,
    };
    let status = match text::count(session, key, &how, context)? {
        Counted::Moved(counter) | Counted::Made(counter) => {
            if !asked.operation.is_quiet {
                let body = Body { value: &counter.number.to_be_bytes(), ..Body::default() };
                reply::reply(output, asked.echo, Status::Success, counter.version, body);
            }
            return Ok(());
        }
        Counted::NotNumeric => Status::NotNumeric,
        Counted::NotFound => Status::NotFound,
        Counted::Exists => Status::Exists,
    };
    reply::error(output, asked.echo, status, status.text());
    Ok(())
}

/// A reply for each figure, and an empty one after them.
fn stat(
    session: &Session,
    asked: &Asked<'_>,
    group: &[u8],
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let figures = match stats::tell(group, session, context)? {
        Told::Group(figures) => figures,
        Told::Reset => Vec::new(),
        Told::Unknown => {
            reply::error(output, asked.echo, Status::NotFound, Status::NotFound.text());
            return Ok(());
        }
    };
    for (name, value) in &figures {
        let body = Body { key: name.as_bytes(), value: value.as_bytes(), ..Body::default() };
        reply::reply(output, asked.echo, Status::Success, 0, body);
    }
    reply::reply(output, asked.echo, Status::Success, 0, Body::default());
    Ok(())
}

/// `PLAIN` has a NUL before the user name, and one before the password.
fn authenticate(
    session: &mut Session,
    asked: &Asked<'_>,
    mechanism: &[u8],
    response: &[u8],
    context: &Context<'_>,
    output: &mut Vec<u8>,
) {
    let users = context.shared.users();
    if !users.know_passwords() {
        let status = Status::UnknownCommand;
        reply::error(output, asked.echo, status, status.text());
        return;
    }
    session.count(Figure::AuthCmds);
    let is_start = asked.operation.verb == BinaryVerb::SaslAuth && mechanism == MECHANISM;
    let parts: Vec<&[u8]> = response.splitn(3, |&byte| byte == 0).collect();
    let principal = match parts[..] {
        [_, user, password] if is_start => users.authenticate_any(user, password),
        _ => None,
    };
    match principal {
        Some(principal) => {
            session.principal = principal;
            let body = Body { value: b"Authenticated", ..Body::default() };
            reply::reply(output, asked.echo, Status::Success, 0, body);
        }
        None => {
            session.count(Figure::AuthErrors);
            reply::error(output, asked.echo, Status::AuthError, Status::AuthError.text());
        }
    }
}

/// Operations without arguments.
fn plain(asked: &Asked<'_>, context: &Context<'_>, output: &mut Vec<u8>) -> Step {
    let value = match asked.operation.verb {
        BinaryVerb::Version => MEMCACHED_VERSION.as_bytes(),
        BinaryVerb::SaslList if !context.shared.users().know_passwords() => {
            let status = Status::UnknownCommand;
            reply::error(output, asked.echo, status, status.text());
            return Step::Done;
        }
        BinaryVerb::SaslList => MECHANISM,
        _ => b"",
    };
    if !asked.operation.is_quiet {
        let body = Body { value, ..Body::default() };
        reply::reply(output, asked.echo, Status::Success, 0, body);
    }
    if asked.operation.verb == BinaryVerb::Quit { Step::Close } else { Step::Done }
}

/// Replies that there is no such operation, or that it has no such form.
pub(super) fn refuse_unknown(
    echo: Echo,
    request: &BinaryRequest<'_>,
    output: &mut Vec<u8>,
) -> Step {
    let (status, closes) = match request {
        BinaryRequest::Refused { status, closes, .. } => (*status, *closes),
        _ => (Status::UnknownCommand, false),
    };
    reply::error(output, echo, status, status.text());
    if closes { Step::Close } else { Step::Done }
}
