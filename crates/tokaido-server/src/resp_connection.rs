//! The loop of a Redis connection: read what came, answer all of it, write once.
//!
//! A request that writes goes to the writer and takes the rest of the batch along; one that may
//! take long goes to the pool. The worker serves its other connections meanwhile.

use std::{future::poll_fn, io, rc::Rc, sync::Arc};

use tokaido_store::CommitError;
use tokio::{io::AsyncReadExt, net::tcp::OwnedReadHalf, sync::oneshot};

use crate::{
    Limits, Shared,
    conversation::{Conversation, Pause, Ran, Slice},
    link::{Link, Phase},
    metrics,
    pool::{PoolContext, PoolError},
    redis::{Context, Session, Target},
    worker::Worker,
    writer::{Job, WriterContext},
};

/// What a thread of the pool does for one connection: the request that may take long, no more.
const POOL_SLICE: Slice = Slice { requests_max: 1, reply_bytes_max: usize::MAX };

/// A connection ended other than by the client's wish.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error("the server lost the connection's state after an error of its own, see above")]
    Lost,
}

/// Serves a connection to its end. `first` is what was read of it already.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    link: &Rc<Link>,
    input: OwnedReadHalf,
    first: Vec<u8>,
) {
    let shared = &worker.service.shared;
    let local = link.stream().local_addr().map(|a| a.to_string()).unwrap_or_default();
    let session = Session::new(shared, &link.peer.to_string(), &local);
    let limits = &worker.service.config.limits;
    let conversation = Some(Box::new(Conversation::new(session, limits.request(), first)));
    let connection = Connection { worker, limits, link, input, conversation, answered_some: false };
    if let Err(error) = connection.run().await {
        tracing::debug!(peer = %link.peer, %error, "a connection broke");
    }
}

struct Connection<'w> {
    worker: &'w Rc<Worker>,
    limits: &'w Limits,
    link: &'w Rc<Link>,
    input: OwnedReadHalf,
    /// `None` while it is away, on the writer or in the pool.
    conversation: Option<Box<Conversation>>,
    /// Requests were answered since input was last waited for.
    answered_some: bool,
}

