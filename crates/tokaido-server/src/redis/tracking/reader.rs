//! Enters what one session reads into the table.

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

/// Records what a session reads.
///
/// Invariant: for a key that was read, the client is notified of every change that it has not seen. When a request
/// begins, the published groups of transactions are counted, and then the snapshot is renewed, so it includes
/// them all. A key that is entered while the count is still the same will be found by the next group. If the
/// count has changed, the snapshot is renewed once more if nothing was read yet; otherwise the key is reported as
/// changed, since it may have.
///
/// Invariant: notifications about a key come after the replies with what was read of it, because the mailbox is
/// held from the beginning of the request.
pub(crate) struct Reader {
    pub(super) tracker: Arc<Tracker>,
    pub(super) client: Arc<Client>,
    /// The number of groups that the current request has seen.
    groups: AtomicU64,
    /// Whether its reads go into the table. If not, it has prefixes, or does not want that now.
    pub(super) enters: AtomicBool,
    /// Whether it is notified of keys by prefixes.
    pub(super) has_prefixes: AtomicBool,
}

impl Reader {
    pub(super) fn new(tracker: Arc<Tracker>, client: Arc<Client>) -> Self {
        let (groups, enters) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { tracker, client, groups, enters, has_prefixes: AtomicBool::new(false) }
    }

    /// Begins a request, whose reads must be taken from the store after this.
    pub(super) fn begin(&self) {
        self.client.hold();
        self.groups.store(self.tracker.groups(), Ordering::Relaxed);
    }

    /// Records the keys of a command that reads. Returns whether what it reads is certainly current; if not, its
    /// snapshot must be renewed.
    pub(in crate::redis) fn remember(&self, command: &Command, call: &Call<'_>) -> bool {
        !reads(command) || self.enter(command, call)
    }

    /// Like [`remember`](Self::remember), in a transaction that has already read, so its snapshot cannot change.
    pub(in crate::redis) fn remember_within(&self, command: &Command, call: &Call<'_>) {
        if reads(command) {
            self.remember_named(command, call);
        }
    }

    /// Like [`remember_within`](Self::remember_within), for any command that names keys.
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
            // There will be no notification when it changes.
            self.invalidate(command, call.request);
            return true;
        }
        let groups = self.groups.load(Ordering::Relaxed);
        !enters || self.tracker.remember(self.client.id, keys(command, call.request), groups)
    }

    /// Reports the keys of a request as changed.
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
