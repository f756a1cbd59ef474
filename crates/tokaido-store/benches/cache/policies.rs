//! Other eviction policies, for comparison: simulated where the real thing is a server.

use std::collections::{HashMap, VecDeque};

use tokaido_store::{NewRecord, cache::Cache};

use crate::traces;

/// A cache of records of one size.
pub(crate) trait Policy {
    /// Asks for a key, and puts it if it is missing; returns whether it was there.
    fn access(&mut self, key: u64) -> bool;
}

impl Policy for (Cache, Vec<u8>) {
    fn access(&mut self, n: u64) -> bool {
        let (cache, buffer) = self;
        let key = traces::key(n);
        let is_hit = cache.get(&key, buffer).unwrap().is_some();
        if !is_hit {
            cache.set(&key, NewRecord::of(&[b'v'; 64])).unwrap();
        }
        is_hit
    }
}

impl Policy for quick_cache::sync::Cache<u64, ()> {
    fn access(&mut self, key: u64) -> bool {
        let is_hit = self.get(&key).is_some();
        if !is_hit {
            self.insert(key, ());
        }
        is_hit
    }
}

impl Policy for moka::sync::Cache<u64, ()> {
    fn access(&mut self, key: u64) -> bool {
        let is_hit = self.get(&key).is_some();
        if !is_hit {
            self.insert(key, ());
            self.run_pending_tasks();
        }
        is_hit
    }
}

/// A queue with lazy removal: members that have left stay in it, and are skipped.
#[derive(Default)]
struct Queue {
    members: VecDeque<(u64, u64)>,
    len: usize,
}

/// The queue that a key is in, its arrival number there, and memcached's marks.
#[derive(Clone, Copy)]
struct Place {
    queue: usize,
    arrival: u64,
    is_fetched: bool,
    is_active: bool,
}

/// Queues of keys, each from the oldest arrival to the newest; three at most.
#[derive(Default)]
struct Queues {
    queues: [Queue; 3],
    places: HashMap<u64, Place>,
    arrivals: u64,
}

impl Queues {
    fn put(&mut self, key: u64, queue: usize, is_fetched: bool) {
        self.remove(key);
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.places.insert(key, Place { queue, arrival, is_fetched, is_active: false });
        self.queues[queue].members.push_back((key, arrival));
        self.queues[queue].len += 1;
    }

    fn remove(&mut self, key: u64) {
        if let Some(place) = self.places.remove(&key) {
            self.queues[place.queue].len -= 1;
        }
    }

    fn oldest(&mut self, queue: usize) -> Option<(u64, Place)> {
        loop {
            let (key, arrival) = *self.queues[queue].members.front()?;
            match self.places.get(&key) {
                Some(place) if place.arrival == arrival => return Some((key, *place)),
                _ => self.queues[queue].members.pop_front(),
            };
        }
    }
}

/// Plain LRU.
pub(crate) struct Lru {
    queues: Queues,
    capacity: usize,
}

impl Lru {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queues: Queues::default(), capacity }
    }
}

impl Policy for Lru {
    fn access(&mut self, key: u64) -> bool {
        let is_hit = self.queues.places.contains_key(&key);
        self.queues.put(key, 0, false);
        if self.queues.places.len() > self.capacity {
            let (oldest, _) = self.queues.oldest(0).expect("it is over capacity");
            self.queues.remove(oldest);
        }
        is_hit
    }
}

/// memcached's segmented LRU: HOT, WARM and COLD with its default shares of memory. Its age
/// limits are left out, and its maintainer thread has always finished.
pub(crate) struct Memcached {
    queues: Queues,
    capacity: usize,
}

const HOT: usize = 0;
const WARM: usize = 1;
const COLD: usize = 2;

impl Memcached {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { queues: Queues::default(), capacity }
    }

    fn juggle(&mut self) {
        for (queue, share) in [(HOT, 0.2), (WARM, 0.4)] {
            while self.queues.queues[queue].len as f64 > self.capacity as f64 * share {
                let (key, place) = self.queues.oldest(queue).expect("it is over its share");
                let to = if place.is_active { WARM } else { COLD };
                self.queues.put(key, to, place.is_fetched);
            }
        }
        while self.queues.places.len() > self.capacity {
            let Some((key, _)) = self.queues.oldest(COLD) else { return };
            self.queues.remove(key);
        }
    }
}

impl Policy for Memcached {
    fn access(&mut self, key: u64) -> bool {
        let Some(place) = self.queues.places.get_mut(&key) else {
            self.queues.put(key, HOT, false);
            self.juggle();
            return false;
        };
        // The first fetch only marks it; the second makes it active, and moves it out of COLD.
        place.is_active |= place.is_fetched;
        place.is_fetched = true;
        if place.is_active && place.queue == COLD {
            self.queues.put(key, WARM, true);
            self.juggle();
        }
        true
    }
}
