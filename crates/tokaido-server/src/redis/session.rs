//! What the server remembers of a connection between its requests.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use tokaido_store::{CommitNumber, DatabaseId};
use tokaido_wire::resp::Version;

use super::{
    Message,
    blocking::Waiting,
    clients::{Client, Entry},
    operator::Monitoring,
    pubsub::Subscriptions,
    tracking::{Authored, Reader, Tracking},
    transactions::{Queue, Watched},
};
use crate::{
    Mailbox, Shared,
    access::{DEFAULT, Principal},
    selected::Selected,
};

/// Which replies to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All.
    On,
    /// None, until replies are turned on again.
    Off,
    /// All but that of the next request.
    SkipNext,
    /// All but that of the current request.
    SkipThis,
}

/// What the server remembers of a connection. It is `Send`, because it travels with a batch of
/// requests to the writer and back.
pub struct Session {
    selected: Selected,
    version: Version,
    /// The user who sends the requests; [`become_user`](Self::become_user) changes it.
    pub(super) principal: Principal,
    pub(crate) reply_mode: ReplyMode,
    /// What MULTI has queued; `None` outside of MULTI.
    pub(crate) queue: Option<Queue>,
    pub(crate) watched: Vec<Watched>,
    mailbox: Option<Mailbox>,
    /// The end of a DEBUG SLEEP in progress.
    pub(super) sleeps_until: Option<Instant>,
    /// The wait of a blocked request.
    pub(super) waiting: Option<Waiting>,
    /// Dropped before `entry`, which other sessions can see.
    pub(super) subscriptions: Subscriptions,
    /// The messages that its requests have published and that are not sent yet.
    pub(super) messages: Vec<Message>,
    /// Present if it is notified of changes of the keys that it reads.
    pub(super) tracking: Option<Tracking>,
    /// Its transactions that are not durable yet, if it is not notified of its own changes.
    authored: Option<Authored>,
    /// Present if it is a monitor, which is shown all commands.
    pub(super) monitoring: Option<Monitoring>,
    entry: Entry,
    shared: Arc<Shared>,
}

impl Session {
    /// The session of a new connection from `peer` to `local`, both as `address:port`.
    #[must_use]
    pub fn new(shared: &Arc<Shared>, peer: &str, local: &str) -> Self {
        let entry = shared.clients.enter(peer, local);
        let (channels, client) = (Arc::clone(&shared.channels), Arc::clone(&entry.client));
        let mut session = Self {
            selected: shared.main_selected().clone(),
            version: Version::Resp2,
            principal: Principal::Anonymous,
            reply_mode: ReplyMode::On,
            queue: None,
            watched: Vec::new(),
            mailbox: None,
            sleeps_until: None,
            waiting: None,
            subscriptions: Subscriptions::new(channels, client),
            messages: Vec::new(),
            tracking: None,
            authored: None,
            monitoring: None,
            entry,
            shared: Arc::clone(shared),
        };
        session.become_user(shared.users().newcomer());
        session.select(shared.main_selected().clone());
        session
    }

