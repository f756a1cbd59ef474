//! Publishes the events of committed transactions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU16, Ordering},
    },
};

use tokaido_store::{
    Change, CommitNumber, DatabaseId, Observer, ObserverGuard, Store, TransactError,
    TransactionChanges, What, WriteTransaction, Writer, transact_numbered,
};

use super::{classes::Classes, names};
use crate::redis::{Message, call::Call, command::Command, pubsub::Channels, uses::key_places};

/// Redis's name for the database `main`: its number, 0.
const MAIN: &str = "0";

/// Publishes events, if any are wanted. Otherwise it costs each write one atomic load.
pub(crate) struct Notifier {
    store: Weak<dyn Store>,
    main: DatabaseId,
    channels: Arc<Channels>,
    wanted: AtomicU16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Present while events are wanted.
    observer: Option<ObserverGuard>,
    /// What commands have done in transactions that are not published yet.
    noted: BTreeMap<CommitNumber, Vec<Note>>,
    /// The names of databases, and how many had been dropped when the names were read.
    databases: (u64, HashMap<DatabaseId, String>),
}

/// The names that a command gives to what it did to a key.
struct Note {
    /// `None`: a database other than the selected one.
    database: Option<DatabaseId>,
    key: Vec<u8>,
    names: &'static [&'static str],
}

