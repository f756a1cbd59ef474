//! memcached lines as the stream loop sees them, with Tokyo Tyrant's answers to them.

use std::sync::Arc;

use tokaido_store::{CommitError, Kind};
use tokaido_wire::{
    lenient::integer,
    tyrant::{
        COMMANDS, Verb,
        text::{Decoded, Decoder, Mode, Request, Words},
    },
};

use super::{
    access,
    figures::Figure,
    records,
    refusal::{ErrorCode, Refusal},
    rights::Door,
    session::{Session, Stop},
    stat,
};
use crate::{
    Mailbox, Shared,
    protocol::{Context, Progress, Protocol},
};

/// These lines on one connection.
pub(crate) struct Text {
    session: Session,
    decoder: Decoder,
}

/// Stands for a reply that an error may replace; only a wanted reply has one.
#[derive(Debug)]
pub(crate) struct Token;

impl Text {
    /// A new connection.
    pub(crate) fn new(shared: &Arc<Shared>, mailbox: Mailbox) -> Self {
        Self {
            session: Session::new(shared, mailbox),
            decoder: Decoder::new(shared.limits().tyrant_request_bytes_max),
        }
    }
}

/// The command that a request counts as, also for its rights; `None` if it touches nothing.
fn verb(request: &Request<'_>) -> Option<Verb> {
    Some(match request {
        Request::Store { mode: Mode::Add, .. } => Verb::PutKeep,
        Request::Store { .. } => Verb::Put,
        Request::Get(_) => Verb::Get,
        Request::Delete { .. } => Verb::Out,
        Request::Add { .. } => Verb::AddInt,
        Request::Stats | Request::Version => Verb::Stat,
        Request::FlushAll => Verb::Vanish,
        Request::Quit | Request::TooFew | Request::Unknown => return None,
    })
}

/// Whether the client may make this request.
fn is_allowed(session: &Session, verb: Option<Verb>, request: &Request<'_>) -> bool {
    let command = verb.and_then(|verb| COMMANDS.get(verb as usize));
    command.is_none_or(|command| {
        let keys: Vec<&[u8]> = match request {
            _ if session.principal.is_unrestricted() => Vec::new(),
            Request::Get(keys) => keys.clone().collect(),
            Request::Store { key, .. } | Request::Delete { key } | Request::Add { key, .. } => {
                vec![key]
            }
            _ => Vec::new(),
        };
        access::allow_verb(&session.principal, (command.verb, command.effect), keys).is_ok()
            && !session.shared.tyrant.rights.forbid(command.verb, Door::Memcached)
    })
}

fn answer(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let line = match request {
        Request::Store { mode, key, value } => store(session, *mode, key, value, context)?,
        Request::Get(keys) => return get(session, keys, context, output),
        Request::Delete { key } => {
            session.write(context, |tx, id| records::out(tx, id, key))?;
            "DELETED"
        }
        Request::Add { key, by } => {
            let sum = add(session, key, *by, context)?;
            output.extend_from_slice(sum.to_string().as_bytes());
            ""
        }
        Request::Stats => {
            let statistics = session.read(context, false, |tx, id| Ok(tx.statistics(id)?))?;
            output.extend_from_slice(stat::lines(&session.shared, &statistics).as_bytes());
            return Ok(());
        }
        Request::FlushAll => {
            session.write(context, |tx, id| Ok(tx.clear(id)?))?;
            "OK"
        }
        Request::Version => {
            output.extend_from_slice(b"VERSION ");
            stat::TOKYO_TYRANT_VERSION
        }
        Request::TooFew => "CLIENT_ERROR error",
        Request::Quit | Request::Unknown => return Ok(()),
    };
    write_line(line, output);
    Ok(())
}

fn write_line(line: &str, output: &mut Vec<u8>) {
    output.extend_from_slice(line.as_bytes());
    output.extend_from_slice(b"\r\n");
}

fn store(
    session: &mut Session,
    mode: Mode,
    key: &[u8],
    value: &[u8],
    context: &mut Context<'_>,
) -> Result<&'static str, Stop> {
    session.write(context, |tx, id| match mode {
        Mode::Set => records::put(tx, id, key, value),
        Mode::Add => records::putkeep(tx, id, key, value),
        Mode::Replace => match tx.get(id, key)? {
            Some(_) => records::put(tx, id, key, value),
            None => Err(Refusal::missing()),
        },
        Mode::Append | Mode::Prepend => {
            let old = records::of_bytes(tx.get(id, key)?)?.ok_or_else(Refusal::missing)?;
            let (first, second) =
                if mode == Mode::Append { (old.value, value) } else { (value, old.value) };
            let whole = [first, second].concat();
            let new = old.with_value(&whole);
            Ok(tx.put(id, key, new)?)
        }
    })?;
    Ok("STORED")
}

