//! The prefixes of BCAST: a session with a prefix is notified of every change of a key that begins with it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Prefixes and the numbers of the sessions that have them, grouped by length: finding those of a key takes one
/// look-up for each length.
#[derive(Default)]
pub(super) struct Prefixes(BTreeMap<usize, HashMap<Arc<[u8]>, BTreeSet<u64>>>);

impl Prefixes {
    /// The number of distinct prefixes.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, prefix: &Arc<[u8]>, session: u64) {
        let sessions = self.0.entry(prefix.len()).or_default().entry(Arc::clone(prefix));
        sessions.or_default().insert(session);
    }

    pub(super) fn remove(&mut self, prefix: &[u8], session: u64) {
        let Some(of_length) = self.0.get_mut(&prefix.len()) else { return };
        let Some(sessions) = of_length.get_mut(prefix) else { return };
        sessions.remove(&session);
        if sessions.is_empty() {
            of_length.remove(prefix);
        }
        if of_length.is_empty() {
            self.0.remove(&prefix.len());
        }
    }

    /// The prefixes that a key begins with, each with its sessions.
    pub(super) fn of<'p>(
        &'p self,
        key: &'p [u8],
    ) -> impl Iterator<Item = (&'p Arc<[u8]>, &'p BTreeSet<u64>)> {
        self.0
            .range(..=key.len())
            .filter_map(|(len, prefixes)| prefixes.get_key_value(&key[..*len]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_prefixes_that_it_begins_with() {
        let mut prefixes = Prefixes::default();
        for (prefix, session) in [("", 1), ("user:", 2), ("user:", 3), ("user:1", 4), ("item:", 5)]
        {
            prefixes.add(&prefix.as_bytes().into(), session);
        }
        let of = |prefixes: &Prefixes, key: &str| -> Vec<u64> {
            prefixes.of(key.as_bytes()).flat_map(|(_, sessions)| sessions.clone()).collect()
        };
        assert_eq!(of(&prefixes, "user:12"), [1, 2, 3, 4]);
        assert_eq!(of(&prefixes, "user:2"), [1, 2, 3]);
        assert_eq!(of(&prefixes, "user"), [1]);
        assert_eq!(prefixes.len(), 4);
        for (prefix, session) in [("", 1), ("user:", 2), ("user:", 9), ("no", 1), ("user:1", 4)] {
            prefixes.remove(prefix.as_bytes(), session);
        }
        assert_eq!(of(&prefixes, "user:12"), [3]);
        prefixes.remove(b"user:", 3);
        prefixes.remove(b"item:", 5);
        assert!(prefixes.is_empty());
    }
}
