//! memcached as the stream loop sees it: bytes to requests, requests to replies.

use tokaido_store::CommitError;
use tokaido_wire::memcached::{
    BinaryDecoded, BinaryDecoder, BinaryRequest, CREDENTIALS_LEN_MAX, Credentials, Decoded, Effect,
    Limits as WireLimits, ProtocolError, Request, TextDecoder,
    binary::{self, Echo, REQUEST_MAGIC, Status},
    text as reply,
};

use super::{
    Session, access,
    binary::{self as operations, Asked},
    figures::Figure,
    text,
};
use crate::{
    Limits,
    access::Denied,
    protocol::{Context, Progress, Protocol, Target},
    shared::wall_clock_us,
};

/// The memcached protocol on one connection.
pub(crate) struct Memcached {
    session: Session,
    limits: WireLimits,
    codec: Codec,
}

/// The first byte of a connection shows which of the two its client speaks.
enum Codec {
    Unknown,
    Text(TextDecoder),
    Binary(BinaryDecoder),
}

/// The outcome of a request.
pub(super) enum Step {
    Done,
    Close,
    NeedsWriter,
}

/// What an error in place of a reply must know about the request.
#[derive(Debug)]
pub(crate) enum Token {
    Text,
    Binary(Echo),
}

impl Memcached {
    pub(crate) fn new(session: Session, limits: &Limits) -> Self {
        let limits = WireLimits {
            value_len_max: limits.memcached_value_bytes_max,
            keys_line_len_max: limits.memcached_line_bytes_max,
        };
        Self { session, limits, codec: Codec::Unknown }
    }
}

/// Until a client of the text protocol has authenticated, nothing else is understood.
fn authenticate(
    session: &mut Session,
    decoder: &mut TextDecoder,
    input: &[u8],
    context: &Context<'_>,
    output: &mut Vec<u8>,
) -> Progress<Token> {
    let (consumed, line) = match decoder.decode_credentials(input) {
        Err(error) => return broken(error, output),
        Ok(Credentials::Incomplete) => return Progress::NeedsInput,
        Ok(Credentials::Other { consumed }) => (consumed, "CLIENT_ERROR unauthenticated"),
        Ok(Credentials::Unterminated { consumed }) => {
            (consumed, "CLIENT_ERROR bad command line termination")
        }
        Ok(Credentials::Given { consumed, words: None }) => {
            (consumed, "CLIENT_ERROR bad authentication token format")
        }
        Ok(Credentials::Given { consumed, words: Some((user, password)) }) => {
            session.count(Figure::AuthCmds);
            match context.shared.users().authenticate_any(user, password) {
                Some(principal) => {
                    session.principal = principal;
                    (consumed, "STORED")
                }
                None => {
                    session.count(Figure::AuthErrors);
                    (consumed, "CLIENT_ERROR authentication failure")
                }
            }
        }
    };
    reply::line(output, line);
    Progress::Done { consumed, token: Some(Token::Text) }
}

fn broken(error: ProtocolError, output: &mut Vec<u8>) -> Progress<Token> {
    reply::line(output, &format!("CLIENT_ERROR {error}"));
    Progress::Failed
}

/// The time of the batch, where it has one: reading the clock for each request would cost as much
/// as a good part of the request.
fn now_ms(context: &Context<'_>) -> u64 {
    match &context.target {
        Target::Snapshot(snapshot) => snapshot.now_ms(),
        Target::Writer(_) => wall_clock_us() / 1000,
    }
}

