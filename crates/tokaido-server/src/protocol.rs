//! What a protocol of requests and replies has to say for itself. All else that its connections
//! need is the same for every protocol: worker, pool and writer, groups of writes, the order of
//! replies, back-pressure, time limits, requests that wait, and what is pushed.

use std::time::Instant;

use tokaido_store::{CommitError, Snapshot, Writer};

use crate::{Procedures, Shared};

/// A protocol, with what it remembers of one connection. It travels to the writer and back.
///
/// What is to be pushed to the connection, or wakes a request of it that waits, comes through its
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
    /// What an error that takes the place of a reply must know of the request: its number, its
    /// operation; nothing, if the order of replies says it all.
    type Token: Send + 'static;

    /// Whether it heeds [`Context::is_brief`]. If not, its writes go to the writer's thread.
    const KNOWS_BRIEF_WRITES: bool = false;

    /// Answers the request at the head of `input`, or tells why not. A write is done once it is
    /// committed; the reply is sent after the flush that makes it durable.
    ///
    /// Unless the request is answered it must leave the store, and `output`, as they were: it runs
    /// again, from its first byte, wherever it has to.
    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Self::Token>;

    /// Whether the client has yet to say who it is. Until then little is held for it.
    fn is_anonymous(&self) -> bool {
        false
    }

    /// Whether the client waits for what is pushed to it, so that its silence is no reason to close
    /// the connection.
    fn is_listening(&self) -> bool {
        false
    }

    /// What is to be done once the writes of the requests that have run are durable, and not if they
    /// come to nothing: telling others of them. It runs on the writer, so it must be quick.
    fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        None
    }

    /// Writes the error that takes the place of a reply. The group of writes that the request, or
    /// one before it, belonged to was not made durable.
    fn refuse(&mut self, token: Self::Token, error: &CommitError, output: &mut Vec<u8>);

    /// Writes the last thing that the client gets, before the server closes the connection for the
    /// reason given.
    fn fail(&mut self, reason: &str, output: &mut Vec<u8>);
}

/// What became of the request at the head of the input.
#[derive(Debug)]
pub enum Progress<T> {
    /// It is answered. There is a token for each reply; a request that wants none has none.
    Done {
        /// The bytes of the request.
        consumed: usize,
        /// For an error in the place of the reply.
        token: Option<T>,
    },
    /// It has not come whole.
    NeedsInput,
    /// It must run on the writer.
    NeedsWriter,
    /// It may take long, and must run where it holds up nobody else.
    NeedsPool,
    /// It waits: it runs again after a wake-up and, with [`Context::timed_out`], at its deadline.
    /// The deadline of the first time counts.
    ///
    /// A request that waits for a change of the store looks on the writer, and there tells an
    /// [`Observer`](tokaido_store::Observer) what it waits for: then no change comes in between.
    Block {
        /// The deadline, if there is one.
        until: Option<Instant>,
    },
    /// It is answered; the connection is closed once the reply is sent.
    Close {
        /// The bytes of the request.
        consumed: usize,
        /// For an error in the place of the reply.
        token: Option<T>,
    },
    /// It is not the protocol. What says so is in the output; the connection is closed.
    Failed,
}

/// What requests run with: one for a whole batch.
pub struct Context<'c> {
    /// The server.
    pub shared: &'c Shared,
    /// The procedures.
    pub procedures: Procedures<'c>,
    /// The data.
    pub target: Target<'c>,
    /// Whether requests that may take long run here. If not they are to ask for the pool.
    pub may_take_long: bool,
    /// A worker has taken the writer's place, and its other connections wait: only requests that are known to be
    /// as short as a read on a worker run here. All others are to ask for the writer.
    pub is_brief: bool,
    /// The request has waited until its deadline. It is to be answered now.
    pub timed_out: bool,
    /// When the request before was done, if there was one: then this one began, for all that it matters.
    /// A protocol that times its requests so reads the clock once for each.
    pub previous_ended: Option<Instant>,
}

impl<'c> Context<'c> {
    /// For a batch that begins.
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
