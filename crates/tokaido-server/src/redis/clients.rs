//! The open sessions, as CLIENT LIST reports them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering},
    },
};

use super::{command::Command, table};
use crate::{
    Mailbox, mailbox::PushError, metrics, shared::wall_clock_us, transport::SocketAddress,
};

/// What one session shows to the others, which only reset its counts and mark a broken redirect.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The address of the peer.
    pub(crate) peer: String,
    /// The address that it connected to.
    pub(crate) local: String,
    pub(crate) opened_at_ms: u64,
    pub(crate) active_at_ms: AtomicU64,
    pub(crate) is_resp3: AtomicBool,
    /// How many commands MULTI has queued; -1 outside of MULTI.
    pub(crate) queued: AtomicI64,
    /// How many channels, patterns and shard channels it has subscribed to.
    pub(crate) subscriptions: [AtomicUsize; 3],
    /// Whether its request is waiting.
    pub(crate) is_blocked: AtomicBool,
    /// Whether it is a monitor, which is shown all commands.
    pub(crate) is_monitor: AtomicBool,
    /// The session notified of changes of the keys that it tracks. 0: itself; -1: it tracks none.
    pub(crate) redirect: AtomicI64,
    /// See [`Mark`].
    marks: AtomicU8,
    last_command: AtomicU16,
    /// The mailbox of its connection.
    mailbox: OnceLock<Mailbox>,
    pub(crate) names: Mutex<Names>,
    pub(crate) done: Done,
}

/// State of a session that is kept only to be reported, in CLIENT LIST by a letter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// It tracks keys.
    Tracking = 1 << 0,
    /// It tracks keys by prefixes.
    Broadcast = 1 << 1,
    /// The session that it named to be notified in its place has gone.
    BrokenRedirect = 1 << 2,
    /// CLIENT NO-EVICT is on.
    NoEvict = 1 << 3,
    /// CLIENT NO-TOUCH is on.
    NoTouch = 1 << 4,
}

/// What a session has done. Each session has its own counters: shared ones would travel between
/// cores with every command.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Commands, including those that failed.
    pub(crate) commands: AtomicU64,
    /// Commands that replied with an error.
    pub(crate) errors: AtomicU64,
    /// Calls of procedures.
    pub(crate) procedure_calls: AtomicU64,
}

impl Done {
    /// Adds the counts of another session to these.
    fn add(&self, other: &Self) {
        for (sum, count) in [
            (&self.commands, &other.commands),
            (&self.errors, &other.errors),
            (&self.procedure_calls, &other.procedure_calls),
        ] {
            metrics::add(sum, count.load(Ordering::Relaxed));
        }
    }
}

