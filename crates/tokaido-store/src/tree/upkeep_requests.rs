//! The collections for which readers want a writer's work.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::DatabaseId;

/// Maximum number of requests. Further ones are dropped; their readers repeat them.
const REQUESTS_MAX: usize = 64;

/// A database and a key.
type Request = (DatabaseId, Vec<u8>);

#[derive(Default)]
pub(super) struct UpkeepRequests {
    /// Whether there may be any, so that a writer seldom has to take the lock to find none.
    has_any: AtomicBool,
    /// The oldest one is the last.
    requests: Mutex<Vec<Request>>,
}

impl UpkeepRequests {
    pub(super) fn add(&self, database: DatabaseId, key: &[u8]) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = requests.iter().any(|known| known.0 == database && known.1 == key);
        if !is_known && requests.len() < REQUESTS_MAX {
            requests.insert(0, (database, key.to_vec()));
            self.has_any.store(true, Relaxed);
        }
    }

    pub(super) fn has_any(&self) -> bool {
        self.has_any.load(Relaxed)
    }

    pub(super) fn take(&self) -> Option<Request> {
        if !self.has_any() {
            return None;
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = requests.pop();
        self.has_any.store(!requests.is_empty(), Relaxed);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_once_in_order_and_are_bounded() {
        let (requests, database) = (UpkeepRequests::default(), DatabaseId::from_index(3));
        assert_eq!(requests.take(), None);
        for _ in 0..2 {
            for n in 0..200u8 {
                requests.add(database, &[n]);
            }
        }
        for n in 0..REQUESTS_MAX as u8 {
            assert_eq!(requests.take(), Some((database, vec![n])));
        }
        assert_eq!(requests.take(), None);
        assert!(!requests.has_any());
        requests.add(database, b"again");
        assert!(requests.has_any());
        assert_eq!(requests.take(), Some((database, b"again".to_vec())));
    }
}
