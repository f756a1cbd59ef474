//! Decodes the bytes of a connection into requests of the binary protocol.

use super::{
    binary::{Echo, REQUEST_MAGIC, Status},
    commands::Mode,
    error::ProtocolError,
    limits::{CREDENTIALS_LEN_MAX, KEY_LEN_MAX},
    opcodes::{BinaryVerb, Operation, find_operation},
    request::{Exptime, Store},
};

/// Length of a request's header.
const HEADER_LEN: usize = 24;

/// The expiry that says that a missing counter is not to be created.
const NO_COUNTER: u32 = u32::MAX;

/// Decodes the requests of one connection. It copies nothing and allocates nothing.
#[derive(Debug, Default)]
pub struct BinaryDecoder {
    /// Bytes of a refused body that are still to come.
    skips: usize,
}

/// The outcome of decoding.
#[derive(Debug)]
pub enum BinaryDecoded<'a> {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with bytes of a refused body, which have no meaning.
    Skipped {
        /// Number of those bytes.
        consumed: usize,
    },
    /// The input begins with a whole request.
    Complete {
        /// Its length in bytes: where the next one begins.
        consumed: usize,
        /// What the reply repeats.
        echo: Echo,
        /// Its row of the table; `None` for an unknown operation.
        operation: Option<&'static Operation>,
        /// The request.
        request: BinaryRequest<'a>,
    },
}

/// A request.
#[derive(Debug)]
pub enum BinaryRequest<'a> {
    /// Gets a value; with an expiry, touches it as well.
    Get {
        /// Its key.
        key: &'a [u8],
        /// The new expiry.
        touch: Option<Exptime>,
    },
    /// Gives a record a new expiry.
    Touch {
        /// Its key.
        key: &'a [u8],
        /// The expiry.
        exptime: Exptime,
    },
    /// Stores a value.
    Store(Store<'a>),
    /// Deletes a record.
    Delete {
        /// Its key.
        key: &'a [u8],
        /// The cas that the record must have; 0: any.
        cas: u64,
    },
    /// Increments or decrements a counter.
    Count {
        /// Its key.
        key: &'a [u8],
        /// By how much.
        by: u64,
        /// The initial value of a missing counter.
        initial: u64,
        /// The expiry of a newly created counter; `None`: it is not created.
        vivify: Option<Exptime>,
        /// The cas that the counter must have; 0: any.
        cas: u64,
    },
    /// Deletes everything.
    Flush {
        /// When; 0 is now.
        delay: Exptime,
    },
    /// Gets statistics.
    Stat {
        /// Which statistics.
        group: &'a [u8],
    },
    /// Authenticates.
    Authenticate {
        /// The mechanism.
        mechanism: &'a [u8],
        /// The client's response.
        response: &'a [u8],
    },
    /// An operation that has nothing but its opcode.
    Plain,
    /// The request is refused, for the given reason.
    Refused {
        /// The reason.
        status: Status,
        /// Whether the connection has to be closed.
        closes: bool,
        /// The record under this key must be deleted: a newer value was too large, and the old one
        /// must not pass for it.
        forget: Option<&'a [u8]>,
        /// Bytes of the refused body that follow, to be [skipped](BinaryDecoder::skip).
        skip: usize,
    },
}

impl BinaryRequest<'_> {
    fn closing(status: Status) -> Self {
        Self::Refused { status, closes: true, forget: None, skip: 0 }
    }
}

/// A header and what came after it.
struct Packet<'a> {
    cas: u64,
    extras: &'a [u8],
    key: &'a [u8],
    value_len: usize,
    /// What has arrived of the value and of anything after it.
    rest: &'a [u8],
}

impl Packet<'_> {
    /// The number at offset `at` of the extras.
    fn u32(&self, at: usize) -> u32 {
        self.extras[at..].iter().take(4).fold(0, |number, &byte| number << 8 | u32::from(byte))
    }

    fn u64(&self, at: usize) -> u64 {
        self.extras[at..].iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn exptime(&self, at: usize) -> Exptime {
        Exptime(self.u32(at).into())
    }
}

impl BinaryDecoder {
    /// Skips `len` bytes after a refused request; to be called once the request is answered.
    pub fn skip(&mut self, len: usize) {
        self.skips += len;
    }

