//! The socket as hyper reads and writes it: the bytes that told the protocol come first, and the
//! connection's phase is kept for its time limits.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::tcp::OwnedReadHalf;

use crate::link::{Link, Phase};

pub(super) struct Socket {
    link: Rc<Link>,
    input: TokioIo<OwnedReadHalf>,
    /// What was read before hyper took over; the first `taken` bytes have been handed on.
    first: Vec<u8>,
    taken: usize,
}

impl Socket {
    pub(super) fn new(link: Rc<Link>, input: OwnedReadHalf, first: Vec<u8>) -> Self {
        Self { link, input: TokioIo::new(input), first, taken: 0 }
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.link.stream().poll_write_ready(cx)?.is_pending() {
                self.link.remain_in(Phase::Reply);
                return Poll::Pending;
            }
            match send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => {
                    if self.link.phase() == Phase::Reply {
                        self.link.enter(Phase::Idle);
                    }
                    return Poll::Ready(result);
                }
            }
        }
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken < self.first.len() {
            let left = &self.first[self.taken..];
            let len = left.len().min(buffer.remaining());
            buffer.put_slice(&left[..len]);
            self.taken += len;
            if self.taken == self.first.len() {
                self.first = Vec::new();
                self.taken = 0;
            }
        } else {
            ready!(Pin::new(&mut self.input).poll_read(cx, buffer))?;
        }
        if matches!(self.link.phase(), Phase::FirstLine | Phase::Idle) {
            self.link.enter(Phase::Request);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, || self.link.stream().try_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closing waits for the connection's task, which lingers if it has to.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, || self.link.stream().try_write_vectored(slices))
    }
}
