//! What one session has subscribed to.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use super::{Channels, Names, channels::Subscriber};
use crate::{
    Limits, Mailbox,
    redis::{clients::Client, failure::Failure},
};

/// The subscriptions of a session, which end when this is dropped.
pub(crate) struct Subscriptions {
    channels: Arc<Channels>,
    client: Arc<Client>,
    /// `None`: the session belongs to no connection, so nothing can be pushed to it.
    subscriber: Option<Arc<Subscriber>>,
    names: [BTreeSet<Arc<[u8]>>; 3],
    /// The total length of the names.
    bytes: usize,
}

impl Subscriptions {
    /// Creates an empty instance.
    pub(crate) fn new(channels: Arc<Channels>, client: Arc<Client>) -> Self {
        Self { channels, client, subscriber: None, names: Default::default(), bytes: 0 }
    }

    /// Sends messages to this mailbox.
    pub(crate) fn go_to(&mut self, mailbox: Mailbox) {
        self.subscriber = Some(Arc::new(Subscriber { client: Arc::clone(&self.client), mailbox }));
    }

    /// Whether there are any subscriptions.
    pub(crate) fn has_any(&self) -> bool {
        self.names.iter().any(|names| !names.is_empty())
    }

    /// The count in replies: channels and patterns together, or shard channels.
    pub(super) fn count(&self, names: Names) -> usize {
        let [channels, patterns, shards] = self.names.each_ref().map(BTreeSet::len);
        if names == Names::Shards { shards } else { channels + patterns }
    }

    /// All names of a kind, in order.
    pub(super) fn all(&self, names: Names) -> Vec<Arc<[u8]>> {
        self.names[names as usize].iter().cloned().collect()
    }

    /// Fails if a session may not subscribe to that many names.
    pub(super) fn check<'a>(
        &self,
        more: impl Iterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        if self.subscriber.is_none() {
            return Err(Failure::other("only a connection to a server can subscribe"));
        }
        let Limits { subscriptions_max, subscription_bytes_max, .. } = *limits;
        let count: usize = self.names.iter().map(BTreeSet::len).sum();
        let (count, bytes) =
            more.fold((count, self.bytes), |(count, bytes), name| (count + 1, bytes + name.len()));
        if count > subscriptions_max || bytes > subscription_bytes_max {
            return Err(Failure::other(format!(
                "a client subscribes to at most {subscriptions_max} names of \
                 {subscription_bytes_max} bytes together"
            )));
        }
        Ok(())
    }

    /// Subscribes to a name, unless it is already subscribed to.
    pub(super) fn add(&mut self, names: Names, name: &[u8]) {
        let Some(subscriber) = &self.subscriber else { return };
        if self.names[names as usize].contains(name) {
            return;
        }
        let name: Arc<[u8]> = name.into();
        // No message may precede the reply to this request.
        subscriber.mailbox.hold();
        self.channels.add(names, Arc::clone(&name), subscriber);
        self.bytes += name.len();
        self.names[names as usize].insert(name);
        self.show(names);
    }

    /// Ends a subscription if it exists.
    pub(super) fn remove(&mut self, names: Names, name: &[u8]) {
        if self.names[names as usize].remove(name) {
            self.bytes -= name.len();
            self.channels.remove(names, name, self.client.id);
            self.show(names);
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn clear(&mut self) {
        for names in [Names::Channels, Names::Patterns, Names::Shards] {
            for name in self.all(names) {
                self.remove(names, &name);
            }
        }
    }

    /// Shows the count in CLIENT LIST.
    fn show(&self, names: Names) {
        let count = self.names[names as usize].len();
        self.client.subscriptions[names as usize].store(count, Ordering::Relaxed);
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.clear();
    }
}
