//! Aggregates whose elements are written first, because their number is not known in advance.

use std::ops::ControlFlow;

use super::reply::Reply;

/// The elements of an aggregate written so far.
pub(super) struct Written<'r> {
    reply: &'r mut dyn Reply,
    start: usize,
    len: usize,
}

impl<'r> Written<'r> {
    pub(super) fn begin(reply: &'r mut dyn Reply) -> Self {
        Self { start: reply.mark(), reply, len: 0 }
    }

    /// Writes one more element. Returns `Break` if the reply has reached its limit.
    pub(super) fn element(&mut self, write: impl FnOnce(&mut dyn Reply)) -> ControlFlow<()> {
        self.len += 1;
        write(self.reply);
        self.reply.flow()
    }

    /// Writes one more element, a byte string.
    pub(super) fn bulk(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.element(|reply| reply.bulk(bytes))
    }

    /// Puts the header before the elements. `head` gets their number.
    pub(super) fn end(self, head: impl FnOnce(&mut dyn Reply, usize)) {
        let end = self.reply.mark();
        head(self.reply, self.len);
        self.reply.move_before(self.start, end);
    }

    /// Ends a reply of at most one element, not an aggregate: writes null if there is none.
    pub(super) fn end_as_one(self) {
        if self.len == 0 {
            self.reply.null();
        }
    }
}
