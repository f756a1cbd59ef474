//! Threads for reads that may take long: procedures that have not earned their place on a worker,
//! and listings. Each has a VM and a snapshot of its own.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
};

use tokaido_script::Vm;
use tokaido_store::{ReadError, Snapshot};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Fewest threads of the pool, where that is not above the limit. Else one for each worker.
pub(crate) const THREADS_MIN: usize = 2;

/// What a job finds on its thread. The snapshot is of the moment when the job begins.
pub(crate) struct PoolContext {
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) vm: Vm,
}

/// A job did not run to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// No snapshot could be had.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The job panicked, or the server stops.
    #[error("an error in the server itself, see its log")]
    Lost,
}

type Work = Box<dyn FnOnce(Result<&mut PoolContext, ReadError>) + Send>;

/// The way to the pool. Its threads end when the last handle is gone and the queue is empty.
#[derive(Clone)]
pub(crate) struct PoolHandle {
    queue: Sender<(Work, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// The end of the queue that all threads of the pool share.
#[derive(Clone)]
pub(crate) struct PoolQueue(Arc<Mutex<Receiver<(Work, OwnedSemaphorePermit)>>>);

impl PoolHandle {
    /// A queue for so many jobs, and the end that [`run`] takes from. A connection that has one more
    /// waits with it.
    pub(crate) fn new(jobs_max: usize) -> (Self, PoolQueue) {
        let (queue, receiver) = channel();
        let room = Arc::new(Semaphore::new(jobs_max));
        (Self { queue, room }, PoolQueue(Arc::new(Mutex::new(receiver))))
    }

    /// Runs `work` on a thread of the pool and waits for what it gives.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PoolContext) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |context| {
            // Nobody may wait any more; then the answer is of no use.
            let _ = answer.send(context.map(work));
        });
        let room = self.room.clone().acquire_owned().await.map_err(|_| PoolError::Lost)?;
        self.queue.send((work, room)).map_err(|_| PoolError::Lost)?;
        Ok(answered.await.map_err(|_| PoolError::Lost)??)
    }
}

/// Serves the queue until every handle is gone.
pub(crate) fn run(queue: &PoolQueue, mut context: PoolContext) {
    loop {
        let next = queue.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((work, _room)) = next else { break };
        let ran = catch_unwind(AssertUnwindSafe(|| match context.snapshot.renew() {
            Ok(()) => work(Ok(&mut context)),
            Err(error) => work(Err(error)),
        }));
        if ran.is_err() {
            tracing::error!("a panic in a read; its client gets an error");
        }
        context.snapshot.release();
    }
}
