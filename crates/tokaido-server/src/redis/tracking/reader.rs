//! What one session reads, on its way into the table.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokaido_wire::resp::Request;

use super::tracker::{Tracker, is_told_of};
use crate::redis::{
    call::Call,
    clients::Client,
    command::{Command, Handler},
    uses::key_places,
};

/// Notes what a session reads.
///
/// Invariant: of a key that was read, the client is told of every change that it has not seen. When a request
/// begins, the groups of transactions that were told of are counted, and then the snapshot is renewed; so it has
/// them all. A key that is entered while the count is still the same will be found by the next group. If the
/// count has moved, the snapshot is renewed once more if nothing was read yet, or else the key is said to have
/// changed, since it may have.
///
/// Invariant: what the client is told of a key comes behind the replies with what it has read, for the mailbox is
/// held from the beginning of the request on.
pub(crate) struct Reader {
    pub(super) tracker: Arc<Tracker>,
    pub(super) client: Arc<Client>,
    /// The groups that the request under way has seen.
    groups: AtomicU64,
    /// Its reads go into the table; or else it has prefixes, or does not want that now.
    pub(super) enters: AtomicBool,
    /// It is told of keys by prefixes.
    pub(super) has_prefixes: AtomicBool,
}

impl Reader {
    pub(super) fn new(tracker: Arc<Tracker>, client: Arc<Client>) -> Self {
        let (groups, enters) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { tracker, client, groups, enters, has_prefixes: AtomicBool::new(false) }
    }

    /// A request begins. What it reads must be taken from the store after this.
    pub(super) fn begin(&self) {
        self.client.hold();
        self.groups.store(self.tracker.groups(), Ordering::Relaxed);
    }

    /// A command reads its keys, if it is one that does. Tells whether what it reads is sure to be current; if
    /// not, its snapshot is to be renewed.
    pub(in crate::redis) fn remember(&self, command: &Command, call: &Call<'_>) -> bool {
        !reads(command) || self.enter(command, call)
    }

    /// As [`remember`](Self::remember), in a transaction that has read before, so that its snapshot is what it is.
    pub(in crate::redis) fn remember_within(&self, command: &Command, call: &Call<'_>) {
        if reads(command) {
            self.remember_named(command, call);
        }
    }

    /// The same of all keys that a command names, whatever it does with them.
    pub(in crate::redis) fn remember_named(&self, command: &Command, call: &Call<'_>) {
        if !self.enter(command, call) {
            self.invalidate(command, call.request);
        }
    }

    fn enter(&self, command: &Command, call: &Call<'_>) -> bool {
        let enters = self.enters.load(Ordering::Relaxed);
        if !enters && !self.has_prefixes.load(Ordering::Relaxed) {
            return true;
        }
        if !is_told_of(call.database) {
            // Nobody will say when it changes.
            self.invalidate(command, call.request);
            return true;
        }
        let groups = self.groups.load(Ordering::Relaxed);
        !enters || self.tracker.remember(self.client.id, keys(command, call.request), groups)
    }

    /// Says that the keys of a request have changed.
    fn invalidate(&self, command: &Command, request: Request<'_>) {
        let by_prefix = !self.enters.load(Ordering::Relaxed);
        self.tracker.invalidate(self.client.id, keys(command, request), by_prefix);
    }
}

fn keys<'r>(command: &Command, request: Request<'r>) -> impl Iterator<Item = &'r [u8]> {
    let places = key_places(command, request).unwrap_or_default();
    places.into_iter().map(move |place| request.get(place).unwrap_or_default())
}

/// Whether a command reads and does not write.
fn reads(command: &Command) -> bool {
    matches!(command.handler, Handler::Read(_) | Handler::StreamRead(_))
}