    /// Decodes the request at the start of the input. Until it is complete, the caller passes the
    /// same bytes again, with more after them. A value is at most `value_len_max` bytes long.
    ///
    /// # Errors
    /// If the connection has to be closed.
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
        value_len_max: usize,
    ) -> Result<BinaryDecoded<'a>, ProtocolError> {
        if self.skips > 0 {
            let consumed = self.skips.min(input.len());
            self.skips -= consumed;
            let is_some = consumed > 0;
            let skipped = BinaryDecoded::Skipped { consumed };
            return Ok(if is_some { skipped } else { BinaryDecoded::Incomplete });
        }
        if input.first().is_some_and(|&magic| magic != REQUEST_MAGIC) {
            return Err(ProtocolError::Magic);
        }
        let Some((header, rest)) = input.split_at_checked(HEADER_LEN) else {
            return Ok(BinaryDecoded::Incomplete);
        };
        let key_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let extras_len = usize::from(header[4]);
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
        let body_len = number(&header[8..12]) as usize;
        let echo =
            Echo { opcode: header[1], opaque: [header[12], header[13], header[14], header[15]] };
        let operation = find_operation(echo.opcode);
        let complete = |request, body_len| {
            let consumed = HEADER_LEN + body_len;
            Ok(BinaryDecoded::Complete { consumed, echo, operation, request })
        };
        let head_len = extras_len + key_len;
        let Some(value_len) = body_len.checked_sub(head_len) else {
            return complete(BinaryRequest::closing(Status::UnknownCommand), 0);
        };
        // A refused request need not be complete.
        if key_len > KEY_LEN_MAX {
            return complete(BinaryRequest::closing(Status::Invalid), 0);
        }
        let Some((head, rest)) = rest.split_at_checked(head_len) else {
            return Ok(BinaryDecoded::Incomplete);
        };
        let (extras, key) = head.split_at(extras_len);
        let packet = Packet { cas: number(&header[16..24]), extras, key, value_len, rest };
        let Some(found) = operation else {
            let status = Status::UnknownCommand;
            let skip = value_len;
            let request = BinaryRequest::Refused { status, closes: false, forget: None, skip };
            return complete(request, head_len);
        };
        if !is_well_formed(found.verb, &packet) {
            return complete(BinaryRequest::closing(Status::Invalid), head_len);
        }
        match read(found.verb, &packet, value_len_max) {
            Some(request @ BinaryRequest::Refused { .. }) => complete(request, head_len),
            Some(request) => complete(request, body_len),
            None => Ok(BinaryDecoded::Incomplete),
        }
    }
}

/// Whether the lengths fit the operation.
fn is_well_formed(verb: BinaryVerb, packet: &Packet<'_>) -> bool {
    let (extras, has_key) = (packet.extras.len(), !packet.key.is_empty());
    let has_value = packet.value_len > 0;
    match verb {
        BinaryVerb::Get | BinaryVerb::Delete => extras == 0 && has_key && !has_value,
        BinaryVerb::GetAndTouch | BinaryVerb::Touch => extras == 4 && has_key && !has_value,
        BinaryVerb::Store(Mode::Append | Mode::Prepend) => extras == 0 && has_key,
        BinaryVerb::Store(_) => extras == 8 && has_key,
        BinaryVerb::Increment | BinaryVerb::Decrement => extras == 20 && has_key && !has_value,
        BinaryVerb::Flush => (extras == 0 || extras == 4) && !has_key && !has_value,
        BinaryVerb::Stat => extras == 0 && !has_value,
        BinaryVerb::SaslAuth | BinaryVerb::SaslStep => extras == 0 && has_key,
        BinaryVerb::Quit | BinaryVerb::Noop | BinaryVerb::Version | BinaryVerb::SaslList => {
            extras == 0 && !has_key && !has_value
        }
    }
}

/// The request, or `None` until its value is complete.
fn read<'a>(
    verb: BinaryVerb,
    packet: &Packet<'a>,
    value_len_max: usize,
) -> Option<BinaryRequest<'a>> {
    let Packet { cas, key, value_len, .. } = *packet;
    Some(match verb {
        BinaryVerb::Get => BinaryRequest::Get { key, touch: None },
        BinaryVerb::GetAndTouch => BinaryRequest::Get { key, touch: Some(packet.exptime(0)) },
        BinaryVerb::Touch => BinaryRequest::Touch { key, exptime: packet.exptime(0) },
        BinaryVerb::Delete => BinaryRequest::Delete { key, cas },
        BinaryVerb::Store(mode) if value_len > value_len_max => {
            let forget = (mode == Mode::Set).then_some(key);
            let (status, skip) = (Status::TooLarge, value_len);
            BinaryRequest::Refused { status, closes: false, forget, skip }
        }
        BinaryVerb::Store(mode) => {
            let value = packet.rest.get(..value_len)?;
            let is_extension = matches!(mode, Mode::Append | Mode::Prepend);
            let mode = if cas != 0 && !is_extension { Mode::Cas } else { mode };
            let (flags, exptime) =
                if is_extension { (0, Exptime::NEVER) } else { (packet.u32(0), packet.exptime(4)) };
            BinaryRequest::Store(Store { mode, key, flags, exptime, cas, value })
        }
        BinaryVerb::Increment | BinaryVerb::Decrement => {
            let (by, initial) = (packet.u64(0), packet.u64(8));
            let vivify = (packet.u32(16) != NO_COUNTER).then(|| packet.exptime(16));
            BinaryRequest::Count { key, by, initial, vivify, cas }
        }
        BinaryVerb::Flush if packet.extras.is_empty() => {
            BinaryRequest::Flush { delay: Exptime::NEVER }
        }
        BinaryVerb::Flush => BinaryRequest::Flush { delay: packet.exptime(0) },
        BinaryVerb::Stat => BinaryRequest::Stat { group: key },
        BinaryVerb::SaslAuth | BinaryVerb::SaslStep if value_len > CREDENTIALS_LEN_MAX => {
            BinaryRequest::closing(Status::AuthError)
        }
        BinaryVerb::SaslAuth | BinaryVerb::SaslStep => {
            let response = packet.rest.get(..value_len)?;
            BinaryRequest::Authenticate { mechanism: key, response }
        }
        BinaryVerb::Quit | BinaryVerb::Noop | BinaryVerb::Version | BinaryVerb::SaslList => {
            BinaryRequest::Plain
        }
    })
}