/// The records that exist; those of other kinds are skipped.
fn get(
    session: &mut Session,
    keys: &Words<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Stop> {
    let bytes_max = session.shared.limits().tyrant_reply_bytes_max;
    let shared = Arc::clone(&session.shared);
    session.read(context, false, |tx, id| {
        let start = output.len();
        for key in keys.clone() {
            let Some(record) = tx.get(id, key)?.filter(|record| record.kind == Kind::Bytes) else {
                shared.tyrant.figures.count(Figure::GetMiss);
                continue;
            };
            output.extend_from_slice(b"VALUE ");
            output.extend_from_slice(key);
            write_line(&format!(" 0 {}", record.value.len()), output);
            output.extend_from_slice(record.value);
            write_line("", output);
            super::misc::check_reply(output.len() - start, bytes_max)?;
        }
        write_line("END", output);
        Ok(())
    })
}

/// Adds to a number in decimal digits; the sum is at least 0.
fn add(session: &mut Session, key: &[u8], by: i64, context: &mut Context<'_>) -> Result<i64, Stop> {
    session.write(context, |tx, id| {
        let old = records::of_bytes(tx.get(id, key)?)?.ok_or_else(Refusal::missing)?;
        let sum = integer(old.value).saturating_add(by).max(0);
        let digits = sum.to_string();
        let new = old.with_number(digits.as_bytes());
        tx.put(id, key, new)?;
        Ok(sum)
    })
}

/// The reply to a request that was not done.
fn refused(request: &Request<'_>, refusal: &Refusal) -> String {
    match (refusal.code, request) {
        (ErrorCode::Missing | ErrorCode::Exists, Request::Store { .. }) => "NOT_STORED".to_owned(),
        (ErrorCode::Missing, _) => "NOT_FOUND".to_owned(),
        (_, _) => format!("SERVER_ERROR {}", refusal.reason),
    }
}

impl Protocol for Text {
    type Token = Token;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Token> {
        let session = &mut self.session;
        // These lines have no passwords here, so nothing is accepted where one is needed.
        if session.principal.is_anonymous() {
            write_line("CLIENT_ERROR unauthenticated", output);
            return Progress::Failed;
        }
        let (consumed, is_quiet, request) = match self.decoder.decode(input) {
            Ok(Decoded::Incomplete) => return Progress::NeedsInput,
            Ok(Decoded::Complete { consumed, is_quiet, request }) => (consumed, is_quiet, request),
            Err(error) => {
                tracing::debug!(%error, "a connection of Tokyo Tyrant's lines is closed");
                return Progress::Failed;
            }
        };
        let (start, verb) = (output.len(), verb(&request));
        let answered = match (is_allowed(session, verb, &request), &request) {
            (true, _) => answer(session, &request, context, output),
            // As in Tokyo Tyrant, a masked get finds nothing.
            (false, Request::Get(_)) => {
                write_line("END", output);
                Ok(())
            }
            (false, _) => {
                write_line("CLIENT_ERROR forbidden", output);
                Ok(())
            }
        };
        match answered {
            Err(Stop::NeedsWriter) => {
                output.truncate(start);
                return Progress::NeedsWriter;
            }
            Err(Stop::NeedsPool) => {
                output.truncate(start);
                return Progress::NeedsPool;
            }
            Err(Stop::Waits) => {
                output.truncate(start);
                return Progress::Block { until: None };
            }
            Ok(()) => {}
            Err(Stop::Refused(refusal)) => {
                if let Some(miss) = verb.and_then(Figure::miss) {
                    session.shared.tyrant.figures.count(miss);
                }
                output.truncate(start);
                write_line(&refused(&request, &refusal), output);
            }
        }
        if let Some(verb) = verb {
            // A get is counted for each of its keys, as its misses are.
            let times = if let Request::Get(keys) = &request { keys.clone().count() } else { 1 };
            (0..times).for_each(|_| session.shared.tyrant.figures.count(Figure::Command(verb)));
        }
        if is_quiet {
            output.truncate(start);
        }
        let token = (output.len() > start).then_some(Token);
        match verb {
            Some(_) => Progress::Done { consumed, token },
            None => Progress::Close { consumed, token },
        }
    }

    fn is_anonymous(&self) -> bool {
        self.session.principal.is_anonymous()
    }

    fn refuse(&mut self, Token: Token, error: &CommitError, output: &mut Vec<u8>) {
        write_line(&format!("SERVER_ERROR {error}"), output);
    }

    fn fail(&mut self, reason: &str, output: &mut Vec<u8>) {
        write_line(&format!("SERVER_ERROR {reason}"), output);
    }
}
