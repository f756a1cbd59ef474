//! The loop of a connection that speaks a protocol of requests and replies: read what has arrived,
//! answer all of it, write once.
//!
//! A request that writes goes to the writer and takes the rest of the batch along; one that may
//! take long goes to the pool; one that waits is parked. Meanwhile the worker serves its other
//! connections, and what is pushed to this one is sent.

use std::{
    future::{Future, poll_fn},
    io,
    pin::pin,
    rc::Rc,
    time::Instant,
};

use tokio::io::AsyncReadExt;

use crate::{
    Limits, Mailbox,
    connection::{Connection, Phase},
    conversation::{Conversation, Pause, Run},
    mailbox::{MailboxReceiver, PushError, mailbox},
    metrics,
    outbox::Outbox,
    pause::Paused,
    placement::{Placement, RunError},
    protocol::Protocol,
    transport::Input,
    turn,
};

/// A connection ended for another reason than the client's wish.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error("the server lost the connection's state after an error of its own, see above")]
    Lost,
}

/// Serves a connection to its end. `first` is what has been read of it already; `open` makes the
/// protocol, given the mailbox through which others reach the connection.
pub(crate) async fn serve<P: Protocol>(
    placement: Placement<'_>,
    connection: &Rc<Connection>,
    input: Input,
    first: Vec<u8>,
    open: impl FnOnce(Mailbox) -> P,
) {
    let limits = &placement.worker.service.config.limits;
    let (mailbox, receiver) = mailbox(limits.pushed_bytes_max);
    let stream_loop = StreamLoop {
        placement,
        limits,
        connection,
        input,
        conversation: Some(Box::new(Conversation::new(open(mailbox), first))),
        outbox: Outbox::default(),
        mailbox: receiver,
        answered_some: false,
    };
    match stream_loop.run().await {
        Ok(()) | Err(End::Push(PushError::Killed)) => {}
        Err(End::Push(error)) => {
            metrics::add(&placement.worker.counters.connections_overrun, 1);
            let bytes_max = limits.pushed_bytes_max;
            tracing::warn!(peer = %connection.peer, bytes_max, "{error}; see limits.pushed_bytes_max");
        }
        Err(error) => tracing::debug!(peer = %connection.peer, %error, "a connection broke"),
    }
}

struct StreamLoop<'w, P: Protocol> {
    placement: Placement<'w>,
    limits: &'w Limits,
    connection: &'w Rc<Connection>,
    input: Input,
    /// `None` while it is away, on the writer or in the pool.
    conversation: Option<Box<Conversation<P>>>,
    outbox: Outbox,
    mailbox: MailboxReceiver,
    /// Whether requests were answered since input was last waited for.
    answered_some: bool,
}