impl Connection<'_> {
    async fn run(mut self) -> Result<(), End> {
        loop {
            let ran = self.run_here()?;
            metrics::add(&self.worker.counters.resp.local, ran.requests as u64);
            self.answered_some |= ran.requests > 0;
            let ran = match ran.pause {
                Pause::NeedsWriter => self.run_on_writer().await?,
                Pause::NeedsPool => self.run_on_pool().await?,
                _ => ran,
            };
            self.answered_some |= ran.requests > 0;
            self.send_some()?;
            let ended = match ran.pause {
                Pause::NeedsInput => self.receive().await?,
                Pause::Close => {
                    self.send_all().await?;
                    return Ok(());
                }
                Pause::Failed => {
                    metrics::add(&self.worker.counters.resp.errors, 1);
                    true
                }
                Pause::Slice | Pause::NeedsWriter | Pause::NeedsPool => {
                    self.give_way().await?;
                    false
                }
            };
            if ended {
                self.send_all().await?;
                self.link.linger().await;
                return Ok(());
            }
        }
    }

    fn conversation(&mut self) -> Result<&mut Conversation, End> {
        self.conversation.as_deref_mut().ok_or(End::Lost)
    }

    /// Answers what can be answered on the worker's own snapshot, before the worker looks at the
    /// next connection.
    fn run_here(&mut self) -> Result<Ran, End> {
        let worker = self.worker;
        let slice = Slice {
            requests_max: self.limits.slice_requests_max,
            reply_bytes_max: self.limits.slice_reply_bytes_max,
        };
        let conversation = self.conversation()?;
        conversation.borrow_from(&mut worker.buffers.borrow_mut());
        let shared = &worker.service.shared;
        worker
            .read(|snapshot, vm| {
                let target = Target::Snapshot(snapshot);
                let context = Context { shared, vm, target, may_take_long: false };
                conversation.run(context, slice)
            })
            .or_else(|error| Ok(conversation.failed(&format!("ERR {error}; closing"))))
    }

    /// Has the writer answer the next request and those behind it.
    async fn run_on_writer(&mut self) -> Result<Ran, End> {
        let conversation = self.conversation.take().ok_or(End::Lost)?;
        let (answer, answered) = oneshot::channel();
        self.link.enter(Phase::Working);
        let shared = self.worker.service.shared.clone();
        let slice = Slice {
            requests_max: self.limits.writer_slice_requests_max,
            reply_bytes_max: self.limits.writer_slice_reply_bytes_max,
        };
        let batch = Batch { conversation, shared, slice, ran: None, answer };
        self.worker.writer.submit(Box::new(batch)).await;
        let (conversation, ran) = answered.await.map_err(|_| End::Lost)?;
        metrics::add(&self.worker.counters.resp.writer, ran.requests as u64);
        self.conversation = Some(conversation);
        Ok(ran)
    }

    /// Has a thread of the pool answer the next request and those behind it.
    async fn run_on_pool(&mut self) -> Result<Ran, End> {
        let mut conversation = self.conversation.take().ok_or(End::Lost)?;
        self.link.enter(Phase::Working);
        let shared = self.worker.service.shared.clone();
        let (conversation, ran) = self
            .worker
            .pool
            .call(move |context| {
                let PoolContext { snapshot, vm } = context;
                let target = Target::Snapshot(&mut **snapshot);
                let context = Context { shared: &shared, vm, target, may_take_long: true };
                let ran = conversation.run(context, POOL_SLICE);
                (conversation, ran)
            })
            .await?;
        metrics::add(&self.worker.counters.resp.pool, ran.requests as u64);
        self.conversation = Some(conversation);
        Ok(ran)
    }

    /// Receives more input, and sends what is unsent meanwhile. Tells whether the input has ended.
    async fn receive(&mut self) -> Result<bool, End> {
        let (worker, link) = (self.worker, self.link);
        let answered_some = std::mem::take(&mut self.answered_some);
        let conversation = self.conversation.as_deref_mut().ok_or(End::Lost)?;
        let phase = phase_of(conversation);
        if answered_some && phase != Phase::Reply {
            link.enter(phase);
        }
        if link.is_stopping() && answered_some {
            return Ok(true);
        }
        conversation.lend_to(&mut worker.buffers.borrow_mut());
        // Below its limit of untaken replies the server reads on: a client that sends all of a long
        // pipeline before it reads the first reply would otherwise wait for ever.
        let unsent_max = self.limits.unsent_bytes_max;
        loop {
            link.remain_in(phase_of(conversation));
            let unsent = conversation.unsent().len();
            tokio::select! {
                biased;
                ready = poll_fn(|cx| link.stream().poll_read_ready(cx)), if unsent < unsent_max => {
                    ready?;
                    break;
                }
                ready = link.stream().writable(), if unsent > 0 => {
                    ready?;
                    send_some(link, conversation)?;
                }
            }
        }
        conversation.borrow_from(&mut worker.buffers.borrow_mut());
        let room = conversation.input_with_room(self.limits.buffer_bytes);
        let received = self.input.read_buf(room).await?;
        Ok(received == 0 && self.input_ended()?)
    }

    /// The input has ended. If that was the work of a time limit, the client is told which.
    fn input_ended(&mut self) -> Result<bool, End> {
        let limit_ms = self.limits.request_ms;
        if self.link.expired() == Some(Phase::Request) {
            metrics::add(&self.worker.counters.resp.errors, 1);
            self.conversation()?
                .fail(&format!("ERR the request did not come whole within {limit_ms} ms; closing"));
        }
        Ok(true)
    }

    /// Lets other connections have their turn, and the client take replies if there are too many.
    async fn give_way(&mut self) -> Result<(), End> {
        let conversation = self.conversation.as_deref_mut().ok_or(End::Lost)?;
        while conversation.unsent().len() >= self.limits.unsent_bytes_max {
            self.link.remain_in(Phase::Reply);
            self.link.stream().writable().await?;
            send_some(self.link, conversation)?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    fn send_some(&mut self) -> Result<(), End> {
        let link = self.link;
        send_some(link, self.conversation()?)
    }

    async fn send_all(&mut self) -> Result<(), End> {
        let link = self.link;
        let conversation = self.conversation()?;
        send_some(link, conversation)?;
        while !conversation.unsent().is_empty() {
            link.remain_in(Phase::Reply);
            link.stream().writable().await?;
            send_some(link, conversation)?;
        }
        Ok(())
    }
}

/// What a conversation waits for when it needs input.
fn phase_of(conversation: &Conversation) -> Phase {
    if !conversation.unsent().is_empty() {
        Phase::Reply
    } else if conversation.has_input() {
        Phase::Request
    } else {
        Phase::Idle
    }
}

/// Sends as much as the socket takes now.
fn send_some(link: &Link, conversation: &mut Conversation) -> Result<(), End> {
    while !conversation.unsent().is_empty() {
        match link.stream().try_write(conversation.unsent()) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            Ok(sent) => {
                conversation.sent(sent);
                if link.phase() == Phase::Reply {
                    // The client takes replies: its time begins anew.
                    link.enter(Phase::Reply);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A conversation on its way to the writer and back.
struct Batch {
    conversation: Box<Conversation>,
    shared: Arc<Shared>,
    /// What one connection may have the writer do within one group.
    slice: Slice,
    ran: Option<Ran>,
    answer: oneshot::Sender<(Box<Conversation>, Ran)>,
}

impl Job for Batch {
    fn run(&mut self, context: &mut WriterContext) {
        let WriterContext { writer, vm } = context;
        let target = Target::Writer(writer);
        let context = Context { shared: &self.shared, vm, target, may_take_long: false };
        self.ran = Some(self.conversation.run(context, self.slice));
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), CommitError>) {
        let ran = match (self.ran, outcome) {
            (Some(ran), Ok(())) => ran,
            (Some(ran), Err(error)) => {
                self.conversation.retract(ran, &format!("ERR {error}"));
                ran
            }
            (None, _) => self.conversation.failed("ERR an error in the server itself; closing"),
        };
        // The worker may have given up on the connection; then nobody waits for the replies.
        let _ = self.answer.send((self.conversation, ran));
    }
}

#[cfg(test)]
mod tests {
    use tokaido_script::{Sources, Vm};
    use tokaido_store::{Store, tree};

    use super::*;
    use crate::{SharedOptions, writer::GroupWriter};

    const MANY: Slice = Slice { requests_max: 100, reply_bytes_max: usize::MAX };

    /// What the client gets after a batch whose group ended in `outcome`.
    fn replies_of(input: &str, outcome: Result<(), CommitError>) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let store = tree::open(directory.path(), tree::Options::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let limits = tokaido_script::Limits::default();
        let (vm, _) = Vm::new(&store, &Sources::default(), limits).expect("a VM");
        let writer = GroupWriter::new(store.writer().expect("a writer"));
        let shared = Arc::new(Shared::new(store, SharedOptions::default()).expect("a database"));
        let session = Session::new(&shared, "peer", "local");
        let mut conversation =
            Box::new(Conversation::new(session, Limits::default().request(), input.into()));
        // The first request was answered before the writer came into it.
        let mut context = WriterContext { writer, vm };
        let target = Target::Writer(&mut context.writer);
        let on_worker =
            Context { shared: &shared, vm: &mut context.vm, target, may_take_long: false };
        conversation.run(on_worker, POOL_SLICE);
        let (answer, mut answered) = oneshot::channel();
        let mut batch = Box::new(Batch { conversation, shared, slice: MANY, ran: None, answer });
        batch.run(&mut context);
        batch.finish(outcome);
        let (conversation, ran) = answered.try_recv().expect("it was answered");
        assert_eq!(ran.pause, Pause::NeedsInput);
        String::from_utf8(conversation.unsent().to_vec()).expect("text")
    }

    #[test]
    fn replies_to_what_was_not_committed_become_errors() {
        let input = "ECHO first\r\nSET a 1\r\nGET a\r\nCLIENT REPLY SKIP\r\nPING\r\nINCR a\r\n";
        let first = "$5\r\nfirst\r\n";
        assert_eq!(replies_of(input, Ok(())), format!("{first}+OK\r\n$1\r\n1\r\n:2\r\n"));
        let error = CommitError::DiskFull;
        let line = format!("-ERR {error}\r\n");
        assert_eq!(replies_of(input, Err(error)), format!("{first}{line}{line}{line}"));
    }
}
