//! The Redis protocol for the stream loop: turns bytes into requests, and requests into replies.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokaido_store::CommitError;
use tokaido_wire::resp::{Decoded, ProtocolError, ReplyWriter, RequestDecoder};

use super::{Session, Step, execute};
use crate::{
    Limits,
    protocol::{Context, Progress, Protocol, Target},
    shared::wall_clock_us,
};

/// The start of an inline command that is really a line of HTTP. If a page makes a browser send a
/// request to this server, one of these comes before anything that the page controls.
const HTTP_NAMES: [&[u8]; 2] = [b"post", b"host:"];

/// Minimum time between two log lines about that.
const HTTP_LOGGED_US_MIN: u64 = 60_000_000;

/// The Redis protocol on one connection.
pub(crate) struct Redis {
    session: Session,
    decoder: RequestDecoder,
    /// Whether the decoder has the limits for clients that have not authenticated.
    is_confined: bool,
}

impl Redis {
    pub(crate) fn new(session: Session, limits: &Limits) -> Self {
        let is_confined = session.principal.is_anonymous();
        let decoder = RequestDecoder::new(limits_of(is_confined, limits));
        Self { session, decoder, is_confined }
    }

    /// The error for a client that sends something other than requests.
    fn wrong_request(&self, error: ProtocolError, limits: &Limits) -> String {
        use ProtocolError::{BulkLength, MultibulkLength, TooBigInline, TooBigRequest};
        let is_of_size =
            matches!(error, BulkLength | MultibulkLength | TooBigInline | TooBigRequest);
        if is_of_size && self.is_anonymous() {
            let max = limits.anonymous_request_bytes_max;
            return format!(
                "Protocol error: {error}; before AUTH a request has at most {max} bytes"
            );
        }
        format!("Protocol error: {error}")
    }

    fn error(&self, message: &str, output: &mut Vec<u8>) {
        ReplyWriter::new(output, self.session.version()).error(message);
    }
}

impl Protocol for Redis {
    /// Only their order distinguishes replies.
    type Token = ();

    const KNOWS_BRIEF_WRITES: bool = true;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<()> {
        let limits = context.shared.limits();
        if self.is_confined != self.is_anonymous() {
            self.is_confined = self.is_anonymous();
            self.decoder.limit(limits_of(self.is_confined, limits));
        }
        let consumed = match self.decoder.decode(input) {
            Ok(Decoded::Complete { consumed }) => consumed,
            Ok(Decoded::Incomplete) => return Progress::NeedsInput,
            Err(error) => {
                self.fail(&self.wrong_request(error, limits), output);
                return Progress::Failed;
            }
        };
        let request = self.decoder.request(input);
        if HTTP_NAMES.iter().any(|name| request.name().eq_ignore_ascii_case(name)) {
            log_http(&self.session);
            self.fail("POST and Host: are of HTTP, not of Redis; closing", output);
            return Progress::Failed;
        }
        if matches!(context.target, Target::Writer(_)) && context.shared.pause.holds_writes() {
            // The preceding request has paused the writer.
            return Progress::NeedsWriter;
        }
        let start = output.len();
        let mut reply = ReplyWriter::new(output, self.session.version());
        let step = execute(&mut self.session, request, context, &mut reply);
        if !matches!(context.target, Target::Writer(_)) {
            self.session.publish();
        }
        // CLIENT REPLY suppresses replies.
        let token = (output.len() > start).then_some(());
        match step {
            Step::Done => Progress::Done { consumed, token },
            Step::Close => Progress::Close { consumed, token },
            Step::Block { until } => Progress::Block { until },
            Step::NeedsWriter => Progress::NeedsWriter,
            Step::NeedsPool => Progress::NeedsPool,
        }
    }

    fn is_anonymous(&self) -> bool {
        self.session.principal.is_anonymous()
    }

    fn is_listening(&self) -> bool {
        let Session { subscriptions, monitoring, tracking, .. } = &self.session;
        subscriptions.has_any() || monitoring.is_some() || tracking.is_some()
    }

    /// Publishes only then, so that receivers of a message find what was written before it.
    fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        self.session.publish_later()
    }

    fn refuse(&mut self, (): (), error: &CommitError, output: &mut Vec<u8>) {
        self.error(&format!("ERR {error}"), output);
        // Elements that this request may have taken are back.
        self.session.wake_waiters();
    }

    fn fail(&mut self, reason: &str, output: &mut Vec<u8>) {
        self.error(&format!("ERR {reason}"), output);
    }
}

fn limits_of(is_confined: bool, limits: &Limits) -> tokaido_wire::resp::Limits {
    if is_confined { limits.anonymous_request() } else { limits.request() }
}

/// Logs a possible attack on this server through a browser: the operator has to hear of it, but an
/// attacker must not be able to fill the log.
fn log_http(session: &Session) {
    static LOGGED_US: AtomicU64 = AtomicU64::new(0);
    let now_us = wall_clock_us();
    if now_us.saturating_sub(LOGGED_US.load(Relaxed)) < HTTP_LOGGED_US_MIN {
        return;
    }
    LOGGED_US.store(now_us, Relaxed);
    let peer = &session.client().peer;
    tracing::warn!(
        peer,
        "closed a connection that sent POST or Host: as a Redis command; is a page in a browser made to send commands?"
    );
}
