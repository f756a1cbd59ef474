//! Values in the format of Redis's files: what DUMP writes and RESTORE reads, and the libraries of
//! FUNCTION DUMP.
//!
//! A payload is a value, then the version of the format (`u16`, little-endian), then a checksum of everything
//! before it (CRC-64, `u64`, little-endian). [`seal`] adds both; [`unseal`] checks and removes them:
//!
//! ```
//! use tokaido_wire::rdb::{self, Encoder, Value};
//!
//! let mut payload = Vec::new();
//! Encoder::new(&mut payload).string(b"text");
//! rdb::seal(&mut payload);
//! let Value::String(text) = rdb::decode(rdb::unseal(&payload)?, 1 << 20)? else { panic!() };
//! assert_eq!(text, b"text");
//! # Ok::<(), rdb::PayloadError>(())
//! ```
//!
//! Sources: what Redis 7.0 writes and reads, and the descriptions of listpacks, ziplists and LZF by
//! their authors.

mod checksum;
mod decode;
mod encode;
mod libraries;
mod lzf;
mod packed;
mod reader;
mod stream;
mod texts;

use checksum::crc64;

pub use decode::{Value, decode};
pub use encode::Encoder;
pub use libraries::{decode_libraries, encode_library};
pub use stream::{EntryId, GroupValue, PackedEntries, PendingValue, StreamValue};
pub use texts::Texts;

/// The version of the format that is written: that of Redis 7.0.
pub const VERSION: u16 = 10;

/// The highest version that is read: that of Redis 7.2.
pub const VERSION_MAX: u16 = 11;

/// The length of version and checksum, in bytes.
const FOOTER_LEN: usize = 10;

/// Why a payload is refused. The texts are Redis's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It has a newer version, or was changed after it was made.
    #[error("DUMP payload version or checksum are wrong")]
    Footer,
    /// It holds no value.
    #[error("Bad data format")]
    Format,
    /// The value would take more memory than allowed.
    #[error("the value is too large to be restored at once")]
    TooLarge,
}

/// Adds version and checksum.
pub fn seal(payload: &mut Vec<u8>) {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks version and checksum, and returns what comes before them.
///
/// # Errors
/// [`PayloadError::Footer`].
pub fn unseal(payload: &[u8]) -> Result<&[u8], PayloadError> {
    let body_len = payload.len().checked_sub(FOOTER_LEN).ok_or(PayloadError::Footer)?;
    let (body, footer) = payload.split_at(body_len);
    let (version, checksum) = footer.split_at(size_of::<u16>());
    let version = version.try_into().map(u16::from_le_bytes);
    let checksum = checksum.try_into().map(u64::from_le_bytes);
    let expected = crc64(&payload[..body_len + size_of::<u16>()]);
    match (version, checksum) {
        (Ok(..=VERSION_MAX), Ok(checksum)) if checksum == expected => Ok(body),
        _ => Err(PayloadError::Footer),
    }
}
