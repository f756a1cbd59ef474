//! The binary protocol of memcached.

use super::{Answer, Codec, Kind, Operation, Protocol, ProtocolError, Sent, text};

pub(super) struct Binary;

const REQUEST_MAGIC: u8 = 0x80;
const RESPONSE_MAGIC: u8 = 0x81;
const HEADER_LEN: usize = 24;

/// A missing counter starts at this number, and never expires.
const COUNTER_BEGIN: u64 = 1;

const NOT_FOUND: u16 = 1;

impl Codec for Binary {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let (opcode, extras, value): (u8, Vec<u8>, &[u8]) = match kind {
            Kind::Get => (0x00, Vec::new(), &[]),
            // Flags and expiry.
            Kind::Set => (0x01, vec![0; 8], value),
            Kind::Delete => (0x04, Vec::new(), &[]),
            Kind::Increment => {
                let by = 1_u64.to_be_bytes();
                (0x05, [&by[..], &COUNTER_BEGIN.to_be_bytes(), &[0; 4]].concat(), &[])
            }
        };
        let body_len = (extras.len() + key.len() + value.len()) as u32;
        out.extend_from_slice(&[REQUEST_MAGIC, opcode]);
        out.extend_from_slice(&(key.len() as u16).to_be_bytes());
        out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
        out.extend_from_slice(&body_len.to_be_bytes());
        // The opaque value and the cas.
        out.extend_from_slice(&[0; 12]);
        for part in [&extras, key, value] {
            out.extend_from_slice(part);
        }
    }

    fn decode(&self, input: &[u8], _: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        if input.first().is_some_and(|magic| *magic != RESPONSE_MAGIC) {
            return Err(ProtocolError::of(Protocol::MemcachedBinary, input));
        }
        let Some(header) = input.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let body_len = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let end = HEADER_LEN.saturating_add(body_len as usize);
        let Some(body) = input.get(HEADER_LEN..end) else { return Ok(None) };
        let answer = match u16::from_be_bytes([header[6], header[7]]) {
            0 => Answer::Done,
            NOT_FOUND => Answer::Miss,
            _ => Answer::Refused(text(body)),
        };
        Ok(Some((end, answer)))
    }
}

#[cfg(test)]
mod tests {
    use tokaido_wire::memcached::binary::{Body, Echo, Status, reply};

    use super::{super::tests::*, *};

    #[test]
    fn replies_are_read_whole() {
        let set = encoded(&Binary, Kind::Set);
        assert_eq!(set[..12], *b"\x80\x01\0\x03\x08\0\0\0\0\0\0\x10");
        assert!(set.ends_with(b"keyvalue"));
        let bytes = |status, value: &[u8]| {
            let mut out = Vec::new();
            reply(&mut out, Echo::default(), status, 0, Body { value, ..Body::default() });
            out
        };
        assert_answers(&Binary, Kind::Get, &bytes(Status::Success, b"value"), Answer::Done);
        assert_answers(&Binary, Kind::Get, &bytes(Status::NotFound, b"Not found"), Answer::Miss);
        let refused = Answer::Refused("Too large.".into());
        assert_answers(&Binary, Kind::Set, &bytes(Status::TooLarge, b"Too large."), refused);
        assert_refuses(&Binary, Kind::Get, b"ERROR\r\n");
    }
}