fn step_text(
    session: &Session,
    decoder: &mut TextDecoder,
    input: &[u8],
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Progress<Token> {
    let (consumed, command, is_quiet, request) = match decoder.decode(input) {
        Err(error) => return broken(error, output),
        Ok(Decoded::Incomplete) => return Progress::NeedsInput,
        Ok(Decoded::Skipped { consumed }) => return Progress::Done { consumed, token: None },
        Ok(Decoded::Complete { consumed, command, is_quiet, request }) => {
            (consumed, command, is_quiet, request)
        }
    };
    if let Some(command) = command
        && let Err(denied) = access::allow_text(&session.principal, command.effect, &request)
    {
        if let Request::Refused { skip, .. } = request {
            decoder.skip(skip);
        }
        reply::line(output, &format!("CLIENT_ERROR {}", denied.message()));
        return Progress::Done { consumed, token: Some(Token::Text) };
    }
    session.entry.note(now_ms(context));
    let skip = if let Request::Refused { skip, .. } = request { skip } else { 0 };
    let start = output.len();
    let step = text::answer(session, &request, is_quiet, context, output);
    let is_said = output.len() > start;
    let token = (is_said || text::is_meta(&request)).then_some(Token::Text);
    match step {
        Step::NeedsWriter => {
            output.truncate(start);
            return Progress::NeedsWriter;
        }
        Step::Close => return Progress::Close { consumed, token },
        Step::Done => {}
    }
    decoder.skip(skip);
    Progress::Done { consumed, token }
}

fn step_binary(
    session: &mut Session,
    decoder: &mut BinaryDecoder,
    value_len_max: usize,
    input: &[u8],
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Progress<Token> {
    let (consumed, echo, operation, request) = match decoder.decode(input, value_len_max) {
        Err(error) => {
            binary::error(output, Echo::default(), Status::Invalid, &error.to_string());
            return Progress::Failed;
        }
        Ok(BinaryDecoded::Incomplete) => return Progress::NeedsInput,
        Ok(BinaryDecoded::Skipped { consumed }) => return Progress::Done { consumed, token: None },
        Ok(BinaryDecoded::Complete { consumed, echo, operation, request }) => {
            (consumed, echo, operation, request)
        }
    };
    let token = Some(Token::Binary(echo));
    // A client that must authenticate is not told which operations exist, either.
    let effect = operation.map_or(Effect::Session, |operation| operation.effect);
    match access::allow_binary(&session.principal, effect, &request) {
        Ok(()) => {}
        Err(Denied::Unauthenticated) => {
            let status = Status::AuthError;
            binary::error(output, echo, status, status.text());
            return Progress::Close { consumed, token };
        }
        Err(denied) => {
            if let BinaryRequest::Refused { skip, .. } = request {
                decoder.skip(skip);
            }
            binary::error(output, echo, Status::AuthError, &denied.message());
            return Progress::Done { consumed, token };
        }
    }
    session.entry.note(now_ms(context));
    let skip = if let BinaryRequest::Refused { skip, .. } = request { skip } else { 0 };
    let start = output.len();
    let step = match operation {
        Some(operation) => {
            let asked = Asked { operation, echo, request: &request };
            operations::answer(session, &asked, context, output)
        }
        None => operations::refuse_unknown(echo, &request, output),
    };
    match step {
        Step::NeedsWriter => {
            output.truncate(start);
            return Progress::NeedsWriter;
        }
        Step::Close => return Progress::Close { consumed, token },
        Step::Done => {}
    }
    decoder.skip(skip);
    // A quiet request that has succeeded still gets a reply if it is not made durable.
    Progress::Done { consumed, token }
}

impl Protocol for Memcached {
    type Token = Token;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Token> {
        let start = output.len();
        let is_anonymous = self.is_anonymous();
        if let (Codec::Unknown, Some(first)) = (&self.codec, input.first()) {
            self.codec = match *first {
                REQUEST_MAGIC => Codec::Binary(BinaryDecoder::default()),
                _ => Codec::Text(TextDecoder::new(self.limits)),
            };
        }
        let session = &mut self.session;
        let progress = match &mut self.codec {
            Codec::Unknown => Progress::NeedsInput,
            Codec::Text(decoder) if is_anonymous => {
                authenticate(session, decoder, input, context, output)
            }
            Codec::Text(decoder) => step_text(session, decoder, input, context, output),
            Codec::Binary(decoder) => {
                let max = self.limits.value_len_max;
                let max = if is_anonymous { CREDENTIALS_LEN_MAX.min(max) } else { max };
                step_binary(session, decoder, max, input, context, output)
            }
        };
        if let Progress::Done { consumed, .. } | Progress::Close { consumed, .. } = progress {
            let figures = self.session.figures();
            figures.add(Figure::BytesRead, consumed as u64);
            figures.add(Figure::BytesWritten, (output.len() - start) as u64);
        }
        progress
    }

    fn is_anonymous(&self) -> bool {
        self.session.principal.is_anonymous()
    }

    fn refuse(&mut self, token: Token, error: &CommitError, output: &mut Vec<u8>) {
        match token {
            Token::Text => reply::line(output, &format!("SERVER_ERROR {error}")),
            Token::Binary(echo) => {
                binary::error(output, echo, Status::Internal, &error.to_string());
            }
        }
    }

    fn fail(&mut self, reason: &str, output: &mut Vec<u8>) {
        match self.codec {
            Codec::Binary(_) => binary::error(output, Echo::default(), Status::Internal, reason),
            _ => reply::line(output, &format!("SERVER_ERROR {reason}")),
        }
    }
}

/// The only reply on a connection that is not served. `first` is what has been received.
pub(crate) fn refusal(reason: &str, first: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    if first.first() == Some(&REQUEST_MAGIC) {
        binary::error(&mut message, Echo::default(), Status::Internal, reason);
    } else {
        reply::line(&mut message, &format!("SERVER_ERROR {reason}"));
    }
    message
}
