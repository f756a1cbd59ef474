//! A conversation's turn: on its worker, in the pool or on the writer.

use std::{sync::Arc, time::Instant};

use tokaido_store::{CommitError, Writer as _};
use tokio::sync::oneshot;

use crate::{
    Shared,
    conversation::{Conversation, Pause, Run, Slice},
    placement::{Place, Placement, RunError},
    protocol::{Context, Protocol, Target},
    read_context::ReadContext,
    writer::{Job, WriterContext},
};

/// What a pool thread does for one connection: only the request that may take long.
const POOL_SLICE: Slice = Slice { requests_max: 1, reply_bytes_max: usize::MAX };

/// A conversation that has been away, and what was done for it.
type Returned<P> = (Box<Conversation<P>>, Run);

/// Answers what can be answered on the worker's own snapshot, before the worker looks at the next
/// connection.
pub(crate) fn here<P: Protocol>(
    placement: Placement<'_>,
    conversation: &mut Conversation<P>,
) -> Run {
    let service = &placement.worker.service;
    let limits = &service.config.limits;
    let slice = Slice {
        requests_max: limits.slice_requests_max,
        reply_bytes_max: limits.slice_reply_bytes_max,
    };
    let mut reading = placement.worker.reading.borrow_mut();
    reading.program.update();
    let ran = reading
        .run(|context| conversation.run(on_snapshot(&service.shared, context, false), slice));
    let run = ran.unwrap_or_else(|error| conversation.failed(&format!("{error}; closing")));
    placement.count(Place::Worker, run.requests);
    run
}

/// Answers the next request and those after it as the writer, on the worker itself, as far as they
/// are [brief](Context::is_brief). `None` if the writer has to do it.
pub(crate) fn as_writer<P: Protocol>(
    placement: Placement<'_>,
    conversation: &mut Conversation<P>,
) -> Option<Run> {
    if !P::KNOWS_BRIEF_WRITES {
        return None;
    }
    let service = &placement.worker.service;
    let limits = &service.config.limits;
    let slice = Slice {
        requests_max: limits.slice_requests_max,
        reply_bytes_max: limits.slice_reply_bytes_max,
    };
    let mut reading = placement.worker.reading.borrow_mut();
    let program = &mut reading.program;
    let run = placement.worker.writer.try_write(&service.shared.pause, |writer| {
        let started = Instant::now();
        program.heartbeat().begin_job();
        let mut group = WriterContext::new(writer, program);
        let target = Target::Writer(group.writer);
        let context = Context::new(&service.shared, group.program.procedures(), target, false);
        let mut run = conversation.run_in_group(Context { is_brief: true, ..context }, slice);
        // Rolls back what a panic has left open; a failure is kept for the group.
        let _ = group.writer.rollback();
        if run.requests > 0 || run.pause != Pause::NeedsWriter {
            group.when_durable.extend(conversation.when_durable());
            let outcome = group.end_group(&service.metrics, started, 1);
            conversation.group_ended(&mut run, outcome);
        }
        group.program.heartbeat().idle();
        run
    })?;
    placement.count(Place::Worker, run.requests);
    (run.requests > 0 || run.pause != Pause::NeedsWriter).then_some(run)
}

/// Has a pool thread answer the next request.
pub(crate) async fn in_pool<P: Protocol>(
    placement: Placement<'_>,
    mut conversation: Box<Conversation<P>>,
) -> Result<Returned<P>, RunError> {
    let shared = placement.worker.service.shared.clone();
    let work = move |context: &mut ReadContext| {
        let run = conversation.run(on_snapshot(&shared, context, true), POOL_SLICE);
        (conversation, run)
    };
    let (conversation, run) = placement.worker.pool.call(work).await?;
    placement.count(Place::Pool, run.requests);
    if placement.worker.service.shared.store().has_upkeep_request() {
        placement.worker.writer.want_upkeep();
    }
    Ok((conversation, run))
}

fn on_snapshot<'c>(
    shared: &'c Shared,
    context: &'c mut ReadContext,
    may_take_long: bool,
) -> Context<'c> {
    let target = Target::Snapshot(&mut *context.snapshot);
    let procedures = context.program.procedures();
    Context::new(shared, procedures, target, may_take_long)
}

