//! The binary protocol as the stream loop sees it: bytes to requests, requests to replies.

use std::sync::Arc;

use tokaido_store::CommitError;
use tokaido_wire::tyrant::{
    Verb,
    binary::{Decoded, Decoder, FAILED},
};

use super::{
    commands,
    figures::Figure,
    refusal::ErrorCode,
    session::{Session, Stop},
};
use crate::{
    Mailbox, Shared,
    protocol::{Context, Progress, Protocol},
};

/// The binary protocol on one connection.
pub(crate) struct Binary {
    session: Session,
    decoder: Decoder,
}

/// Stands for a reply that an error may replace; only a wanted reply has one.
#[derive(Debug)]
pub(crate) struct Token(Verb);

impl Binary {
    /// A new connection.
    pub(crate) fn new(shared: &Arc<Shared>, mailbox: Mailbox) -> Self {
        Self {
            session: Session::new(shared, mailbox),
            decoder: Decoder::new(shared.limits().tyrant_request_bytes_max),
        }
    }
}

/// The reply to a request that failed: its code, and for `misc` an empty list.
fn write_failed(verb: Verb, output: &mut Vec<u8>) {
    output.push(FAILED);
    if verb == Verb::Misc {
        output.extend_from_slice(&0_u32.to_be_bytes());
    }
}

impl Protocol for Binary {
    type Token = Token;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Token> {
        // The protocol has no passwords, so nothing is accepted where one is needed.
        if self.session.principal.is_anonymous() {
            output.push(FAILED);
            return Progress::Failed;
        }
        let (consumed, request) = match self.decoder.decode(input) {
            Ok(Decoded::Incomplete) => return Progress::NeedsInput,
            Ok(Decoded::Complete { consumed, request }) => (consumed, request),
            Err(error) => {
                tracing::debug!(%error, "a connection of Tokyo Tyrant's protocol is closed");
                return Progress::Failed;
            }
        };
        let (session, start) = (&mut self.session, output.len());
        let (name, verb) = (request.command.name, request.command.verb);
        let answered = match commands::check(session, &request) {
            Ok(()) => commands::answer(session, &request, context, output),
            Err(refusal) => Err(Stop::Refused(refusal)),
        };
        let figures = &session.shared.tyrant.figures;
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
            // The client is told no more than that; the log is.
            Err(Stop::Refused(refusal)) => {
                match refusal.code {
                    ErrorCode::Missing | ErrorCode::Exists => {}
                    _ => tracing::debug!(reason = refusal.reason, "{name} was refused"),
                }
                if let Some(miss) = Figure::miss(verb) {
                    figures.count(miss);
                }
                session.error = refusal.code;
                output.truncate(start);
                write_failed(verb, output);
            }
        }
        figures.count(Figure::Command(verb));
        match verb {
            Verb::PutNr => {
                output.truncate(start);
                Progress::Done { consumed, token: None }
            }
            Verb::Repl => {
                output.truncate(start);
                Progress::Close { consumed, token: None }
            }
            _ => Progress::Done { consumed, token: Some(Token(verb)) },
        }
    }

    fn is_anonymous(&self) -> bool {
        self.session.principal.is_anonymous()
    }

    fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        self.session.when_durable()
    }

    fn refuse(&mut self, Token(verb): Token, _: &CommitError, output: &mut Vec<u8>) {
        self.session.error = ErrorCode::Other;
        write_failed(verb, output);
    }

    fn fail(&mut self, _: &str, output: &mut Vec<u8>) {
        output.push(FAILED);
    }
}
