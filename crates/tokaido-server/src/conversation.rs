//! One connection without its socket: the bytes received, the protocol's state, and the replies.
//!
//! It is `Send`, and the same code runs it wherever its next request has to run: on the worker's
//! snapshot, on a pool thread, or, together with all further requests, on the writer. So nothing is
//! copied on the way, and replies come in the order of requests.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use tokaido_store::CommitError;

use crate::{
    buffers::Buffers,
    protocol::{Context, Progress, Protocol},
};

/// How much one run may do before others get their turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) requests_max: usize,
    /// No further request begins once this run has written this many bytes of replies.
    pub(crate) reply_bytes_max: usize,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All whole requests are answered.
    NeedsInput,
    /// The next request writes.
    NeedsWriter,
    /// The next request may take long.
    NeedsPool,
    /// The next request waits.
    Blocked,
    /// The slice is used up.
    Slice,
    /// The client has quit.
    Close,
    /// The input is not valid in the protocol, or the server failed; the end of the output says so.
    Failed,
}

/// What a run did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) pause: Pause,
    pub(crate) requests: usize,
}

/// One connection without its socket.
pub(crate) struct Conversation<P: Protocol> {
    protocol: P,
    /// Bytes received from the socket; the first `taken` bytes are done with.
    input: Vec<u8>,
    taken: usize,
    /// What the last run wrote.
    output: Vec<u8>,
    /// Where the last reply, or the reason why there is none, begins in the output.
    reply_start: usize,
    /// Tokens of the replies that a group of writes can still take back.
    tokens: Vec<P::Token>,
    /// Set while the next request waits, or if it has waited until now.
    wait: Option<Wait>,
}

struct Wait {
    until: Option<Instant>,
    is_over: bool,
}

impl<P: Protocol> Conversation<P> {
    pub(crate) fn new(protocol: P, input: Vec<u8>) -> Self {
        Self {
            protocol,
            input,
            taken: 0,
            output: Vec::new(),
            reply_start: 0,
            tokens: Vec::new(),
            wait: None,
        }
    }

    /// Answers whole requests in order, each in its own transaction.
    pub(crate) fn run(&mut self, context: Context<'_>, slice: Slice) -> Run {
        self.run_steps::<false>(context, slice)
    }

    /// Answers whole requests in order, in a group of writes that can still fail. Call
    /// [`group_ended`](Self::group_ended) afterwards.
    pub(crate) fn run_in_group(&mut self, context: Context<'_>, slice: Slice) -> Run {
        self.run_steps::<true>(context, slice)
    }

    /// Runs the steps. A panic ends this conversation, and nothing else.
    fn run_steps<const IN_GROUP: bool>(&mut self, context: Context<'_>, slice: Slice) -> Run {
        let steps = AssertUnwindSafe(|| self.try_steps::<IN_GROUP>(context, slice));
        catch_unwind(steps).unwrap_or_else(|_| {
            tracing::error!("a panic in a request; its connection is closed");
            self.output.truncate(self.reply_start);
            self.failed("an error in the server itself, see its log; closing")
        })
    }

    fn try_steps<const IN_GROUP: bool>(&mut self, mut context: Context<'_>, slice: Slice) -> Run {
        let mut run = Run { pause: Pause::Slice, requests: 0 };
        while run.requests < slice.requests_max && self.output.len() < slice.reply_bytes_max {
            match self.step::<IN_GROUP>(&mut context) {
                None => run.requests += 1,
                Some(pause) => {
                    run.pause = pause;
                    break;
                }
            }
        }
        run
    }

    /// Answers one request, or says why not.
    fn step<const IN_GROUP: bool>(&mut self, context: &mut Context<'_>) -> Option<Pause> {
        context.timed_out = self.wait.as_ref().is_some_and(|wait| wait.is_over);
        self.reply_start = self.output.len();
        let input = &self.input[self.taken..];
        let (consumed, token, pause) = match self.protocol.step(input, context, &mut self.output) {
            Progress::Done { consumed, token } => (consumed, token, None),
            Progress::Close { consumed, token } => (consumed, token, Some(Pause::Close)),
            Progress::NeedsInput => return Some(Pause::NeedsInput),
            Progress::NeedsWriter => return Some(Pause::NeedsWriter),
            Progress::NeedsPool => return Some(Pause::NeedsPool),
            Progress::Block { .. } if context.timed_out => {
                self.fail("a request went on waiting after its deadline; please report this");
                return Some(Pause::Failed);
            }
            Progress::Block { until } => {
                self.wait.get_or_insert(Wait { until, is_over: false });
                return Some(Pause::Blocked);
            }
            Progress::Failed => return Some(Pause::Failed),
        };
        self.taken += consumed;
        self.wait = None;
        if IN_GROUP {
            self.tokens.extend(token);
        }
        pause
    }

