//! What the sockets of one worker's requests have in common.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use tokio::sync::Notify;

use super::{
    AllowedPeer,
    names::Names,
    pools::{self, Pools},
    stream::Permit,
};
use crate::config::{Limits, NgxConfig};

/// The sockets of a worker's handlers.
pub(crate) struct WorkerSockets {
    allowed: Vec<AllowedPeer>,
    open_max: usize,
    open: Rc<Cell<usize>>,
    pub(super) of_request_max: usize,
    pub(super) bytes_max: usize,
    /// Bytes that have arrived on all sockets and are not received yet, and their maximum.
    pub(super) bytes_held: Rc<Cell<usize>>,
    pub(super) bytes_held_max: usize,
    pub(super) names: Names,
    pub(super) pools: Rc<RefCell<Pools>>,
    /// The waiting handlers, by number.
    waiting: RefCell<HashMap<u64, Rc<Notify>>>,
}

impl WorkerSockets {
    pub(crate) fn new(config: &NgxConfig, limits: &Limits) -> Self {
        Self {
            allowed: config.socket_allow.clone(),
            open_max: limits.worker_sockets_max,
            open: Rc::default(),
            of_request_max: limits.handler_sockets_max,
            bytes_max: limits.socket_bytes_max,
            bytes_held: Rc::default(),
            bytes_held_max: limits.worker_socket_bytes_max,
            names: Names::new(limits.worker_lookups_max),
            pools: Rc::default(),
            waiting: RefCell::default(),
        }
    }

    /// Checks that handlers may connect there; without a port, `host` is a UNIX path.
    pub(super) fn check(&self, host: &str, port: Option<u16>) -> Result<(), String> {
        let is_allowed = |peer: &AllowedPeer| match port {
            Some(port) => peer.allows(host, port),
            None => peer.allows_path(host),
        };
        if self.allowed.iter().any(is_allowed) {
            return Ok(());
        }
        let peer = match port {
            Some(port) if host.contains(':') => format!("[{host}]:{port}"),
            Some(port) => format!("{host}:{port}"),
            None => format!("unix:{host}"),
        };
        Err(format!("{peer} is not allowed: the option ngx.socket_allow does not list it"))
    }

    /// Room for one more open socket, if necessary that of one that is kept for later.
    pub(super) fn permit(&self) -> Result<Permit, String> {
        let why = || format!("a worker has at most {} sockets open", self.open_max);
        let free = Permit::take(&self.open, self.open_max);
        free.or_else(|| pools::evict(&self.pools)).ok_or_else(why)
    }

    /// Notes that a handler waits under this number; `wake` then notifies it.
    pub(crate) fn begin_wait(&self, slot: u64) -> Rc<Notify> {
        let notify = Rc::new(Notify::new());
        self.waiting.borrow_mut().insert(slot, Rc::clone(&notify));
        notify
    }

    /// Notes that the handler waits no more.
    pub(crate) fn end_wait(&self, slot: u64) {
        self.waiting.borrow_mut().remove(&slot);
    }

    /// Resumes the handler that waits under this number, if there is one.
    pub(super) fn wake(&self, slot: u64) {
        if let Some(notify) = self.waiting.borrow().get(&slot) {
            notify.notify_one();
        }
    }
}
