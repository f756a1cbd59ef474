//! An in-process cache in the role of memcached.
//!
//! It holds records in memory, bounded in bytes, with flags, expiry and a version (memcached's
//! cas), for any number of threads. It is **not transactional**: each call is atomic by itself and
//! takes effect at once, and nothing is on disk. Decisions and figures: docs/cache.md.
//!
//! ```
//! use tokaido_store::{NewRecord, cache};
//!
//! let cache = cache::Cache::new(cache::Options { bytes_max: 16 << 20, ..Default::default() })?;
//! let version = cache.set(b"page:/index", NewRecord::of(b"<html>"))?;
//!
//! let mut value = Vec::new(); // Reused for every read, so that reads allocate nothing.
//! let found = cache.get(b"page:/index", &mut value)?.expect("it was set a moment ago");
//! assert_eq!((&value[..], found.version), (&b"<html>"[..], version));
//!
//! cache.set(b"hits", NewRecord::of(b"9"))?;
//! assert_eq!(cache.increment(b"hits", 1)?, Some(10));
//! assert!(cache.statistics().bytes_used <= 16 << 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to look: `handle` for the cache and its reads, `write`, `counter`, `dictionary` and `scan` for
//! the other operations, `transaction` and `turn` for commands of several operations; below them
//! `shard` (what one lock guards), `index` (hash table), `segment` and `record` (memory), `evict`
//! and `ghost` (eviction).

mod counter;
mod dictionary;
mod error;
mod evict;
mod ghost;
mod handle;
mod index;
mod memory;
mod options;
mod record;
mod scan;
mod segment;
mod shard;
mod statistics;
mod sync;
mod transaction;
mod turn;
mod write;

pub use dictionary::{DictionaryError, Element, End, NumberText, Put, parse_number};
pub use error::OptionsError;
pub use handle::{Cache, Metadata};
pub use options::Options;
pub use scan::{Cursor, ScanPage};
pub use statistics::Statistics;
pub use transaction::CacheTransaction;
pub use write::CasOutcome;
