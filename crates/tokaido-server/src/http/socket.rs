//! The socket as hyper reads and writes it: the bytes that showed the protocol come first, a
//! request that is refused does not come at all, and the connection's phase is maintained for its
//! time limits.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokaido_wire::http::Framing;
use tokio::io::{AsyncRead, ReadBuf};

use super::exchange::Exchange;
use crate::{
    connection::{Connection, Phase},
    transport::Input,
};

/// Slices with no more bytes than this are joined, so that the system gets only one.
const JOINED_LEN_MAX: usize = 1024;

pub(super) struct Socket {
    connection: Rc<Connection>,
    exchange: Rc<Exchange>,
    input: Input,
    /// Bytes read before hyper took over; the first `taken` bytes have been handed on.
    first: Vec<u8>,
    taken: usize,
    framing: Framing,
    /// No request follows, or the next one was refused: for hyper the input ends there.
    has_ended: bool,
}

impl Socket {
    pub(super) fn new(
        connection: Rc<Connection>,
        exchange: Rc<Exchange>,
        input: Input,
        first: Vec<u8>,
    ) -> Self {
        let framing = Framing::default();
        let mut socket = Self {
            connection,
            exchange,
            input,
            first: Vec::new(),
            taken: 0,
            framing,
            has_ended: false,
        };
        let len = socket.look(&first);
        socket.first = first;
        socket.first.truncate(len);
        socket
    }

    /// Takes back bytes that hyper has read and not used, to be read first.
    pub(super) fn give_back(&mut self, unused: &[u8]) {
        if !unused.is_empty() {
            self.first.splice(..self.taken, unused.iter().copied());
            self.taken = 0;
        }
    }

    /// Whether there are bytes to read that hyper has not used.
    pub(super) fn has_more(&self) -> bool {
        self.taken < self.first.len()
    }

    /// How many of these bytes hyper may have.
    fn look(&mut self, bytes: &[u8]) -> usize {
        let fit = self.framing.look(bytes, self.exchange.head_limits());
        self.exchange.come_to(self.framing.is_between_requests());
        self.has_ended = fit.is_end || fit.error.is_some();
        if let Some(error) = fit.error {
            self.exchange.refuse(error);
        }
        fit.len
    }

    /// Reads from the socket what hyper may have.
    fn poll_input(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: ReadBuf never de-initializes any of these bytes.
        let mut read = ReadBuf::uninit(unsafe { buffer.as_mut() });
        ready!(Pin::new(&mut self.input).poll_read(cx, &mut read))?;
        let len = self.look(read.filled());
        // SAFETY: this is at most what was filled, and so initialized, just now.
        unsafe { buffer.advance(len) };
        Poll::Ready(Ok(()))
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.exchange.has_unsent(true);
        loop {
            if self.connection.transport().poll_write_ready(cx)?.is_pending() {
                self.connection.remain_in(Phase::Reply);
                return Poll::Pending;
            }
            match send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => {
                    if self.connection.phase() == Phase::Reply {
                        self.connection.enter(match self.exchange.is_streaming() {
                            true => Phase::Working,
                            false => Phase::Idle,
                        });
                    }
                    if let Ok(len) = result {
                        self.exchange.wrote(len);
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
        } else if !self.has_ended {
            ready!(self.poll_input(cx, &mut buffer))?;
        }
        if matches!(self.connection.phase(), Phase::FirstLine | Phase::Idle) {
            self.connection.enter(Phase::Request);
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
        self.poll_send(cx, || self.connection.transport().try_write(bytes))
    }

    /// hyper flushes once it has nothing left to write.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.exchange.has_unsent(false);
        Poll::Ready(Ok(()))
    }

    /// Leaves closing to the connection's task, which lingers if it has to.
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
        let transport = self.connection.transport();
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        if len > JOINED_LEN_MAX {
            return self.poll_send(cx, || transport.try_write_vectored(slices));
        }
        let mut joined = [0; JOINED_LEN_MAX];
        let mut end = 0;
        for slice in slices {
            joined[end..end + slice.len()].copy_from_slice(slice);
            end += slice.len();
        }
        self.poll_send(cx, || transport.try_write(&joined[..len]))
    }
}
