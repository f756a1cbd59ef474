//! The caches that are timed, behind one trait. Each copies the value into the reader's buffer,
//! and holds flags, expiry and version beside it, as a replacement for memcached must.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokaido_store::{
    NewRecord,
    cache::{Cache, Options},
};

/// Bytes in front of a peer's value: version, expiry, flags.
const HEADER_LEN: usize = 20;

pub(crate) trait Subject: Send + Sync {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool;
    fn set(&self, key: &[u8], value: &[u8]);
}

pub(crate) struct Tokaido(pub(crate) Cache);

impl Subject for Tokaido {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        self.0.get(key, value).unwrap().is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.set(key, NewRecord::of(value)).unwrap();
    }
}

#[derive(Default)]
pub(crate) struct Versions(AtomicU64);

impl Versions {
    /// A peer's value: one allocation, shared with readers, since a read must outlive its lock.
    fn wrap(&self, value: &[u8]) -> Arc<[u8]> {
        let version = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let header = version.into_iter().chain([0; HEADER_LEN - 8]);
        let mut bytes = Vec::with_capacity(HEADER_LEN + value.len());
        bytes.extend(header);
        bytes.extend_from_slice(value);
        Arc::from(bytes)
    }
}

fn unwrap(found: Option<Arc<[u8]>>, value: &mut Vec<u8>) -> bool {
    let Some(found) = found else { return false };
    value.clear();
    value.extend_from_slice(&found[HEADER_LEN..]);
    true
}

pub(crate) struct QuickCache(quick_cache::sync::Cache<Box<[u8]>, Arc<[u8]>>, Versions);

impl Subject for QuickCache {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        unwrap(self.0.get(key), value)
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), self.1.wrap(value));
    }
}

pub(crate) struct Moka(moka::sync::Cache<Box<[u8]>, Arc<[u8]>>, Versions);

impl Subject for Moka {
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        unwrap(self.0.get(key), value)
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), self.1.wrap(value));
    }
}

pub(crate) const NAMES: [&str; 3] = ["tokaido", "quick_cache", "moka"];

/// A cache with room for `records` of 16 + 64 bytes.
pub(crate) fn new(name: &str, records: usize) -> Box<dyn Subject> {
    match name {
        "tokaido" => {
            let options = Options { bytes_max: records * 130, ..Options::default() };
            Box::new(Tokaido(Cache::new(options).unwrap()))
        }
        "quick_cache" => {
            Box::new(QuickCache(quick_cache::sync::Cache::new(records), Versions::default()))
        }
        "moka" => Box::new(Moka(moka::sync::Cache::new(records as u64), Versions::default())),
        name => panic!("no cache is called {name}; there are {NAMES:?}"),
    }
}