/// Has the writer answer the next request and those after it.
pub(crate) async fn on_writer<P: Protocol>(
    placement: Placement<'_>,
    conversation: Box<Conversation<P>>,
) -> Result<Returned<P>, RunError> {
    let service = &placement.worker.service;
    let limits = &service.config.limits;
    let slice = Slice {
        requests_max: limits.writer_slice_requests_max,
        reply_bytes_max: limits.writer_slice_reply_bytes_max,
    };
    let (answer, answered) = oneshot::channel();
    let batch = Batch { conversation, shared: service.shared.clone(), slice, run: None, answer };
    placement.worker.writer.submit(Box::new(batch)).await;
    let (conversation, run) = answered.await.map_err(|_| RunError::Lost)?;
    placement.count(Place::Writer, run.requests);
    Ok((conversation, run))
}

/// A conversation on its way to the writer and back.
struct Batch<P: Protocol> {
    conversation: Box<Conversation<P>>,
    shared: Arc<Shared>,
    /// What one connection may have the writer do within one group.
    slice: Slice,
    run: Option<Run>,
    answer: oneshot::Sender<Returned<P>>,
}

impl<P: Protocol> Job for Batch<P> {
    fn run(&mut self, context: &mut WriterContext<'_>) {
        let WriterContext { writer, program, when_durable } = context;
        let target = Target::Writer(*writer);
        let (shared, procedures) = (&self.shared, program.procedures());
        let context = Context::new(shared, procedures, target, false);
        self.run = Some(self.conversation.run_in_group(context, self.slice));
        when_durable.extend(self.conversation.when_durable());
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), CommitError>) {
        let Some(mut run) = self.run else { return };
        self.conversation.group_ended(&mut run, outcome);
        // The worker may have given up on the connection; then nobody waits for the replies.
        let _ = self.answer.send((self.conversation, run));
    }
}

#[cfg(test)]
mod tests {
    use tokaido_script::Sources;
    use tokaido_store::{GroupWriter, Store, tree};

    use super::*;
    use crate::{
        Limits, SharedOptions,
        procedures::LocalProgram,
        redis::{Redis, Session},
    };

    const MANY: Slice = Slice { requests_max: 100, reply_bytes_max: usize::MAX };

    /// What a Redis client receives after a batch whose group ended in `outcome`.
    fn replies_of(input: &str, outcome: Result<(), CommitError>) -> (String, Pause) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = tree::open(directory.path(), tree::Options::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let mut program = LocalProgram::of(&store, Sources::default());
        let mut writer = GroupWriter::new(store.writer().expect("a writer"));
        let shared = Arc::new(Shared::new(store, SharedOptions::default()).expect("a database"));
        let session = Session::new(&shared, "peer", "local");
        let redis = Redis::new(session, &Limits::default());
        let conversation = Box::new(Conversation::new(redis, input.into()));
        let (answer, mut answered) = oneshot::channel();
        let mut batch = Box::new(Batch { conversation, shared, slice: MANY, run: None, answer });
        batch.run(&mut WriterContext::new(&mut writer, &mut program));
        batch.finish(outcome);
        let (mut conversation, run) = answered.try_recv().expect("it was answered");
        let replies = std::mem::take(conversation.output());
        (String::from_utf8(replies).expect("text"), run.pause)
    }

    #[test]
    fn replies_to_what_was_not_committed_become_errors() {
        let input = "SET a 1\r\nGET a\r\nCLIENT REPLY SKIP\r\nPING\r\nINCR a\r\n";
        let committed = "+OK\r\n$1\r\n1\r\n:2\r\n".to_owned();
        assert_eq!(replies_of(input, Ok(())), (committed, Pause::NeedsInput));
        let error = CommitError::DiskFull;
        let line = format!("-ERR {error}\r\n");
        assert_eq!(replies_of(input, Err(error)), (line.repeat(3), Pause::NeedsInput));
    }

    #[test]
    fn a_broken_request_behind_a_failed_group_is_still_told_of() {
        let error = CommitError::DiskFull;
        let line = format!("-ERR {error}\r\n");
        let reason = "-ERR Protocol error: invalid multibulk length\r\n";
        let replies = replies_of("SET a 1\r\n*x\r\n", Err(error));
        assert_eq!(replies, (line + reason, Pause::Failed));
    }
}
