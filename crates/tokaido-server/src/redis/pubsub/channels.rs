//! Which session listens to which channel, and how messages get there.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokaido_wire::resp::{ReplyWriter, Version};

use crate::{
    Mailbox,
    redis::{clients::Client, glob},
};

/// The three kinds of names that a client can subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Channels.
    Channels,
    /// Patterns of channels.
    Patterns,
    /// Channels of SSUBSCRIBE, with a separate namespace. In a cluster, each would belong to one
    /// server.
    Shards,
}

/// A message to publish.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Whether it goes only to subscribers by SSUBSCRIBE.
    pub(crate) is_sharded: bool,
    pub(crate) channel: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// A session that has subscribed to something.
pub(crate) struct Subscriber {
    pub(crate) client: Arc<Client>,
    pub(crate) mailbox: Mailbox,
}

/// All subscriptions of a server.
///
/// Messages are delivered one after another, so all subscribers get them in the same order.
#[derive(Default)]
pub(crate) struct Channels {
    /// The number of subscriptions, so that publishing takes no lock if there are none.
    count: AtomicUsize,
    listeners: Mutex<[Listeners; 3]>,
}

/// The subscribers of each name, by session number.
type Listeners = BTreeMap<Arc<[u8]>, BTreeMap<u64, Arc<Subscriber>>>;

impl Channels {
    /// Sends messages, in order.
    pub(crate) fn publish_all(&self, messages: &[Message]) {
        messages.iter().for_each(|message| self.publish(message));
    }

    /// Sends a message to all subscribers of its channel. A subscriber that does not keep up is
    /// disconnected.
    pub(crate) fn publish(&self, message: &Message) {
        if !self.has_any() {
            return;
        }
        let [channels, patterns, shards] = &*self.lock();
        let Message { is_sharded, channel, payload } = message;
        let (listeners, kind): (_, &[u8]) =
            if *is_sharded { (shards, b"smessage") } else { (channels, b"message") };
        if let Some(subscribers) = listeners.get(&**channel) {
            push(subscribers, &[kind, channel, payload]);
        }
        if !is_sharded {
            for (pattern, subscribers) in patterns {
                if glob::matches(pattern, channel) {
                    push(subscribers, &[b"pmessage", pattern, channel, payload]);
                }
            }
        }
    }

    /// Closes the connections that `is_meant` selects by the user's name and one of the names that they
    /// listen to.
    pub(crate) fn disconnect(&self, is_meant: impl Fn(&str, Names, &[u8]) -> bool) {
        let listeners = self.lock();
        for names in [Names::Channels, Names::Patterns, Names::Shards] {
            for (name, subscribers) in &listeners[names as usize] {
                let subscribers = subscribers.values();
                for subscriber in subscribers {
                    if is_meant(&subscriber.client.names().user, names, name) {
                        subscriber.mailbox.kill();
                    }
                }
            }
        }
    }

    /// How many times a message would be delivered.
    pub(crate) fn receivers(&self, message: &Message) -> usize {
        if !self.has_any() {
            return 0;
        }
        let [channels, patterns, shards] = &*self.lock();
        let channel = &message.channel;
        let of_channel = |listeners: &Listeners| listeners.get(&**channel).map_or(0, BTreeMap::len);
        if message.is_sharded {
            return of_channel(shards);
        }
        let matching = patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
        of_channel(channels) + matching.map(|(_, subscribers)| subscribers.len()).sum::<usize>()
    }

    /// Whether there are any subscriptions.
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// The names that have subscribers, with how many, in order.
    pub(crate) fn all(&self, names: Names) -> Vec<(Arc<[u8]>, usize)> {
        let listeners = &self.lock()[names as usize];
        listeners.iter().map(|(name, subscribers)| (name.clone(), subscribers.len())).collect()
    }

    /// How many names have subscribers.
    pub(crate) fn len(&self, names: Names) -> usize {
        self.lock()[names as usize].len()
    }

    /// How many subscribers a name has.
    pub(crate) fn subscribers_of(&self, names: Names, name: &[u8]) -> usize {
        self.lock()[names as usize].get(name).map_or(0, BTreeMap::len)
    }

    pub(super) fn add(&self, names: Names, name: Arc<[u8]>, subscriber: &Arc<Subscriber>) {
        let mut listeners = self.lock();
        let subscribers = listeners[names as usize].entry(name).or_default();
        if subscribers.insert(subscriber.client.id, Arc::clone(subscriber)).is_none() {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn remove(&self, names: Names, name: &[u8], session: u64) {
        let mut listeners = self.lock();
        let listeners = &mut listeners[names as usize];
        let Some(subscribers) = listeners.get_mut(name) else { return };
        if subscribers.remove(&session).is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        if subscribers.is_empty() {
            listeners.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, [Listeners; 3]> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pushes a message, made of strings, to each subscriber in its version of the protocol.
fn push(subscribers: &BTreeMap<u64, Arc<Subscriber>>, parts: &[&[u8]]) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for subscriber in subscribers.values() {
        let (bytes, version) = match subscriber.client.is_resp3.load(Ordering::Relaxed) {
            false => (&mut old, Version::Resp2),
            true => (&mut new, Version::Resp3),
        };
        if bytes.is_empty() {
            let mut writer = ReplyWriter::new(bytes, version);
            writer.push(parts.len());
            parts.iter().for_each(|part| writer.bulk(part));
        }
        // A closed client gets nothing, and one that lags too far behind is about to be closed.
        let _ = subscriber.mailbox.push(bytes);
    }
}
