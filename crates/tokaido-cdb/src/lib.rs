//! Constant databases in D. J. Bernstein's file format: written once, then only read, and replaced
//! as a whole.
//!
//! A [`Writer`] streams records into a temporary file and renames it over the target; a [`Reader`]
//! maps a file into memory and finds a key with two look-ups. The files are interchangeable with
//! those of TinyCDB and other programs that use the format, which `docs/cdb.md` describes. [`View`]
//! reads a file that is in memory already.
//!
//! ```
//! use tokaido_cdb::{Options, Reader, Writer};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("stations.cdb");
//! let mut writer = Writer::create(&path, &Options::default())?;
//! writer.put(b"Shinagawa", b"8 km from Nihonbashi")?;
//! writer.put(b"Kawasaki", b"18 km from Nihonbashi")?;
//! writer.finish()?;
//!
//! let reader = Reader::open(&path)?;
//! assert_eq!(reader.get(b"Kawasaki")?, Some(&b"18 km from Nihonbashi"[..]));
//! assert_eq!(reader.get(b"Kobe")?, None);
//! for record in reader.iter() {
//!     let record = record?;
//!     println!("{} -> {}", record.key.escape_ascii(), record.value.escape_ascii());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod duplicates;
mod error;
mod format;
mod map;
mod options;
mod output;
mod reader;
mod statistics;
mod tables;
mod target;
mod view;
mod writer;

pub use error::{Damaged, MakeError, OpenError, shown_key};
pub use format::FILE_LEN_MAX;
pub use map::Map;
pub use options::{Duplicates, Options, Temporary};
pub use reader::{Identity, Reader};
pub use statistics::{Lengths, Statistics};
pub use view::{Iter, Record, Values, View};
pub use writer::{Put, Writer};