impl Done {
    fn reset(&self) {
        for counter in [&self.commands, &self.errors, &self.procedure_calls] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Names that a client has chosen, and those of its user and its database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The name of the selected database.
    pub(crate) database: Arc<str>,
    pub(crate) connection: String,
    /// The name of the user.
    pub(crate) user: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

impl Client {
    /// Records that the client has sent a command.
    pub(crate) fn note(&self, command: &'static Command, now_ms: u64) {
        self.last_command.store(table::number_of(command) as u16, Ordering::Relaxed);
        self.active_at_ms.store(now_ms, Ordering::Relaxed);
    }

    /// How many channels, patterns and shard channels it has subscribed to.
    pub(crate) fn subscriptions(&self) -> [usize; 3] {
        self.subscriptions.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Sets the mailbox by which the client can be reached.
    pub(crate) fn be_reached_by(&self, mailbox: Mailbox) {
        // A session keeps one mailbox all its life.
        let _ = self.mailbox.set(mailbox);
    }

    /// Pushes a message to the client.
    pub(crate) fn push(&self, message: &[u8]) -> Result<(), PushError> {
        self.mailbox.get().map_or(Err(PushError::Closed), |mailbox| mailbox.push(message))
    }

    /// Sends pushed messages only after the replies of the current run. Call it within that run.
    pub(crate) fn hold(&self) {
        if let Some(mailbox) = self.mailbox.get() {
            mailbox.hold();
        }
    }

    /// Whether anything can be pushed to the client.
    pub(crate) fn is_open(&self) -> bool {
        self.mailbox.get().is_some_and(Mailbox::is_open)
    }

    pub(crate) fn mark(&self, mark: Mark, is_set: bool) {
        match is_set {
            true => self.marks.fetch_or(mark as u8, Ordering::Relaxed),
            false => self.marks.fetch_and(!(mark as u8), Ordering::Relaxed),
        };
    }

    pub(crate) fn has_mark(&self, mark: Mark) -> bool {
        self.marks.load(Ordering::Relaxed) & mark as u8 != 0
    }

    /// Closes the connection. Returns whether it was open.
    pub(crate) fn kill(&self) -> bool {
        self.mailbox.get().is_some_and(Mailbox::kill)
    }

    /// Whether the client has any subscriptions.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions() != [0; 3]
    }

    pub(crate) fn last_command(&self) -> &'static str {
        let number = usize::from(self.last_command.load(Ordering::Relaxed));
        table::COMMANDS.get(number).map_or("NULL", |command| command.name)
    }

    pub(crate) fn names(&self) -> Names {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change_names(&self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// An address as CLIENT LIST shows it. A UNIX socket gets port 0.
pub(crate) fn show_address(address: &SocketAddress) -> String {
    match address {
        SocketAddress::Tcp(address) => address.to_string(),
        SocketAddress::Unix(path) => format!("{}:0", path.display()),
    }
}

/// The open sessions by id.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    /// How many sessions were ever opened. This is also the id of the latest.
    opened: u64,
    /// How many of them were opened before the last reset.
    uncounted: u64,
    open: BTreeMap<u64, Arc<Client>>,
    /// The counts of sessions that are closed.
    done: Done,
}

/// Totals over all sessions.
pub(crate) struct Totals {
    /// Sessions that are open.
    pub(crate) open: usize,
    /// Sessions opened since the last reset.
    pub(crate) opened: u64,
    pub(crate) done: Done,
}

impl Clients {
    /// Registers a session until the entry is dropped. Ids count from 1 and are never reused.
    pub(crate) fn enter(self: &Arc<Self>, peer: &str, local: &str) -> Entry {
        let mut sessions = self.lock();
        sessions.opened += 1;
        let id = sessions.opened;
        let now_ms = wall_clock_us() / 1000;
        let client = Arc::new(Client {
            id,
            peer: peer.to_owned(),
            local: local.to_owned(),
            opened_at_ms: now_ms,
            active_at_ms: AtomicU64::new(now_ms),
            is_resp3: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            subscriptions: Default::default(),
            is_blocked: AtomicBool::new(false),
            is_monitor: AtomicBool::new(false),
            redirect: AtomicI64::new(-1),
            marks: AtomicU8::new(0),
            last_command: AtomicU16::new(u16::MAX),
            mailbox: OnceLock::new(),
            names: Mutex::default(),
            done: Done::default(),
        });
        sessions.open.insert(id, Arc::clone(&client));
        Entry { client, clients: Arc::clone(self) }
    }

    /// The open sessions, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.lock().open.values().cloned().collect()
    }

    /// The open session with this id.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.lock().open.get(&id).cloned()
    }

    /// Resets the counts of what sessions did.
    pub(crate) fn reset(&self) {
        let mut sessions = self.lock();
        sessions.uncounted = sessions.opened;
        sessions.done.reset();
        sessions.open.values().for_each(|client| client.done.reset());
    }

    /// The totals over all sessions.
    pub(crate) fn totals(&self) -> Totals {
        let sessions = self.lock();
        let done = Done::default();
        done.add(&sessions.done);
        sessions.open.values().for_each(|client| done.add(&client.done));
        Totals { open: sessions.open.len(), opened: sessions.opened - sessions.uncounted, done }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's registration among the open ones.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) client: Arc<Client>,
    clients: Arc<Clients>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut sessions = self.clients.lock();
        sessions.open.remove(&self.client.id);
        sessions.done.add(&self.client.done);
    }
}