    /// Sends pushes for the session to this mailbox, which also wakes a waiting request. Without one, the
    /// session cannot subscribe, and no request waits.
    #[must_use]
    pub(crate) fn reached_by(mut self, mailbox: Mailbox) -> Self {
        self.subscriptions.go_to(mailbox.clone());
        self.client().be_reached_by(mailbox.clone());
        self.mailbox = Some(mailbox);
        self
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn mailbox(&self) -> Option<&Mailbox> {
        self.mailbox.as_ref()
    }

    /// Makes all waiting requests check again.
    pub(super) fn wake_waiters(&self) {
        self.shared.waiters.wake_all();
    }

    /// Whether only a few commands can be called, because replies and messages look alike.
    pub(super) fn is_confined(&self) -> bool {
        self.version == Version::Resp2 && self.subscriptions.has_any()
    }

    /// Sends the published messages.
    pub(super) fn publish(&mut self) {
        self.shared.channels.publish_all(&self.messages);
        self.messages.clear();
    }

    /// Takes the published messages; the returned function sends them.
    pub(super) fn publish_later(&mut self) -> Option<Box<dyn FnOnce()>> {
        let authored = self.authored.take();
        if self.messages.is_empty() && authored.is_none() {
            return None;
        }
        let messages = std::mem::take(&mut self.messages);
        let channels = Arc::clone(&self.shared.channels);
        Some(Box::new(move || {
            drop(authored);
            channels.publish_all(&messages);
        }))
    }

    /// Begins a request: returns the recorder of its reads, if the session tracks keys.
    pub(super) fn begin_reading(&self) -> Option<Arc<Reader>> {
        self.tracking.as_ref().map(Tracking::begin)
    }

    /// Records that a transaction of a request was committed, but is not durable yet.
    pub(super) fn note_commit(&mut self, number: CommitNumber) {
        if self.tracking.as_ref().is_some_and(Tracking::skips_own) {
            let (id, tracker) = (self.id(), &self.shared.tracker);
            let authored = self.authored.get_or_insert_with(|| Authored::new(Arc::clone(tracker)));
            authored.add(number, id);
        }
    }

    /// Ends the choice of CLIENT CACHING, which holds for one request, or for one MULTI with its EXEC.
    pub(super) fn end_choice(&mut self, was_of_client: bool) {
        let is_in_multi = self.queue.is_some();
        if let Some(tracking) = &mut self.tracking
            && !was_of_client
            && !is_in_multi
        {
            tracking.choose(false);
        }
    }

    /// The number that CLIENT ID returns.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.client().id
    }

    /// The version of the protocol for replies.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The selected database, as of the beginning of the request.
    #[must_use]
    pub fn database(&self) -> DatabaseId {
        self.selected.id()
    }

    pub(crate) fn selected(&self) -> &Selected {
        &self.selected
    }

    /// Begins a request: checks whether the selected database was created or dropped since the last one.
    pub(crate) fn look_for_database(&mut self) {
        self.selected.look(&**self.shared.store());
    }

    pub(crate) fn client(&self) -> &Client {
        &self.entry.client
    }

    pub(super) fn client_handle(&self) -> Arc<Client> {
        Arc::clone(&self.entry.client)
    }

    /// From now on, the client is another user.
    pub(super) fn become_user(&mut self, principal: Principal) {
        let name = principal.name().unwrap_or(DEFAULT);
        self.client().change_names(|names| name.clone_into(&mut names.user));
        self.principal = principal;
    }

    pub(crate) fn select(&mut self, selected: Selected) {
        self.client().change_names(|names| names.database = Arc::clone(selected.name()));
        self.selected = selected;
    }

    pub(crate) fn speak(&mut self, version: Version) {
        self.version = version;
        self.client().is_resp3.store(version == Version::Resp3, Ordering::Relaxed);
    }

    /// Takes the queue of MULTI, which ends the MULTI.
    pub(crate) fn take_queue(&mut self) -> Option<Queue> {
        self.client().queued.store(-1, Ordering::Relaxed);
        self.queue.take()
    }

    /// Resets the session to its state when the connection was opened.
    pub(crate) fn reset(&mut self) {
        let shared = Arc::clone(&self.shared);
        self.select(shared.main_selected().clone());
        self.speak(Version::Resp2);
        self.become_user(shared.users().newcomer());
        self.reply_mode = ReplyMode::On;
        self.take_queue();
        self.watched.clear();
        self.subscriptions.clear();
        self.tracking = None;
        self.monitoring = None;
        self.client().is_monitor.store(false, Ordering::Relaxed);
        self.client().change_names(|names| names.connection.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_travels_between_threads() {
        fn assert_send<T: Send>() {}
        assert_send::<Session>();
    }
}