impl<P: Protocol> StreamLoop<'_, P> {
    async fn run(mut self) -> Result<(), End> {
        loop {
            let run = self.take_turn().await?;
            self.answered_some |= run.requests > 0;
            let woken = self.take_mail()?;
            self.send_some()?;
            let ended = match run.pause {
                Pause::NeedsInput => self.receive().await?,
                Pause::Blocked => !woken && self.park().await?,
                Pause::Close => {
                    self.send_all().await?;
                    return Ok(());
                }
                Pause::Failed => {
                    self.placement.count_error();
                    true
                }
                Pause::Slice | Pause::NeedsWriter | Pause::NeedsPool => {
                    self.give_way().await?;
                    false
                }
            };
            if ended {
                self.send_all().await?;
                self.connection.linger().await;
                return Ok(());
            }
        }
    }

    fn conversation(&mut self) -> Result<&mut Conversation<P>, End> {
        self.conversation.as_deref_mut().ok_or(End::Lost)
    }

    /// Maximum number of reply bytes that wait for room in the socket before the client gets no more answers.
    fn unsent_max(&self) -> usize {
        let Limits { unsent_bytes_max, anonymous_request_bytes_max, .. } = *self.limits;
        match &self.conversation {
            Some(conversation) if conversation.is_anonymous() => {
                unsent_bytes_max.min(anonymous_request_bytes_max)
            }
            _ => unsent_bytes_max,
        }
    }

    /// Answers what can be answered here, and then the next request where it has to run.
    async fn take_turn(&mut self) -> Result<Run, End> {
        let (placement, buffers) = (self.placement, &self.placement.worker.buffers);
        let pause = &placement.worker.service.shared.pause;
        if pause.holds_all() {
            self.while_away(pause.until_over(Paused::All)).await?;
        }
        let mut conversation = self.conversation.take().ok_or(End::Lost)?;
        conversation.borrow_from(&mut buffers.borrow_mut());
        let mut run = turn::here(placement, &mut conversation);
        self.outbox.take(conversation.output());
        if run.pause == Pause::NeedsWriter {
            conversation.borrow_from(&mut buffers.borrow_mut());
            if let Some(written) = turn::as_writer(placement, &mut conversation) {
                self.answered_some |= run.requests > 0;
                run = written;
                self.outbox.take(conversation.output());
            }
        }
        if matches!(run.pause, Pause::NeedsWriter | Pause::NeedsPool) {
            self.answered_some |= run.requests > 0;
            conversation.borrow_from(&mut buffers.borrow_mut());
            if pause.holds_writes() {
                // It may be away for long, and the replies before it should not wait as long.
                self.send_some()?;
            }
            (conversation, run) = if run.pause == Pause::NeedsWriter {
                self.while_away(turn::on_writer(placement, conversation)).await??
            } else {
                self.while_away(turn::in_pool(placement, conversation)).await??
            };
            self.outbox.take(conversation.output());
        }
        self.conversation = Some(conversation);
        Ok(run)
    }

    /// Waits for a conversation that is away. What is pushed meanwhile is sent at once: all
    /// finished replies are before it in the outbox, and the others are not written yet.
    async fn while_away<T>(&mut self, returned: impl Future<Output = T>) -> Result<T, End> {
        self.connection.enter(Phase::Working);
        let mut returned = pin!(returned);
        let mut pushed_some = false;
        let unsent_max = self.unsent_max();
        loop {
            let unsent = self.outbox.unsent().len();
            tokio::select! {
                biased;
                back = &mut returned => return Ok(back),
                () = self.mailbox.arrived(unsent < unsent_max) => {
                    self.mailbox.take_some(self.outbox.end())?;
                    self.send_some()?;
                    pushed_some = true;
                }
                // Without mail, replies wait for those that are still to come, to be sent together.
                ready = self.connection.transport().writable(), if pushed_some && unsent > 0 => {
                    ready?;
                    self.send_some()?;
                }
            }
        }
    }

    /// Takes what was pushed after the replies, if the client takes those. Returns whether the
    /// waiting request is woken.
    fn take_mail(&mut self) -> Result<bool, End> {
        if self.outbox.unsent().len() >= self.unsent_max() {
            self.mailbox.check()?;
            return Ok(false);
        }
        Ok(self.mailbox.take_all(self.outbox.end())?)
    }

    /// Receives more input, and sends what is unsent meanwhile. Returns whether the input has ended.
    async fn receive(&mut self) -> Result<bool, End> {
        let connection = self.connection;
        let answered_some = std::mem::take(&mut self.answered_some);
        let phase = self.phase()?;
        if answered_some && phase != Phase::Reply {
            connection.enter(phase);
        }
        if connection.is_stopping() && answered_some {
            return Ok(true);
        }
        self.lend_buffers()?;
        // The server reads on while unsent replies are below their limit: a client that sends all
        // of a long pipeline before it reads the first reply would otherwise wait forever.
        let unsent_max = self.unsent_max();
        loop {
            connection.remain_in(self.phase()?);
            let unsent = self.outbox.unsent().len();
            tokio::select! {
                biased;
                ready = poll_fn(|cx| connection.transport().poll_read_ready(cx)), if unsent < unsent_max => {
                    ready?;
                    break;
                }
                () = self.mailbox.arrived(unsent < unsent_max) => {
                    self.take_mail()?;
                    self.send_some()?;
                }
                ready = connection.transport().writable(), if unsent > 0 => {
                    ready?;
                    self.send_some()?;
                }
            }
        }
        let received = self.read().await?;
        Ok(received == 0 && self.input_ended()?)
    }

    /// Waits with a blocked request until it is woken or its time is over. Returns whether the
    /// client has gone meanwhile.
    async fn park(&mut self) -> Result<bool, End> {
        let connection = self.connection;
        let deadline = self.conversation()?.deadline();
        let unsent_max = self.unsent_max();
        self.lend_buffers()?;
        loop {
            let unsent = self.outbox.unsent().len();
            connection.remain_in(if unsent > 0 { Phase::Reply } else { Phase::Working });
            // What the client sends after the request stays in the socket once it is too much.
            let reads = self.conversation()?.input_len() < self.limits.blocked_input_bytes_max;
            tokio::select! {
                biased;
                () = self.mailbox.arrived(unsent < unsent_max) => {
                    let woken = self.take_mail()?;
                    self.send_some()?;
                    if woken {
                        return Ok(false);
                    }
                }
                () = until(deadline) => {
                    self.conversation()?.time_out();
                    return Ok(false);
                }
                ready = poll_fn(|cx| connection.transport().poll_read_ready(cx)), if reads => {
                    ready?;
                    if self.read().await? == 0 {
                        return Ok(true);
                    }
                }
                ready = connection.transport().writable(), if unsent > 0 => {
                    ready?;
                    self.send_some()?;
                }
            }
        }
    }

    /// Reads what the socket has. 0 bytes mean that the input has ended.
    async fn read(&mut self) -> Result<usize, End> {
        let conversation = self.conversation.as_deref_mut().ok_or(End::Lost)?;
        conversation.borrow_from(&mut self.placement.worker.buffers.borrow_mut());
        let room = conversation.input_with_room(self.limits.buffer_bytes);
        Ok(self.input.read_buf(room).await?)
    }

    fn lend_buffers(&mut self) -> Result<(), End> {
        let buffers = &mut self.placement.worker.buffers.borrow_mut();
        self.outbox.lend_to(buffers);
        self.conversation()?.lend_to(buffers);
        Ok(())
    }

    /// Handles the end of the input. If a time limit has ended it, the client is told which.
    fn input_ended(&mut self) -> Result<bool, End> {
        let limit_ms = self.limits.request_ms;
        if self.connection.expired() == Some(Phase::Request) {
            self.placement.count_error();
            let conversation = self.conversation.as_deref_mut().ok_or(End::Lost)?;
            conversation
                .fail(&format!("the request did not come whole within {limit_ms} ms; closing"));
            self.outbox.take(conversation.output());
        }
        Ok(true)
    }

    /// What the connection waits for when it needs input.
    fn phase(&mut self) -> Result<Phase, End> {
        Ok(if !self.outbox.unsent().is_empty() {
            Phase::Reply
        } else if self.conversation()?.input_len() > 0 {
            Phase::Request
        } else if self.conversation()?.is_listening() {
            Phase::Working
        } else {
            Phase::Idle
        })
    }

    /// Gives other connections their turn, and lets the client take replies if there are too many.
    async fn give_way(&mut self) -> Result<(), End> {
        while self.outbox.unsent().len() >= self.unsent_max() {
            self.send_when_writable().await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn send_all(&mut self) -> Result<(), End> {
        self.send_some()?;
        while !self.outbox.unsent().is_empty() {
            self.send_when_writable().await?;
        }
        Ok(())
    }

    async fn send_when_writable(&mut self) -> Result<(), End> {
        self.connection.remain_in(Phase::Reply);
        self.connection.transport().writable().await?;
        self.send_some()
    }

    /// Sends as much as the socket takes now.
    fn send_some(&mut self) -> Result<(), End> {
        while !self.outbox.unsent().is_empty() {
            match self.connection.transport().try_write(self.outbox.unsent()) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(sent) => {
                    self.outbox.sent(sent);
                    if self.connection.phase() == Phase::Reply {
                        // The client takes replies: its time begins anew.
                        self.connection.enter(Phase::Reply);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Waits until the deadline; without one, forever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
