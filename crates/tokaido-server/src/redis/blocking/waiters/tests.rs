//! Which sessions are woken by what, and which may take it.

use tokaido_collections::{End, List, Packing, Stream};
use tokaido_store::{Writer, transact, tree};

use super::*;
use crate::{
    Shared, SharedOptions,
    mailbox::{MailboxReceiver, mailbox},
    redis::Session,
};

/// Sessions that wait for items of the list `k`, each for a number of them.
struct Crowd {
    shared: Arc<Shared>,
    waiting: Vec<Option<Waiting>>,
    sessions: Vec<(Session, MailboxReceiver)>,
    _directory: tempfile::TempDir,
}

impl Crowd {
    fn of(counts: &[u64]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = tree::open(directory.path(), tree::Options::default()).expect("a store");
        let shared = Shared::new(Arc::new(store), SharedOptions::default()).expect("a database");
        let mut crowd = Self {
            shared: Arc::new(shared),
            waiting: Vec::new(),
            sessions: Vec::new(),
            _directory: directory,
        };
        counts.iter().for_each(|&count| crowd.join(count));
        crowd
    }

    fn join(&mut self, count: u64) {
        self.join_with(self.wish(count));
    }

    /// Adds a session that waits for entries of the stream `k`, optionally as a consumer.
    fn join_stream(&mut self, group: Option<&str>) {
        self.join_with(self.stream_wish(group));
    }

    fn stream_wish(&self, group: Option<&str>) -> Wish {
        let group = group.map(|group| group.as_bytes().into());
        Wish { kind: Kind::Stream, group, ..self.wish(1) }
    }

    fn join_with(&mut self, wish: Wish) {
        let (mailbox, receiver) = mailbox(1);
        let session = Session::new(&self.shared, "peer", "local");
        let waiting =
            Waiting::new(Arc::clone(&self.shared.waiters), session.client_handle(), Vec::new());
        waiting.wait(wish, mailbox);
        self.waiting.push(Some(waiting));
        self.sessions.push((session, receiver));
    }

    fn wish(&self, count: u64) -> Wish {
        let name = Arc::clone(self.shared.main_selected().name());
        let database = self.shared.main();
        Wish { database, name, kind: Kind::List, keys: vec![b"k"[..].into()], count, group: None }
    }

    fn append(&self) {
        let stream = Stream::new(self.shared.main(), b"k");
        let mut writer = self.shared.store().writer().expect("a writer");
        let append = |tx: &mut dyn tokaido_store::WriteTransaction| {
            let mut state = stream.open(tx)?;
            let id = state.last_id.next().expect("an id");
            stream.append(tx, &mut state, id, [&b"f"[..], b"v"].into_iter())
        };
        transact(&mut *writer as &mut dyn Writer, append).expect("an entry");
    }

    fn delete(&self) {
        let mut writer = self.shared.store().writer().expect("a writer");
        let delete =
            |tx: &mut dyn tokaido_store::WriteTransaction| tx.delete(self.shared.main(), b"k");
        transact(&mut *writer as &mut dyn Writer, delete).expect("it is deleted");
    }

    fn push(&self, items: usize) {
        let list = List::new(self.shared.main(), b"k");
        let mut writer = self.shared.store().writer().expect("a writer");
        let items = vec![&b"v"[..]; items];
        let push = |tx: &mut dyn tokaido_store::WriteTransaction| {
            list.push(tx, Packing::default(), End::Back, items.iter().copied())
        };
        transact(&mut *writer as &mut dyn Writer, push).expect("a push");
    }

    /// The sessions woken since the last call.
    fn woken(&mut self) -> Vec<usize> {
        let all = self.sessions.iter_mut().enumerate();
        let woken = all.filter_map(|(index, (_, receiver))| {
            receiver.take_all(&mut Vec::new()).expect("it is open").then_some(index)
        });
        woken.collect()
    }

    fn may_take(&self, index: usize, len: u64) -> bool {
        let session = self.sessions[index].0.id();
        self.shared.waiters.may_take(session, &self.wish(1), b"k", len)
    }
}

#[test]
fn as_many_are_woken_as_there_are_elements_for() {
    let mut crowd = Crowd::of(&[1, 3, 1, 1]);
    crowd.push(4);
    assert_eq!(crowd.woken(), [0, 1]);
    crowd.push(1);
    assert_eq!(crowd.woken(), [0, 1, 2]);
}

#[test]
fn all_readers_are_woken_and_of_a_group_the_first_is_served() {
    let mut crowd = Crowd::of(&[]);
    for group in [None, Some("g"), Some("g"), Some("h"), None] {
        crowd.join_stream(group);
    }
    crowd.append();
    assert_eq!(crowd.woken(), [0, 1, 2, 3, 4]);
    let is_first = |crowd: &Crowd, index: usize, group| {
        let session = crowd.sessions[index].0.id();
        crowd.shared.waiters.is_first(session, &crowd.stream_wish(Some(group)), b"k")
    };
    assert!(is_first(&crowd, 1, "g") && !is_first(&crowd, 2, "g") && is_first(&crowd, 3, "h"));
    crowd.waiting[1] = None;
    assert_eq!(crowd.woken(), [2]);
    assert!(is_first(&crowd, 2, "g"));
    // A deleted stream has no groups any more. A session that only reads goes on waiting.
    crowd.delete();
    assert_eq!(crowd.woken(), [2, 3]);
    crowd.push(1);
    assert_eq!(crowd.woken(), [2, 3]);
}

#[test]
fn whoever_comes_later_leaves_what_others_wait_for() {
    let mut crowd = Crowd::of(&[1, 3, 1]);
    assert!(crowd.may_take(0, 1) && crowd.may_take(1, 2) && crowd.may_take(2, 5));
    assert!(!crowd.may_take(1, 1) && !crowd.may_take(2, 4));
    crowd.waiting[1] = None;
    assert!(crowd.may_take(2, 2));
    crowd.join(1);
    assert!(!crowd.may_take(3, 2));
}

#[test]
fn one_that_is_woken_and_leaves_lets_the_next_know() {
    let mut crowd = Crowd::of(&[1, 1, 1]);
    crowd.push(1);
    assert_eq!(crowd.woken(), [0]);
    crowd.waiting[0] = None;
    assert_eq!(crowd.woken(), [1]);
    crowd.waiting[1].take().expect("it waits").served(b"k");
    assert_eq!(crowd.woken(), [0; 0]);
    crowd.waiting[2] = None;
    assert_eq!(crowd.shared.waiters.len(), 0);
    assert!(crowd.shared.waiters.lock().observer.is_none());
}
