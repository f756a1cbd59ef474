//! One Redis connection without its socket: the bytes that came, the session, the replies that go.
//!
//! It is `Send`, and the same code runs it wherever its next request has to run: on the worker's
//! snapshot, on a thread of the pool, or, all further requests with it, on the writer. So nothing
//! is copied on the way, and the order of replies is the order of requests.

use tokaido_wire::resp::{Decoded, Limits, ReplyWriter, RequestDecoder};

use crate::redis::{Context, Session, Step, execute};

/// How much one run may do before others get their turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) requests_max: usize,
    /// No further request begins once this run has written so many bytes of replies.
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
    /// The slice is used up.
    Slice,
    /// The client said goodbye.
    Close,
    /// What came is not the protocol, or the server failed: the last reply says so.
    Failed,
}

/// What a run did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) pause: Pause,
    pub(crate) requests: usize,
    /// Replies written; some requests get none.
    replies: usize,
    /// Where the first of them begins.
    replies_start: usize,
}

/// One Redis connection without its socket.
pub(crate) struct Conversation {
    session: Session,
    decoder: RequestDecoder,
    /// What came from the socket; the first `taken` bytes are done with.
    input: Vec<u8>,
    taken: usize,
    /// What goes to the socket; the first `sent` bytes are there.
    output: Vec<u8>,
    sent: usize,
}

impl Conversation {
    pub(crate) fn new(session: Session, limits: Limits, input: Vec<u8>) -> Self {
        let decoder = RequestDecoder::new(limits);
        Self { session, decoder, input, taken: 0, output: Vec::new(), sent: 0 }
    }

    /// Answers whole requests in order, each in its own transaction.
    pub(crate) fn run(&mut self, mut context: Context<'_>, slice: Slice) -> Ran {
        let replies_start = self.output.len();
        let mut ran = Ran { pause: Pause::Slice, requests: 0, replies: 0, replies_start };
        while ran.requests < slice.requests_max
            && self.output.len() - replies_start < slice.reply_bytes_max
        {
            let before = self.output.len();
            let pause = self.step(&mut context);
            ran.replies += usize::from(self.output.len() > before);
            match pause {
                None => ran.requests += 1,
                Some(pause) => {
                    ran.pause = pause;
                    break;
                }
            }
        }
        ran
    }

    /// Answers one request, or tells why not.
    fn step(&mut self, context: &mut Context<'_>) -> Option<Pause> {
        let input = &self.input[self.taken..];
        let consumed = match self.decoder.decode(input) {
            Ok(Decoded::Complete { consumed }) => consumed,
            Ok(Decoded::Incomplete) => return Some(Pause::NeedsInput),
            Err(error) => {
                self.fail(&format!("ERR Protocol error: {error}"));
                return Some(Pause::Failed);
            }
        };
        let request = self.decoder.request(input);
        let mut reply = ReplyWriter::new(&mut self.output, self.session.version());
        match execute(&mut self.session, request, context, &mut reply) {
            Step::Done => {
                self.taken += consumed;
                None
            }
            Step::NeedsWriter => Some(Pause::NeedsWriter),
            Step::NeedsPool => Some(Pause::NeedsPool),
            Step::Close => {
                self.taken += consumed;
                Some(Pause::Close)
            }
        }
    }

    /// Writes a last reply.
    pub(crate) fn fail(&mut self, message: &str) {
        ReplyWriter::new(&mut self.output, self.session.version()).error(message);
    }

    /// Writes a last reply in the place of a run.
    pub(crate) fn failed(&mut self, message: &str) -> Ran {
        let replies_start = self.output.len();
        self.fail(message);
        Ran { pause: Pause::Failed, requests: 0, replies: 1, replies_start }
    }

    /// Puts an error in the place of every reply of a run.
    pub(crate) fn retract(&mut self, ran: Ran, message: &str) {
        self.output.truncate(ran.replies_start);
        for _ in 0..ran.replies {
            self.fail(message);
        }
    }

    /// Where more input goes, behind what is there. There is room for at least `room` bytes.
    pub(crate) fn input_with_room(&mut self, room: usize) -> &mut Vec<u8> {
        self.compact();
        // A long request doubles the buffer, so that it is moved only a few times.
        self.input.reserve(room);
        &mut self.input
    }

    /// Whether part of a request has come.
    pub(crate) fn has_input(&self) -> bool {
        self.taken < self.input.len()
    }

    /// What has not gone to the socket.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Notes that the first `len` bytes of [`unsent`](Self::unsent) have gone.
    pub(crate) fn sent(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
        } else if self.sent >= self.output.len() - self.sent {
            self.output.drain(..self.sent);
            self.sent = 0;
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

    /// Takes memory for buffers from others that wait.
    pub(crate) fn borrow_from(&mut self, buffers: &mut Buffers) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.capacity() == 0 {
                *buffer = buffers.take();
            }
        }
    }

    /// Drops what is done with. Moves the rest to the front once that costs less than it frees.
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

/// Buffers that nobody uses now. A connection that waits for its client holds none.
pub(crate) struct Buffers {
    kept: Vec<Vec<u8>>,
    /// Most buffers that are kept.
    kept_max: usize,
    /// Bytes of a new buffer.
    bytes: usize,
}

impl Buffers {
    /// A buffer that has grown to more than so many new ones is not kept.
    const GROWTH_MAX: usize = 4;

    pub(crate) fn new(bytes: usize, kept_max: usize) -> Self {
        Self { kept: Vec::new(), kept_max, bytes }
    }

    fn take(&mut self) -> Vec<u8> {
        self.kept.pop().unwrap_or_else(|| Vec::with_capacity(self.bytes))
    }

    fn put(&mut self, buffer: Vec<u8>) {
        let kept = self.bytes..=Self::GROWTH_MAX * self.bytes;
        if kept.contains(&buffer.capacity()) && self.kept.len() < self.kept_max {
            self.kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokaido_store::{Store, tree};

    use super::*;
    use crate::{Shared, SharedOptions};

    fn conversation() -> (Conversation, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = tree::open(directory.path(), tree::Options::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let shared = Arc::new(Shared::new(store, SharedOptions::default()).expect("a database"));
        let session = Session::new(&shared, "peer", "local");
        (Conversation::new(session, Limits::default(), Vec::new()), directory)
    }

    #[test]
    fn replies_that_are_never_all_taken_do_not_pile_up() {
        let (mut conversation, _directory) = conversation();
        for _ in 0..1000 {
            conversation.output.extend_from_slice(&[b'x'; 100]);
            conversation.sent(conversation.unsent().len() - 1);
            assert_eq!(conversation.unsent(), b"x");
        }
        assert!(conversation.output.len() < 1000, "{}", conversation.output.len());
    }

    #[test]
    fn a_conversation_that_waits_holds_no_buffers() {
        let (mut conversation, _directory) = conversation();
        let mut buffers = Buffers::new(1 << 10, 2);
        conversation.borrow_from(&mut buffers);
        conversation.input_with_room(1).extend_from_slice(b"half a request");
        conversation.lend_to(&mut buffers);
        assert_eq!((conversation.output.capacity(), buffers.kept.len()), (0, 1));
        assert!(conversation.has_input());
        conversation.taken = conversation.input.len();
        conversation.lend_to(&mut buffers);
        assert_eq!((conversation.input.capacity(), buffers.kept.len()), (0, 2));
        conversation.borrow_from(&mut buffers);
        assert!(buffers.kept.is_empty());
    }
}
