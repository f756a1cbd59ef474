//! The binary protocol: replies and their statuses.

/// The first byte of a request.
pub const REQUEST_MAGIC: u8 = 0x80;

const RESPONSE_MAGIC: u8 = 0x81;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Success.
    Success = 0x00,
    /// There is no such record.
    NotFound = 0x01,
    /// The record exists, or has another cas.
    Exists = 0x02,
    /// The value is over the limit.
    TooLarge = 0x03,
    /// The lengths do not fit the operation.
    Invalid = 0x04,
    /// There is nothing to append to.
    NotStored = 0x05,
    /// The value is no number.
    NotNumeric = 0x06,
    /// The client has to authenticate, or has failed to.
    AuthError = 0x20,
    /// There is no such operation.
    UnknownCommand = 0x81,
    /// The server failed.
    Internal = 0x84,
}

impl Status {
    /// The text of an error reply, in memcached's words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Success => "",
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::Invalid => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NotNumeric => "Non-numeric server-side value for incr or decr",
            Self::AuthError => "Auth failure.",
            Self::UnknownCommand => "Unknown command",
            Self::Internal => "Internal error",
        }
    }
}

/// The parts of a request that its reply repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The operation's number.
    pub opcode: u8,
    /// The client's own identifier of it.
    pub opaque: [u8; 4],
}

/// The body of a reply, after its header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Body<'a> {
    /// The extras, before the key.
    pub extras: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Appends a reply.
pub fn reply(out: &mut Vec<u8>, echo: Echo, status: Status, cas: u64, body: Body<'_>) {
    let Body { extras, key, value } = body;
    out.extend_from_slice(&[RESPONSE_MAGIC, echo.opcode]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&(status as u16).to_be_bytes());
    out.extend_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    out.extend_from_slice(&echo.opaque);
    out.extend_from_slice(&cas.to_be_bytes());
    for part in [extras, key, value] {
        out.extend_from_slice(part);
    }
}

/// Appends an error reply.
pub fn error(out: &mut Vec<u8>, echo: Echo, status: Status, text: &str) {
    reply(out, echo, status, 0, Body { value: text.as_bytes(), ..Body::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_its_lengths() {
        let mut out = Vec::new();
        let echo = Echo { opcode: 0x0c, opaque: *b"abcd" };
        let body = Body { extras: &[0, 0, 0, 7], key: b"key", value: b"value" };
        reply(&mut out, echo, Status::Success, 0x0102, body);
        let header = b"\x81\x0c\0\x03\x04\0\0\0\0\0\0\x0cabcd\0\0\0\0\0\0\x01\x02";
        assert_eq!(out, [&header[..], b"\0\0\0\x07keyvalue"].concat());
        out.clear();
        error(&mut out, echo, Status::Exists, Status::Exists.text());
        assert_eq!(out[..12], *b"\x81\x0c\0\0\0\0\0\x02\0\0\0\x14");
    }
}
