//! What a protocol of requests and replies has to define. Everything else that its connections need
//! is the same for every protocol: worker, pool and writer, groups of writes, the order of replies,
//! back-pressure, time limits, waiting requests, and pushed messages.

use std::time::Instant;

use tokaido_store::{CommitError, Snapshot, Writer};

use crate::{Procedures, Shared};

/// A protocol, with its state for one connection. It travels to the writer and back.
///
/// Messages to push to the connection, and wake-ups for a waiting request, come through its
/// [`Mailbox`](crate::Mailbox).
///
/// ```
/// use tokaido_server::{Context, Progress, Protocol};
/// use tokaido_store::CommitError;
///
/// /// Sends every line back.
/// struct Echo;
///
/// impl Protocol for Echo {
///     type Token = ();
///
///     fn step(&mut self, input: &[u8], _: &mut Context<'_>, output: &mut Vec<u8>) -> Progress<()> {
///         let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
///             return Progress::NeedsInput;
///         };
///         output.extend_from_slice(&input[..=end]);
///         Progress::Done { consumed: end + 1, token: Some(()) }
///     }
///
///     fn refuse(&mut self, (): (), error: &CommitError, output: &mut Vec<u8>) {
///         output.extend_from_slice(format!("not written: {error}\n").as_bytes());
///     }
///
///     fn fail(&mut self, reason: &str, output: &mut Vec<u8>) {
///         output.extend_from_slice(format!("goodbye: {reason}\n").as_bytes());
///     }
/// }
/// ```
pub trait Protocol: Send + 'static {
    /// What an error that replaces a reply must know about the request: its number, its operation;
    /// nothing, if the order of replies is enough.
    type Token: Send + 'static;

    /// Whether it heeds [`Context::is_brief`]. If not, its writes go to the writer's thread.
    const KNOWS_BRIEF_WRITES: bool = false;

    /// Answers the request at the head of `input`, or says why not. A write is done once it is
    /// committed; the reply is sent after the flush that makes it durable.
    ///
    /// Unless it answers the request, it must leave the store and `output` as they were: the
    /// request runs again, from its first byte, wherever it has to.
    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Self::Token>;

    /// Whether the client has yet to authenticate. Until then little is held for it.
    fn is_anonymous(&self) -> bool {
        false
    }

    /// Whether the client waits for pushed messages, so that its silence is no reason to close the
    /// connection.
    fn is_listening(&self) -> bool {
        false
    }

    /// What to do once the writes of the requests that have run are durable, such as telling others
    /// of them. It is not done if they fail. It runs on the writer, so it must be quick.
    fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        None
    }

    /// Writes the error that replaces a reply. The group of writes that the request, or one before
    /// it, belonged to was not made durable.
    fn refuse(&mut self, token: Self::Token, error: &CommitError, output: &mut Vec<u8>);

    /// Writes the last thing that the client gets before the server closes the connection for this
    /// reason.
    fn fail(&mut self, reason: &str, output: &mut Vec<u8>);
}

/// The outcome for the request at the head of the input.
#[derive(Debug)]
pub enum Progress<T> {
    /// It is answered. There is a token for each reply, and none for a request that wants no reply.
    Done {
        /// The bytes of the request.
        consumed: usize,
        /// For an error in place of the reply.
        token: Option<T>,
    },
    /// It has not arrived whole.
    NeedsInput,
    /// It must run on the writer.
    NeedsWriter,
    /// It may take long, and must run where it holds up nobody else.
    NeedsPool,
    /// It waits: it runs again after a wake-up and, with [`Context::timed_out`], at its deadline.
    /// Only the first deadline that it gives counts.
    ///
    /// A request that waits for a change of the store looks on the writer, and tells an
    /// [`Observer`](tokaido_store::Observer) there what it waits for, so that no change is missed.
    Block {
        /// The deadline, if there is one.
        until: Option<Instant>,
    },
    /// It is answered; the connection is closed once the reply is sent.
    Close {
        /// The bytes of the request.
        consumed: usize,
        /// For an error in place of the reply.
        token: Option<T>,
    },
    /// It is not valid in the protocol. The output says so; the connection is closed.
    Failed,
}

/// What requests run with: one context for each batch.
pub struct Context<'c> {
    /// The server.
    pub shared: &'c Shared,
    /// The procedures.
    pub procedures: Procedures<'c>,
    /// The data.
    pub target: Target<'c>,
    /// Whether requests that may take long run here. If not, they must ask for the pool.
    pub may_take_long: bool,
    /// Whether a worker has taken the writer's place, while its other connections wait. Then only requests that
    /// are known to be as short as a read on a worker run here; all others must ask for the writer.
    pub is_brief: bool,
    /// Whether the request has waited until its deadline, and must be answered now.
    pub timed_out: bool,
    /// When the previous request was done, if there was one; this one is taken to begin then. So a
    /// protocol that times its requests reads the clock once for each.
    pub previous_ended: Option<Instant>,
}

impl<'c> Context<'c> {
    /// The context of a new batch.
    pub fn new(
        shared: &'c Shared,
        procedures: Procedures<'c>,
        target: Target<'c>,
        may_take_long: bool,
    ) -> Self {
        Self {
            shared,
            procedures,
            target,
            may_take_long,
            is_brief: false,
            timed_out: false,
            previous_ended: None,
        }
    }
}

/// What a request runs on.
pub enum Target<'c> {
    /// A view for reading.
    Snapshot(&'c mut dyn Snapshot),
    /// The right to write, with no transaction open.
    Writer(&'c mut dyn Writer),
}
