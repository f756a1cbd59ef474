//! A worker: one thread with an event loop, a snapshot and a VM, and the connections dealt to it.

use std::{
    cell::RefCell,
    io,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokaido_script::{ProcedureId, Vm};
use tokaido_store::{ReadError, Snapshot};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    task::LocalSet,
};

use crate::{
    connection,
    conversation::Buffers,
    link::Links,
    metrics::{self, WorkerCounters},
    pool::PoolHandle,
    service::Service,
    writer::WriterHandle,
};

/// How often a stopping worker looks whether its last connection is gone.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A connection on its way from the acceptor to a worker.
pub(crate) struct Accepted {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) peer: SocketAddr,
    /// Whether there was room for it. If not, it is told so in its own protocol.
    pub(crate) admitted: bool,
    /// Counts it as open, here and for the limit of connections, until it is dropped.
    pub(crate) places: Places,
}

/// Places of one connection in the counts that the acceptor goes by.
pub(crate) struct Places(Vec<Arc<AtomicUsize>>);

impl Places {
    pub(crate) fn take(counts: &[&Arc<AtomicUsize>]) -> Self {
        for count in counts {
            count.fetch_add(1, Relaxed);
        }
        Self(counts.iter().map(|&count| count.clone()).collect())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Relaxed);
        }
    }
}

/// What a worker's connections share. It never leaves its thread.
pub(crate) struct Worker {
    pub(crate) service: Arc<Service>,
    pub(crate) writer: WriterHandle,
    pub(crate) pool: PoolHandle,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) buffers: RefCell<Buffers>,
    engine: RefCell<Engine>,
}

struct Engine {
    snapshot: Box<dyn Snapshot>,
    vm: Vm,
}

impl Worker {
    pub(crate) fn new(
        service: Arc<Service>,
        writer: WriterHandle,
        pool: PoolHandle,
        counters: Arc<WorkerCounters>,
        snapshot: Box<dyn Snapshot>,
        vm: Vm,
    ) -> Self {
        let engine = RefCell::new(Engine { snapshot, vm });
        let limits = &service.config.limits;
        let buffers = RefCell::new(Buffers::new(limits.buffer_bytes, limits.buffers_kept_max));
        Self { service, writer, pool, counters, buffers, engine }
    }

    /// The procedure of that name.
    pub(crate) fn find_procedure(&self, name: &[u8]) -> Option<ProcedureId> {
        self.engine.borrow().vm.find(name)
    }

    /// Runs `work` on what is committed now. The snapshot is let go of afterwards, since the pages
    /// that it holds cannot be used again; taking it anew costs no more than renewing it would.
    ///
    /// # Errors
    /// If no snapshot can be had, or if `work` panics.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&mut dyn Snapshot, &mut Vm) -> T,
    ) -> Result<T, ReadError> {
        let engine = &mut *self.engine.borrow_mut();
        engine.snapshot.renew()?;
        let work = || work(&mut *engine.snapshot, &mut engine.vm);
        let result = catch_unwind(AssertUnwindSafe(work));
        engine.snapshot.release();
        result.map_err(|_| {
            tracing::error!("a panic in a read; its client gets an error");
            let message = "an error in the server itself, see its log".to_owned();
            ReadError::Engine { message }
        })
    }
}

/// Serves connections until `stop` becomes true or its sender is gone, and then until those that
/// are open have been answered, but not longer than the limit.
pub(crate) fn run(
    worker: Worker,
    mut incoming: mpsc::UnboundedReceiver<Accepted>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let links = Rc::new(Links::new(&worker.service.config.limits));
    let worker = Rc::new(worker);
    let service = worker.service.clone();
    let sweeping = links.clone();
    tasks.spawn_local(async move { sweeping.sweep(&service.config.limits).await });
    tasks.block_on(&runtime, async {
        loop {
            tokio::select! {
                accepted = incoming.recv() => match accepted {
                    Some(accepted) => take(&worker, &links, accepted),
                    None => break,
                },
                // An error means that the server is gone, which is a stop, too.
                _ = stop.wait_for(|&stop| stop) => break,
            }
        }
        while let Ok(accepted) = incoming.try_recv() {
            take(&worker, &links, accepted);
        }
        links.stop();
        let limit = Duration::from_millis(worker.service.config.limits.stop_ms);
        let gone = async {
            while !links.is_empty() {
                tokio::time::sleep(STOP_POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(limit, gone).await.is_err() {
            tracing::warn!(
                connections = links.len(),
                "stopped before all clients took their replies"
            );
        }
    });
    Ok(())
}

/// Starts to serve a connection.
fn take(worker: &Rc<Worker>, links: &Rc<Links>, accepted: Accepted) {
    let Accepted { stream, peer, admitted, places } = accepted;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%peer, %error, "cannot serve a connection");
            return;
        }
    };
    let (guard, input) = links.open(stream, peer);
    let worker = worker.clone();
    tokio::task::spawn_local(async move {
        let _open = (places, OpenCount::new(&worker.counters));
        if admitted {
            connection::serve(&worker, guard.link(), input).await;
        } else {
            let time = Duration::from_millis(worker.service.config.limits.refusal_ms);
            connection::refuse(guard.link(), input, time).await;
        }
        drop(guard);
    });
}

/// Counts a connection as open in the metrics.
struct OpenCount(Arc<WorkerCounters>);

impl OpenCount {
    fn new(counters: &Arc<WorkerCounters>) -> Self {
        metrics::add(&counters.connections_total, 1);
        counters.connections_open.fetch_add(1, Relaxed);
        Self(counters.clone())
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Relaxed);
    }
}
