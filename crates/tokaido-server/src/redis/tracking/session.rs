//! How one session tracks keys.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use super::{listener::Listener, reader::Reader, tracker::Tracker};
use crate::redis::{
    clients::{Client, Mark},
    failure::Failure,
};

/// Which keys a session tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Those that it reads.
    Reads,
    /// Those that it reads in the request after CLIENT CACHING YES.
    OptIn,
    /// Those that it reads, except in the request after CLIENT CACHING NO.
    OptOut,
    /// Those that begin with its prefixes.
    Broadcast,
}

/// What CLIENT TRACKING ON asks for.
pub(super) struct Wish {
    pub(super) mode: Mode,
    pub(super) skips_own: bool,
    pub(super) redirect: Option<Arc<Client>>,
    /// Additional prefixes.
    pub(super) prefixes: Vec<Arc<[u8]>>,
}

/// A session tracks keys until this is dropped.
pub(in crate::redis) struct Tracking {
    reader: Arc<Reader>,
    mode: Mode,
    skips_own: bool,
    /// The session to notify; 0: this one.
    redirect: u64,
    prefixes: BTreeSet<Arc<[u8]>>,
    /// Whether CLIENT CACHING was called for the next request.
    is_chosen: bool,
}

impl Tracking {
    /// Begins to track, or changes how.
    pub(super) fn turn_on(
        before: Option<Self>,
        tracker: &Arc<Tracker>,
        client: Arc<Client>,
        wish: Wish,
    ) -> Result<Self, Failure> {
        let Wish { mode, skips_own, redirect, prefixes } = wish;
        let target = redirect.as_ref().map_or(0, |target| target.id);
        // No notification may precede the reply to this request.
        client.hold();
        tracker.enter(Listener { client: Arc::clone(&client), redirect, skips_own })?;
        let mut tracking = before.unwrap_or_else(|| Self {
            reader: Arc::new(Reader::new(Arc::clone(tracker), client)),
            mode,
            skips_own,
            redirect: 0,
            prefixes: BTreeSet::new(),
            is_chosen: false,
        });
        (tracking.mode, tracking.skips_own, tracking.redirect) = (mode, skips_own, target);
        for prefix in prefixes {
            tracker.add_prefix(tracking.reader.client.id, &prefix);
            tracking.prefixes.insert(prefix);
        }
        tracking.show();
        Ok(tracking)
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// The session to notify; 0: this one.
    pub(super) fn redirect(&self) -> u64 {
        self.redirect
    }

    pub(super) fn prefixes(&self) -> &BTreeSet<Arc<[u8]>> {
        &self.prefixes
    }

    /// Whether it is not notified of its own changes.
    pub(in crate::redis) fn skips_own(&self) -> bool {
        self.skips_own
    }

    pub(super) fn is_chosen(&self) -> bool {
        self.is_chosen
    }

    /// Sets whether CLIENT CACHING was called for the next request.
    pub(in crate::redis) fn choose(&mut self, is_chosen: bool) {
        if self.is_chosen != is_chosen {
            self.is_chosen = is_chosen;
            self.show();
        }
    }

    /// Begins a request, whose reads must come after this. Returns their recorder.
    pub(in crate::redis) fn begin(&self) -> Arc<Reader> {
        self.reader.begin();
        Arc::clone(&self.reader)
    }

    pub(super) fn has_broken_redirect(&self) -> bool {
        self.reader.client.has_mark(Mark::BrokenRedirect)
    }

    /// Publishes how the session tracks.
    fn show(&self) {
        let Reader { enters, has_prefixes, client, .. } = &*self.reader;
        let is_broadcast = self.mode == Mode::Broadcast;
        let wants = match self.mode {
            Mode::Reads => true,
            Mode::OptIn => self.is_chosen,
            Mode::OptOut => !self.is_chosen,
            Mode::Broadcast => false,
        };
        enters.store(wants, Ordering::Relaxed);
        has_prefixes.store(is_broadcast, Ordering::Relaxed);
        client.mark(Mark::Tracking, true);
        client.mark(Mark::Broadcast, is_broadcast);
        client.redirect.store(self.redirect as i64, Ordering::Relaxed);
    }
}

impl Drop for Tracking {
    fn drop(&mut self) {
        let Reader { tracker, client, .. } = &*self.reader;
        tracker.leave(client.id, self.prefixes.iter());
        for mark in [Mark::Tracking, Mark::Broadcast, Mark::BrokenRedirect] {
            client.mark(mark, false);
        }
        client.redirect.store(-1, Ordering::Relaxed);
    }
}
