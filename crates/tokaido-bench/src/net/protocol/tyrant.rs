//! The binary protocol of Tokyo Tyrant.

use tokaido_wire::tyrant::binary::{DONE, MAGIC};

use super::{Answer, Codec, Kind, Operation, Protocol, ProtocolError, Sent};

pub(super) struct Binary;

const PUT: u8 = 0x10;
const OUT: u8 = 0x20;
const GET: u8 = 0x30;
const ADDINT: u8 = 0x60;

/// The code of a reply, and a 32-bit number after it.
const NUMBER_END: usize = 1 + 4;

impl Codec for Binary {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let key_len = (key.len() as u32).to_be_bytes();
        let value_len = (value.len() as u32).to_be_bytes();
        let by = 1_i32.to_be_bytes();
        let parts: &[&[u8]] = match kind {
            Kind::Get => &[&[MAGIC, GET], &key_len, key],
            Kind::Set => &[&[MAGIC, PUT], &key_len, &value_len, key, value],
            Kind::Delete => &[&[MAGIC, OUT], &key_len, key],
            Kind::Increment => &[&[MAGIC, ADDINT], &key_len, &by, key],
        };
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    fn decode(&self, input: &[u8], sent: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let Some(code) = input.first() else { return Ok(None) };
        // Codes are small numbers; anything else is another protocol.
        if *code != DONE {
            return match (code.is_ascii_graphic() || *code >= 0x80, sent.kind) {
                (true, _) => Err(ProtocolError::of(Protocol::TokyoTyrant, input)),
                (false, Kind::Get | Kind::Delete) => Ok(Some((1, Answer::Miss))),
                (false, _) => Ok(Some((1, Answer::Refused(format!("code {code}"))))),
            };
        }
        let end = match sent.kind {
            Kind::Set | Kind::Delete => 1,
            Kind::Increment => NUMBER_END,
            Kind::Get => {
                let Some(head) = input.first_chunk::<NUMBER_END>() else { return Ok(None) };
                let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
                NUMBER_END.saturating_add(len as usize)
            }
        };
        Ok((input.len() >= end).then_some((end, Answer::Done)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[test]
    fn replies_are_read_whole() {
        assert_eq!(encoded(&Binary, Kind::Set), b"\xc8\x10\0\0\0\x03\0\0\0\x05keyvalue");
        assert_eq!(encoded(&Binary, Kind::Get), b"\xc8\x30\0\0\0\x03key");
        assert_answers(&Binary, Kind::Get, b"\0\0\0\0\x05value", Answer::Done);
        assert_answers(&Binary, Kind::Get, b"\x01", Answer::Miss);
        assert_answers(&Binary, Kind::Set, b"\0", Answer::Done);
        assert_answers(&Binary, Kind::Set, b"\x01", Answer::Refused("code 1".into()));
        assert_answers(&Binary, Kind::Delete, b"\x01", Answer::Miss);
        assert_answers(&Binary, Kind::Increment, b"\0\0\0\0\x05", Answer::Done);
        assert_refuses(&Binary, Kind::Get, b"ERROR\r\n");
    }
}
