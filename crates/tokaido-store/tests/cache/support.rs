//! A clock for tests, and caches of a given size.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokaido_store::{
    Clock,
    cache::{Cache, Metadata, Options},
};

/// A clock that tests control.
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn at(now_ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(now_ms)))
    }

    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn cache(bytes_max: usize, shards: usize) -> Cache {
    clocked_cache(bytes_max, shards, TestClock::at(1_000))
}

pub(crate) fn clocked_cache(bytes_max: usize, shards: usize, clock: Arc<dyn Clock>) -> Cache {
    Cache::new(Options { bytes_max, shards, clock, ..Options::default() }).unwrap()
}

pub(crate) fn get(cache: &Cache, key: &[u8]) -> Option<(Vec<u8>, Metadata)> {
    let mut value = Vec::new();
    cache.get(key, &mut value).unwrap().map(|metadata| (value, metadata))
}

#[cfg(not(feature = "shuttle"))]
pub(crate) fn value(cache: &Cache, key: &[u8]) -> Option<Vec<u8>> {
    get(cache, key).map(|(value, _)| value)
}
