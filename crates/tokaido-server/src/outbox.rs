//! Bytes for a socket: replies and pushed messages, in the order in which they are sent.

use crate::buffers::Buffers;

/// Bytes on their way to a socket.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The first `sent` bytes have been sent.
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Takes replies, and leaves an empty buffer. They are copied only if others are unsent.
    pub(crate) fn take(&mut self, replies: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, replies);
        } else {
            self.bytes.append(replies);
        }
    }

    /// The buffer to which pushed messages are appended, after everything else.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes that have not been sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Notes that the first `len` bytes of [`unsent`](Self::unsent) have been sent.
    pub(crate) fn sent(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
        } else if self.sent >= self.bytes.len() - self.sent {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Gives the memory of an empty buffer to other connections.
    pub(crate) fn lend_to(&mut self, buffers: &mut Buffers) {
        if self.bytes.is_empty() {
            buffers.put(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_never_all_taken_do_not_pile_up() {
        let mut outbox = Outbox::default();
        for _ in 0..1000 {
            outbox.take(&mut vec![b'x'; 100]);
            outbox.sent(outbox.unsent().len() - 1);
            assert_eq!(outbox.unsent(), b"x");
        }
        assert!(outbox.bytes.len() < 1000, "{}", outbox.bytes.len());
    }

    #[test]
    fn replies_follow_what_is_unsent() {
        let mut outbox = Outbox::default();
        let mut replies = b"first".to_vec();
        outbox.take(&mut replies);
        assert!(replies.is_empty());
        outbox.sent(2);
        outbox.end().extend_from_slice(b" pushed");
        outbox.take(&mut b" second".to_vec());
        assert_eq!(outbox.unsent(), b"rst pushed second");
    }
}
