//! The update log of Tokyo Tyrant, the files `00000001.ulog`, `00000002.ulog`, … that `ttserver -ulog`
//! writes and the command `restore` replays.
//!
//! An entry is a byte 0xc9, the time of the update in microseconds since the epoch (8 bytes), the
//! ids of the server that the client updated and of the one that passed the update on (2 bytes
//! each), the length of a message (4 bytes), and the message; all numbers are big-endian. The
//! message is the request as a client sends it, except that `misc` has no options, followed by a
//! byte that is 0 if the update was made. (Source: `tculog.c` of Tokyo Tyrant 1.1.41.)

use super::{binary, commands::Verb};

/// The suffix of the file names, after their numbers.
pub const SUFFIX: &str = ".ulog";

/// The first byte of each entry.
const MAGIC: u8 = 0xc9;

/// The length of an entry without its message.
const HEAD_LEN: usize = 17;

/// The offset of the length of the message.
const LEN_AT: usize = 13;

/// An update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When it was made, in microseconds since the epoch.
    pub time_us: u64,
    message: &'a [u8],
}

/// The outcome of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The input ends within an entry.
    Incomplete,
    /// The input begins with a whole entry.
    Complete {
        /// Its length in bytes: where the next one begins.
        consumed: usize,
        /// The entry.
        entry: Entry<'a>,
    },
}

/// The input is not an update log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateLogError {
    /// No entry begins with this byte.
    #[error("no entry of an update log begins with {0:#04x}")]
    Magic(u8),
    /// A message is longer than the limit.
    #[error("the update log has a message of {len} bytes, and one may have {max} here")]
    TooLong {
        /// Its length.
        len: u32,
        /// The limit.
        max: usize,
    },
    /// A message is too short to be valid.
    #[error("the update log has a message of {0} bytes, which is no request")]
    Message(usize),
}

/// Decodes the entry at the start of `input`, whose message has at most `message_len_max` bytes. It
/// copies nothing and allocates nothing.
///
/// # Errors
/// [`UpdateLogError`], after which it is unclear where the next entry begins.
pub fn decode(input: &[u8], message_len_max: usize) -> Result<Decoded<'_>, UpdateLogError> {
    match input.first() {
        None => return Ok(Decoded::Incomplete),
        Some(&MAGIC) => {}
        Some(&other) => return Err(UpdateLogError::Magic(other)),
    }
    let (Some(time_us), Some(len)) = (
        input.get(1..).and_then(<[u8]>::first_chunk),
        input.get(LEN_AT..).and_then(<[u8]>::first_chunk),
    ) else {
        return Ok(Decoded::Incomplete);
    };
    let (time_us, len) = (u64::from_be_bytes(*time_us), u32::from_be_bytes(*len));
    if len as usize > message_len_max {
        return Err(UpdateLogError::TooLong { len, max: message_len_max });
    }
    let consumed = HEAD_LEN + len as usize;
    let Some(message) = input.get(HEAD_LEN..consumed) else { return Ok(Decoded::Incomplete) };
    Ok(Decoded::Complete { consumed, entry: Entry { time_us, message } })
}

impl Entry<'_> {
    /// Replaces the contents of `request` by the request as a client would send it, for
    /// [`binary::Decoder`]. Returns whether the server that wrote the log performed it.
    ///
    /// # Errors
    /// If the message is too short to be valid.
    pub fn request(&self, request: &mut Vec<u8>) -> Result<bool, UpdateLogError> {
        let too_short = || UpdateLogError::Message(self.message.len());
        let (code, message) = self.message.split_last().ok_or_else(too_short)?;
        let (start, rest) = message.split_first_chunk::<2>().ok_or_else(too_short)?;
        request.clear();
        request.extend_from_slice(start);
        let command = super::of_id(start[1]);
        if command.is_some_and(|command| command.verb == Verb::Misc) {
            let (name_len, rest) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
            request.extend_from_slice(name_len);
            request.extend_from_slice(&[0; 4]);
            request.extend_from_slice(rest);
        } else {
            request.extend_from_slice(rest);
        }
        Ok(*code == binary::DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry as Tokyo Tyrant writes it.
    fn entry(time_us: u64, message: &[u8]) -> Vec<u8> {
        let mut entry = vec![MAGIC];
        entry.extend_from_slice(&time_us.to_be_bytes());
        entry.extend_from_slice(&[0, 1, 0, 1]);
        entry.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        entry.extend_from_slice(message);
        entry
    }

    #[test]
    fn an_entry_is_a_time_a_request_and_what_came_of_it() {
        let log = entry(7, b"\xc8\x20\0\0\0\x05japan\x01");
        for end in 0..log.len() {
            assert_eq!(decode(&log[..end], 12), Ok(Decoded::Incomplete));
        }
        let Ok(Decoded::Complete { consumed, entry }) = decode(&log, 12) else {
            panic!("it is whole")
        };
        assert_eq!((consumed, entry.time_us), (log.len(), 7));
        let mut request = b"what was here".to_vec();
        assert_eq!(entry.request(&mut request), Ok(false));
        assert_eq!(request, b"\xc8\x20\0\0\0\x05japan");
    }

    #[test]
    fn misc_gets_the_options_that_a_log_leaves_out() {
        let log = entry(7, b"\xc8\x90\0\0\0\x03\0\0\0\x01out\0\0\0\x05japan\0");
        let Ok(Decoded::Complete { entry, .. }) = decode(&log, 100) else { panic!("it is whole") };
        let mut request = Vec::new();
        assert_eq!(entry.request(&mut request), Ok(true));
        assert_eq!(request, b"\xc8\x90\0\0\0\x03\0\0\0\0\0\0\0\x01out\0\0\0\x05japan");
    }

    #[test]
    fn what_is_no_update_log_is_refused() {
        assert_eq!(decode(b"\xc8", 100), Err(UpdateLogError::Magic(0xc8)));
        let log = entry(7, &[0; 101]);
        let too_long = UpdateLogError::TooLong { len: 101, max: 100 };
        assert_eq!(decode(&log[..HEAD_LEN], 100), Err(too_long));
        for message in [&b""[..], b"\0", b"\xc8\0", b"\xc8\x90\0", b"\xc8\x90\0\0\0\0"] {
            let log = entry(7, message);
            let Ok(Decoded::Complete { entry, .. }) = decode(&log, 100) else {
                panic!("it is whole")
            };
            let short = Err(UpdateLogError::Message(message.len()));
            assert_eq!(entry.request(&mut Vec::new()), short);
        }
    }
}
