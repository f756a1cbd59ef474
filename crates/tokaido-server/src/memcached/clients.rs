//! The open sessions, and what all sessions together have done.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::figures::{Counts, Figures};
use crate::shared::wall_clock_us;

/// What one session shows to the others. Only the session itself writes to it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(super) peer: String,
    pub(super) local: String,
    pub(super) active_at_ms: AtomicU64,
    pub(super) figures: Figures,
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    open: BTreeMap<u64, Arc<Client>>,
    /// How many sessions there have been.
    opened: u64,
    /// The counts of the sessions that have ended.
    ended: Counts,
    /// The counts of all sessions when the figures were reset.
    reset: Counts,
}

impl Sessions {
    fn counts(&self) -> Counts {
        let mut sum = self.ended;
        self.open.values().for_each(|client| add(&mut sum, &client.figures.read()));
        sum
    }
}

fn add(sum: &mut Counts, counts: &Counts) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

impl Clients {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a session until the entry is dropped.
    pub(super) fn enter(self: &Arc<Self>, peer: &str, local: &str) -> Entry {
        let client = Arc::new(Client {
            peer: peer.to_owned(),
            local: local.to_owned(),
            active_at_ms: AtomicU64::new(wall_clock_us() / 1000),
            figures: Figures::default(),
        });
        let mut sessions = self.sessions();
        sessions.opened += 1;
        let id = sessions.opened;
        sessions.open.insert(id, client.clone());
        drop(sessions);
        Entry { clients: self.clone(), id, client }
    }

    /// How many sessions are open, and how many have been opened.
    pub(super) fn numbers(&self) -> (usize, u64) {
        let sessions = self.sessions();
        (sessions.open.len(), sessions.opened)
    }

    /// The open sessions.
    pub(super) fn open(&self) -> Vec<(u64, Arc<Client>)> {
        self.sessions().open.iter().map(|(id, client)| (*id, client.clone())).collect()
    }

    /// The counts since the start, or since the last [`reset`](Self::reset).
    pub(super) fn counts(&self) -> Counts {
        let sessions = self.sessions();
        let mut counts = sessions.counts();
        counts.iter_mut().zip(sessions.reset).for_each(|(n, before)| *n = n.saturating_sub(before));
        counts
    }

    /// Counts from 0 again.
    pub(super) fn reset(&self) {
        let mut sessions = self.sessions();
        sessions.reset = sessions.counts();
    }
}

/// Keeps a session among the open ones as long as it lives.
#[derive(Debug)]
pub(super) struct Entry {
    clients: Arc<Clients>,
    id: u64,
    pub(super) client: Arc<Client>,
}

impl Entry {
    /// Notes when the client was heard from.
    pub(super) fn note(&self, now_ms: u64) {
        self.client.active_at_ms.store(now_ms, Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut sessions = self.clients.sessions();
        sessions.open.remove(&self.id);
        add(&mut sessions.ended, &self.client.figures.read());
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::figures::{Figure, NAMES},
        *,
    };

    #[test]
    fn what_sessions_did_is_counted_beyond_their_end() {
        let clients = Arc::new(Clients::default());
        let (first, second) = (clients.enter("a", "b"), clients.enter("c", "b"));
        first.client.figures.count(Figure::CmdGet);
        second.client.figures.add(Figure::CmdGet, 2);
        drop(first);
        assert_eq!((clients.numbers(), clients.counts()[0]), ((1, 2), 3));
        clients.reset();
        second.client.figures.count(Figure::CmdGet);
        assert_eq!((clients.open().len(), clients.counts()[0]), (1, 1));
        assert_eq!(NAMES[Figure::BytesWritten as usize], "bytes_written");
    }
}
