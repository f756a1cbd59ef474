//! Threads for reads that may take long: procedures that have not earned their place on a worker,
//! and listings. Each has its own VM and snapshot.

use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{Receiver, Sender, channel},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{placement::RunError, read_context::ReadContext};

/// Minimum number of pool threads, unless the limit is lower. Otherwise there is one per worker.
pub(crate) const THREADS_MIN: usize = 2;

type Work = Box<dyn FnOnce(&mut ReadContext) + Send>;

/// A handle to the pool. Its threads end when the last handle is gone and the queue is empty.
#[derive(Clone)]
pub(crate) struct PoolHandle {
    queue: Sender<(Work, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// The end of the queue that all threads of the pool share.
#[derive(Clone)]
pub(crate) struct PoolQueue(Arc<Mutex<Receiver<(Work, OwnedSemaphorePermit)>>>);

impl PoolHandle {
    /// A queue for this many jobs, and the end that [`run`] takes from. A connection with one job
    /// more has to wait.
    pub(crate) fn new(jobs_max: usize) -> (Self, PoolQueue) {
        let (queue, receiver) = channel();
        let room = Arc::new(Semaphore::new(jobs_max));
        (Self { queue, room }, PoolQueue(Arc::new(Mutex::new(receiver))))
    }

    /// Runs `work` on a pool thread and waits for its result.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ReadContext) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |context| {
            // If nobody waits any more, the answer is of no use.
            let _ = answer.send(context.run(work));
        });
        let room = self.room.clone().acquire_owned().await.map_err(|_| RunError::Lost)?;
        self.queue.send((work, room)).map_err(|_| RunError::Lost)?;
        Ok(answered.await.map_err(|_| RunError::Lost)??)
    }
}

/// Serves the queue until every handle is gone.
pub(crate) fn run(queue: &PoolQueue, mut context: ReadContext) {
    loop {
        let next = queue.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((work, _room)) = next else { break };
        context.program.update();
        work(&mut context);
    }
}