impl Notifier {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        main: DatabaseId,
        channels: Arc<Channels>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::downgrade(store),
            main,
            channels,
            wanted: AtomicU16::new(0),
            state: Mutex::default(),
        })
    }

    /// The events to publish.
    pub(crate) fn wanted(&self) -> Classes {
        Classes::from_bits(self.wanted.load(Ordering::Relaxed))
    }

    /// From now on, publishes these events.
    pub(crate) fn want(self: &Arc<Self>, classes: Classes) {
        let mut state = self.lock();
        self.wanted.store(classes.bits(), Ordering::Relaxed);
        if !classes.wants_any() {
            *state = State::default();
        } else if state.observer.is_none() {
            let store = self.store.upgrade();
            state.observer = store.and_then(|store| store.observe(Arc::clone(self) as _));
        }
    }

    /// Records what a command has done in a transaction that may yet be rolled back.
    pub(crate) fn note(&self, command: &Command, call: &Call<'_>, tx: &dyn WriteTransaction) {
        if !self.wanted().wants_any() {
            return;
        }
        let mut state = self.lock();
        let noted = state.noted.entry(tx.number()).or_default();
        for place in key_places(command, call.request).unwrap_or_default() {
            let key = call.arg(place).to_vec();
            let names = names::of_command(command.name, call, place);
            if command.name == "move" {
                noted.push(Note { database: None, key: key.clone(), names: &["move_to"] });
            }
            let database = Some(call.database).filter(|_| command.name != "copy");
            noted.push(Note { database, key, names });
        }
    }

    /// Like [`note`](Self::note), for a command that itself says what it has done to a key.
    pub(crate) fn note_names(
        &self,
        database: DatabaseId,
        key: &[u8],
        names: &'static [&'static str],
        tx: &dyn WriteTransaction,
    ) {
        if self.wanted().wants_any() {
            let note = Note { database: Some(database), key: key.to_vec(), names };
            self.lock().noted.entry(tx.number()).or_default().push(note);
        }
    }

    /// Runs `body` as one transaction, and again after a conflict; the caller flushes. Notes of an attempt that
    /// is not committed are discarded. Also returns the transaction's number if it has changed anything.
    ///
    /// # Errors
    /// The body's error, or the reason why the store did not commit.
    pub(crate) fn transact<T, E>(
        &self,
        writer: &mut dyn Writer,
        mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
    ) -> Result<(T, Option<CommitNumber>), TransactError<E>> {
        let mut number = 0;
        let ran = transact_numbered(writer, |tx| {
            number = tx.number();
            self.forget(number);
            body(tx)
        });
        if ran.is_err() {
            self.forget(number);
        }
        // A transaction that has changed nothing leaves its number to the next one.
        ran.map(|(result, committed)| (result, Some(committed).filter(|&last| last == number)))
    }

    /// Discards the notes under a number whose transaction begins or was rolled back.
    fn forget(&self, number: CommitNumber) {
        if self.wanted().wants_any() {
            self.lock().noted.remove(&number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the events of one transaction, in the order in which its commands named the keys.
    fn publish_all(&self, state: &mut State, notes: &[Note], transaction: &TransactionChanges<'_>) {
        let mut by_key: HashMap<&[u8], (usize, Vec<&Note>)> = HashMap::new();
        for (order, note) in notes.iter().enumerate() {
            by_key.entry(&note.key).or_insert((order, Vec::new())).1.push(note);
        }
        let changes = transaction.changes.iter().filter(|change| !change.database.is_elements());
        let mut changes: Vec<_> = changes.filter_map(|c| Some((key_of(c)?, c))).collect();
        changes.sort_by_key(|(key, _)| by_key.get(key).map_or(usize::MAX, |(order, _)| *order));
        for (key, change) in changes {
            let notes = by_key.get(key).map_or(&[][..], |(_, notes)| notes);
            self.publish_change(state, notes, key, change);
        }
    }

    fn publish_change(&self, state: &mut State, notes: &[&Note], key: &[u8], change: &Change<'_>) {
        let names_in = |database| {
            let notes = notes.iter().filter(move |note| note.database == database);
            notes.flat_map(|note| note.names).copied()
        };
        let mut named: Vec<&str> = names_in(Some(change.database)).collect();
        if named.is_empty() {
            named.extend(names_in(None));
        }
        if matches!(change.what, What::Deleted { .. }) {
            if named.last().is_some_and(|name| names::is_of_staying(name)) {
                named.pop();
            }
            if !named.last().is_some_and(|name| names::is_of_going(name)) {
                named.push("del");
            }
        }
        if named.is_empty() {
            named.extend(names::of_change(change.what));
        }
        let Some(database) = self.name_of(state, change.database) else { return };
        for name in named {
            self.publish(&database, key, name);
        }
    }

    fn publish(&self, database: &str, key: &[u8], name: &str) {
        let wanted = self.wanted();
        if !wanted.has(names::class(name)) {
            return;
        }
        let message = |channel: Vec<u8>, payload: &[u8]| Message {
            is_sharded: false,
            channel,
            payload: payload.to_vec(),
        };
        if wanted.has(Classes::KEYSPACE) {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            self.channels.publish(&message(channel, name.as_bytes()));
        }
        if wanted.has(Classes::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{name}");
            self.channels.publish(&message(channel.into(), key));
        }
    }

    fn name_of(&self, state: &mut State, database: DatabaseId) -> Option<String> {
        if database == self.main {
            return Some(MAIN.to_owned());
        }
        let store = self.store.upgrade()?;
        let (looked_at, names) = &mut state.databases;
        let dropped = store.databases_dropped();
        if *looked_at != dropped || !names.contains_key(&database) {
            (*looked_at, *names) = (dropped, store.databases().into_iter().collect());
        }
        names.get(&database).cloned()
    }
}

fn key_of<'g>(change: &Change<'g>) -> Option<&'g [u8]> {
    match change.what {
        What::Put { key, .. } | What::Deleted { key } | What::Reclaimed { key } => Some(key),
        What::Cleared | What::Moved { .. } => None,
    }
}

impl Observer for Notifier {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        let state = &mut *self.lock();
        for transaction in group {
            let notes = state.noted.remove(&transaction.number).unwrap_or_default();
            if self.channels.has_any() {
                self.publish_all(state, &notes, transaction);
            }
        }
        if let Some(last) = group.last() {
            state.noted = state.noted.split_off(&(last.number + 1));
        }
    }
}
