//! A worker: one thread with an event loop, a snapshot and a VM, and its connections.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    task::LocalSet,
};

use crate::{
    acceptor::{Accepted, Acceptor},
    admission, affinity,
    buffers::Buffers,
    connection::Connections,
    listeners::Listener,
    metrics::{self, WorkerCounters},
    pool::PoolHandle,
    program::Program,
    read_context::ReadContext,
    service::Service,
    sockets::WorkerSockets,
    timers::{self, OpenTimers},
    writer::WriterHandle,
};

/// How often a stopping worker checks whether its last connection is gone.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of threads that look up names for the handlers of a worker.
const LOOK_UPS_MAX: usize = 16;

/// What a worker's connections share. It never leaves its thread.
pub(crate) struct Worker {
    pub(crate) service: Arc<Service>,
    pub(crate) writer: WriterHandle,
    pub(crate) pool: PoolHandle,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) buffers: RefCell<Buffers>,
    pub(crate) reading: RefCell<ReadContext>,
    pub(crate) sockets: Rc<WorkerSockets>,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) timers: OpenTimers,
    /// HTTP connections that are idle and ready for the next request.
    pub(crate) ready_http: Cell<usize>,
}

impl Worker {
    pub(crate) fn new(
        service: Arc<Service>,
        writer: WriterHandle,
        pool: PoolHandle,
        counters: Arc<WorkerCounters>,
        reading: ReadContext,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let reading = RefCell::new(reading);
        let limits = &service.config.limits;
        let buffers = RefCell::new(Buffers::new(limits.buffer_bytes, limits.buffers_kept_max));
        let sockets = Rc::new(WorkerSockets::new(&service.config.ngx, limits));
        let timers = OpenTimers::default();
        let ready_http = Cell::new(0);
        Self {
            service,
            writer,
            pool,
            counters,
            buffers,
            reading,
            sockets,
            stopping,
            timers,
            ready_http,
        }
    }

    /// The program that requests are matched with here. Where they run it may be a newer one.
    pub(crate) fn program(&self) -> Arc<Program> {
        let mut reading = self.reading.borrow_mut();
        reading.program.update();
        reading.program.program().clone()
    }
}

/// Serves connections until the server stops, and then until the open ones have been answered, but
/// no longer than the limit. One worker also runs the functions that the server calls periodically.
/// `incoming` are connections that other workers have accepted.
pub(crate) fn run(
    worker: Worker,
    mut incoming: mpsc::UnboundedReceiver<Accepted>,
    calls_periodic: bool,
    (acceptor, listeners): (Acceptor, Vec<Listener>),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(LOOK_UPS_MAX)
        .on_thread_start(affinity::unbind)
        .build()?;
    let tasks = LocalSet::new();
    let connections = Rc::new(Connections::new(&worker.service.config.limits));
    let worker = Rc::new(worker);
    let (service, mut stopping) = (worker.service.clone(), worker.stopping.clone());
    tasks.spawn_local(timers::follow(worker.clone()));
    let sweeping = connections.clone();
    tasks.spawn_local(async move { sweeping.sweep(&service.config.limits).await });
    if calls_periodic {
        for periodic in worker.service.config.tyrant.periodic() {
            tasks.spawn_local(periodic.run(worker.clone()));
        }
    }
    let served = tasks.block_on(&runtime, async {
        let (own, opening) = (worker.clone(), connections.clone());
        let accepting =
            acceptor.start(listeners, move |accepted| take(&own, &opening, accepted))?;
        loop {
            tokio::select! {
                Some(accepted) = incoming.recv() => take(&worker, &connections, accepted),
                // An error means that the server is gone, so stop as well.
                _ = stopping.wait_for(|&stop| stop) => break,
            }
        }
        drop(accepting);
        while let Ok(accepted) = incoming.try_recv() {
            take(&worker, &connections, accepted);
        }
        connections.stop();
        // Handlers that have no end of their own check for this.
        worker.reading.borrow_mut().program.retire();
        let limit = Duration::from_millis(worker.service.config.limits.stop_ms);
        let gone = async {
            while !connections.is_empty() || !worker.timers.are_done() {
                tokio::time::sleep(STOP_POLL_INTERVAL).await;
            }
        };
        if tokio::time::timeout(limit, gone).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "stopped before all clients took their replies, and all timers were done"
            );
        }
        Ok(())
    });
    drop(tasks);
    // Name look-ups for handlers are not waited for.
    runtime.shutdown_background();
    served
}

/// Starts to serve a connection.
fn take(worker: &Rc<Worker>, connections: &Rc<Connections>, accepted: Accepted) {
    let Accepted { socket, peer, local, protocols, admitted, permit, of_worker } = accepted;
    let (guard, input) = connections.open(socket, peer, local);
    let worker = worker.clone();
    tokio::task::spawn_local(async move {
        let _open = (permit, of_worker, OpenCount::new(&worker.counters));
        if admitted {
            admission::serve(&worker, guard.connection(), input, &protocols).await;
        } else {
            let time = Duration::from_millis(worker.service.config.limits.refusal_ms);
            admission::refuse(guard.connection(), input, &protocols, time).await;
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
