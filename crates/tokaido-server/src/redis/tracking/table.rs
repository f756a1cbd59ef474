//! The table of tracked keys: which sessions have read which key since its last change.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque, hash_set},
    sync::Arc,
};

/// How many entries of sessions that have left are removed along with any other operation, so that none has
/// to wait for all of them.
const REMOVED_AT_ONCE: usize = 32;

/// A key, shared by the indexes of the table.
type Key = Arc<[u8]>;

/// Keys and the numbers of the sessions that have read them.
#[derive(Default)]
pub(super) struct Table {
    keys: HashMap<Key, Entry>,
    /// The keys by time of entry, oldest first.
    ages: BTreeMap<u64, Key>,
    next_age: u64,
    /// The total number of readers of all keys.
    items: usize,
    /// The keys that each session has read.
    readers: HashMap<u64, HashSet<Key>>,
    /// Sessions that have left, and keys for which they may still have entries.
    leaving: VecDeque<(u64, hash_set::IntoIter<Key>)>,
}

struct Entry {
    age: u64,
    /// Sorted.
    readers: Vec<u64>,
}

impl Table {
    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The total number of readers of all keys.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// Records that a session reads a key.
    pub(super) fn remember(&mut self, key: &[u8], reader: u64) {
        self.remove_some();
        let key = match self.keys.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => self.enter(key),
        };
        let Some(entry) = self.keys.get_mut(&key) else { return };
        if let Err(place) = entry.readers.binary_search(&reader) {
            entry.readers.insert(place, reader);
            self.items += 1;
        }
        self.readers.entry(reader).or_default().insert(key);
    }

    fn enter(&mut self, key: &[u8]) -> Key {
        let key: Key = key.into();
        let age = self.next_age;
        self.next_age += 1;
        self.ages.insert(age, Arc::clone(&key));
        self.keys.insert(Arc::clone(&key), Entry { age, readers: Vec::new() });
        key
    }

    /// Removes a key, or only its other readers if it has the one that `stays`. Returns the readers removed.
    pub(super) fn take(&mut self, key: &[u8], stays: Option<u64>) -> Vec<u64> {
        let Some((key, mut entry)) = self.keys.remove_entry(key) else { return Vec::new() };
        let stays = stays.filter(|reader| entry.readers.binary_search(reader).is_ok());
        entry.readers.retain(|reader| Some(*reader) != stays);
        self.items -= entry.readers.len();
        for reader in &entry.readers {
            self.forget(*reader, &key);
        }
        match stays {
            Some(reader) => {
                let Entry { age, readers } = entry;
                self.keys.insert(key, Entry { age, readers: vec![reader] });
                readers
            }
            None => {
                self.ages.remove(&entry.age);
                entry.readers
            }
        }
    }

    /// Removes a reader of a key.
    pub(super) fn take_reader(&mut self, key: &[u8], reader: u64) {
        let Some((key, _)) = self.keys.get_key_value(key) else { return };
        let key = Arc::clone(key);
        self.forget(reader, &key);
        self.remove(reader, &key);
    }

    /// Removes the oldest key, and returns it with its readers.
    pub(super) fn take_oldest(&mut self) -> Option<(Key, Vec<u64>)> {
        let (_, key) = self.ages.first_key_value()?;
        let key = Arc::clone(key);
        let readers = self.take(&key, None);
        Some((key, readers))
    }

    /// Removes a session that has left. Its entries are removed gradually.
    pub(super) fn leave(&mut self, reader: u64) {
        if let Some(keys) = self.readers.remove(&reader) {
            self.leaving.push_back((reader, keys.into_iter()));
        }
        self.remove_some();
    }

    /// Removes some entries of sessions that have left.
    pub(super) fn remove_some(&mut self) {
        for _ in 0..REMOVED_AT_ONCE {
            let Some((reader, keys)) = self.leaving.front_mut() else { return };
            let reader = *reader;
            match keys.next() {
                Some(key) => self.remove(reader, &key),
                None => {
                    self.leaving.pop_front();
                }
            }
        }
    }

    fn remove(&mut self, reader: u64, key: &Key) {
        // The session may have read the key again in the meantime.
        if self.readers.get(&reader).is_some_and(|keys| keys.contains(key)) {
            return;
        }
        let Some(entry) = self.keys.get_mut(key) else { return };
        let Ok(place) = entry.readers.binary_search(&reader) else { return };
        entry.readers.remove(place);
        self.items -= 1;
        if entry.readers.is_empty() {
            let age = entry.age;
            self.ages.remove(&age);
            self.keys.remove(key);
        }
    }

    fn forget(&mut self, reader: u64, key: &Key) {
        let Some(keys) = self.readers.get_mut(&reader) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.readers.remove(&reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn check(table: &Table, model: &BTreeMap<Vec<u8>, BTreeSet<u64>>) {
        let found: BTreeMap<Vec<u8>, BTreeSet<u64>> = table
            .keys
            .iter()
            .map(|(key, entry)| (key.to_vec(), entry.readers.iter().copied().collect()))
            .collect();
        assert_eq!(&found, model);
        assert_eq!(table.len(), table.ages.len());
        assert_eq!(table.items(), model.values().map(BTreeSet::len).sum::<usize>());
        let of_readers: usize = table.readers.values().map(HashSet::len).sum();
        assert_eq!(of_readers, table.items());
    }

    #[test]
    fn it_does_what_a_map_of_sets_would_do() {
        let mut table = Table::default();
        let mut model: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..20_000 {
            let key = vec![b'k'; 1 + random(20) as usize];
            let reader = random(5);
            match random(9) {
                8 => {
                    table.take_reader(&key, reader);
                    if let Some(readers) = model.get_mut(&key) {
                        readers.remove(&reader);
                    }
                    model.retain(|_, readers| !readers.is_empty());
                }
                0..5 => {
                    table.remember(&key, reader);
                    model.entry(key).or_default().insert(reader);
                }
                5 => {
                    let taken: BTreeSet<_> = table.take(&key, None).into_iter().collect();
                    assert_eq!(taken, model.remove(&key).unwrap_or_default());
                }
                6 => {
                    let taken: BTreeSet<_> = table.take(&key, Some(reader)).into_iter().collect();
                    let mut expected = model.remove(&key).unwrap_or_default();
                    if expected.remove(&reader) {
                        model.insert(key, [reader].into());
                    }
                    assert_eq!(taken, expected);
                }
                _ => {
                    table.leave(reader);
                    while !table.leaving.is_empty() {
                        table.remove_some();
                    }
                    model.retain(|_, readers| {
                        readers.remove(&reader);
                        !readers.is_empty()
                    });
                }
            }
            check(&table, &model);
        }
    }

    #[test]
    fn the_oldest_key_goes_first_whoever_has_read_it_last() {
        let mut table = Table::default();
        for (key, reader) in [(b"a", 1), (b"b", 1), (b"a", 2)] {
            table.remember(key, reader);
        }
        let (key, readers) = table.take_oldest().expect("there are two");
        assert_eq!((&*key, readers), (&b"a"[..], vec![1, 2]));
        assert_eq!((table.len(), table.items()), (1, 1));
    }

    #[test]
    fn who_leaves_with_many_keys_holds_nobody_up_and_is_gone_in_the_end() {
        let mut table = Table::default();
        for number in 0..1000u32 {
            table.remember(&number.to_be_bytes(), 1);
        }
        table.leave(1);
        assert!(table.items() > 900, "all entries were removed at once");
        table.remember(b"other", 2);
        // The session reads a key again: the new entry is not removed with those it has left.
        table.remember(&999u32.to_be_bytes(), 1);
        for _ in 0..1000 {
            table.remove_some();
        }
        assert_eq!((table.len(), table.items()), (2, 2));
        assert!(table.leaving.is_empty());
    }
}
