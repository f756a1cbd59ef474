//! A session that is notified of changes, and the message that notifies it.

use std::{
    cell::OnceCell,
    sync::{Arc, atomic::Ordering},
};

use tokaido_wire::resp::{ReplyWriter, Version};

use crate::redis::clients::{Client, Mark};

/// The channel for invalidations in version 2 of the protocol.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// A session that tracks keys.
pub(super) struct Listener {
    pub(super) client: Arc<Client>,
    /// The session to notify instead.
    pub(super) redirect: Option<Arc<Client>>,
    /// Whether it is not notified of its own changes.
    pub(super) skips_own: bool,
}

impl Listener {
    /// Notifies the client, or the one that it has named, if it can be reached.
    pub(super) fn tell(&self, message: &Message<'_>) {
        let target = self.redirect.as_ref().unwrap_or(&self.client);
        if self.redirect.is_some() && !target.is_open() {
            return self.tell_broken(target.id);
        }
        let bytes = if target.is_resp3.load(Ordering::Relaxed) {
            message.pushed()
        } else if self.redirect.is_some() && target.is_subscribed() {
            message.published()
        } else {
            return;
        };
        // A closed client gets nothing, and one that lags too far behind is about to be closed.
        let _ = target.push(bytes);
    }

    fn tell_broken(&self, redirect: u64) {
        self.client.mark(Mark::BrokenRedirect, true);
        if self.client.is_resp3.load(Ordering::Relaxed) {
            let mut bytes = Vec::new();
            let mut writer = ReplyWriter::new(&mut bytes, Version::Resp3);
            writer.push(2);
            writer.bulk(b"tracking-redir-broken");
            writer.integer(redirect as i64);
            let _ = self.client.push(&bytes);
        }
    }
}

/// Changed keys, or all keys. Each encoding of the message is created when first needed.
pub(super) struct Message<'k> {
    /// `None`: all keys.
    keys: Option<Vec<&'k [u8]>>,
    pushed: OnceCell<Vec<u8>>,
    published: OnceCell<Vec<u8>>,
}

impl<'k> Message<'k> {
    pub(super) fn of_keys(keys: Vec<&'k [u8]>) -> Self {
        Self { keys: Some(keys), pushed: OnceCell::new(), published: OnceCell::new() }
    }

    pub(super) fn of_key(key: &'k [u8]) -> Self {
        Self::of_keys(vec![key])
    }

    pub(super) fn of_all() -> Self {
        Self { keys: None, pushed: OnceCell::new(), published: OnceCell::new() }
    }

    fn pushed(&self) -> &[u8] {
        self.pushed.get_or_init(|| self.written(Version::Resp3, &[b"invalidate"]))
    }

    fn published(&self) -> &[u8] {
        self.published.get_or_init(|| self.written(Version::Resp2, &[b"message", CHANNEL]))
    }

    fn written(&self, version: Version, head: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ReplyWriter::new(&mut bytes, version);
        writer.push(head.len() + 1);
        head.iter().for_each(|part| writer.bulk(part));
        match &self.keys {
            None => writer.null(),
            Some(keys) => {
                writer.array(keys.len());
                keys.iter().for_each(|key| writer.bulk(key));
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalidations_have_the_form_that_redis_gives_them() {
        let message = Message::of_keys(vec![b"a", b"b"]);
        assert_eq!(message.pushed(), b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        let published =
            b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
        assert_eq!(message.published(), published);
        let message = Message::of_all();
        assert_eq!(message.pushed(), b">2\r\n$10\r\ninvalidate\r\n_\r\n");
        assert!(message.published().ends_with(b":invalidate\r\n$-1\r\n"));
    }
}