    /// Settles the outcome of [`run_in_group`](Self::run_in_group): after a failed group, errors
    /// replace its replies.
    pub(crate) fn group_ended(&mut self, run: &mut Run, outcome: Result<(), CommitError>) {
        let Err(error) = outcome else {
            self.tokens.clear();
            return;
        };
        let reason = match run.pause {
            Pause::Failed => self.output.split_off(self.reply_start),
            _ => Vec::new(),
        };
        self.output.clear();
        for token in self.tokens.drain(..) {
            self.protocol.refuse(token, &error, &mut self.output);
        }
        self.output.extend_from_slice(&reason);
        if run.pause == Pause::Blocked {
            // It may have waited because of a write of this group, so it has to look again.
            run.pause = Pause::Slice;
        }
    }

    /// Writes a last reply.
    pub(crate) fn fail(&mut self, reason: &str) {
        self.protocol.fail(reason, &mut self.output);
    }

    /// Writes a last reply, in place of those to requests that the run has not reached.
    pub(crate) fn failed(&mut self, reason: &str) -> Run {
        self.fail(reason);
        Run { pause: Pause::Failed, requests: 0 }
    }

    /// The bytes written, for the caller to take.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// The buffer for more input, behind what is there, with room for at least `room` bytes.
    pub(crate) fn input_with_room(&mut self, room: usize) -> &mut Vec<u8> {
        self.compact();
        // A long request doubles the buffer, so that it is moved only a few times.
        self.input.reserve(room);
        &mut self.input
    }

    /// Whether the client has yet to authenticate.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.protocol.is_anonymous()
    }

    /// What to do once the writes of the last run are durable.
    pub(crate) fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        self.protocol.when_durable()
    }

    /// Whether the client waits for messages that are pushed to it.
    pub(crate) fn is_listening(&self) -> bool {
        self.protocol.is_listening()
    }

    /// The number of bytes of input that have not been answered yet.
    pub(crate) fn input_len(&self) -> usize {
        self.input.len() - self.taken
    }

    /// The time until which the next request waits at most.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.wait.as_ref().and_then(|wait| wait.until)
    }

    /// Notes that the next request has waited until its deadline.
    pub(crate) fn time_out(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.is_over = true;
        }
    }

    /// Gives the memory of empty buffers to other conversations, before this one waits.
    pub(crate) fn lend_to(&mut self, buffers: &mut Buffers) {
        self.compact();
        if self.input.is_empty() {
            buffers.put(std::mem::take(&mut self.input));
        }
        if self.output.is_empty() {
            buffers.put(std::mem::take(&mut self.output));
        }
    }

    /// Takes memory for the buffers from other conversations that wait.
    pub(crate) fn borrow_from(&mut self, buffers: &mut Buffers) {
        buffers.fill(&mut self.input);
        buffers.fill(&mut self.output);
    }

    /// Drops input that is done with. Moves the rest forward once that costs less than it frees.
    fn compact(&mut self) {
        if self.taken == self.input.len() {
            self.input.clear();
        } else if self.taken >= self.input.len() - self.taken {
            self.input.drain(..self.taken);
        } else {
            return;
        }
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never runs.
    struct Silence;

    impl Protocol for Silence {
        type Token = ();

        fn step(&mut self, _: &[u8], _: &mut Context<'_>, _: &mut Vec<u8>) -> Progress<()> {
            Progress::NeedsInput
        }

        fn refuse(&mut self, (): (), _: &CommitError, _: &mut Vec<u8>) {}

        fn fail(&mut self, _: &str, _: &mut Vec<u8>) {}
    }

    #[test]
    fn a_conversation_that_waits_holds_no_buffers() {
        let mut conversation = Conversation::new(Silence, Vec::new());
        let mut buffers = Buffers::new(1 << 10, 2);
        conversation.borrow_from(&mut buffers);
        conversation.input_with_room(1).extend_from_slice(b"half a request");
        conversation.lend_to(&mut buffers);
        assert_eq!((conversation.output.capacity(), buffers.len()), (0, 1));
        assert_eq!(conversation.input_len(), 14);
        conversation.taken = conversation.input.len();
        conversation.lend_to(&mut buffers);
        assert_eq!((conversation.input.capacity(), buffers.len()), (0, 2));
        conversation.borrow_from(&mut buffers);
        assert_eq!(buffers.len(), 0);
    }
}
