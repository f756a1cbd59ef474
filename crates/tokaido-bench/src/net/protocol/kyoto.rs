//! The binary protocol of Kyoto Tycoon: bulk commands of one record in database 0.

use tokaido_wire::kyoto::binary::{ERROR, XT_MAX};

use super::{Answer, Codec, Kind, Operation, Protocol, ProtocolError, Sent};

pub(super) struct Binary;

const SET_BULK: u8 = 0xb8;
const REMOVE_BULK: u8 = 0xb9;
const GET_BULK: u8 = 0xba;

/// The magic byte and the number of records.
const HEAD_LEN: usize = 1 + 4;

/// Database, lengths of key and value, and expiry.
const RECORD_HEAD_LEN: usize = 2 + 4 + 4 + 8;

impl Codec for Binary {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let magic = match kind {
            Kind::Set => SET_BULK,
            Kind::Delete => REMOVE_BULK,
            // There is no increment: see `Protocol::has`.
            Kind::Get | Kind::Increment => GET_BULK,
        };
        out.push(magic);
        // Flags, the number of records, and the database.
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        out.extend_from_slice(&(key.len() as u32).to_be_bytes());
        if magic == SET_BULK {
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(&XT_MAX.to_be_bytes());
        }
        out.extend_from_slice(key);
        if magic == SET_BULK {
            out.extend_from_slice(value);
        }
    }

    fn decode(&self, input: &[u8], sent: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let magic = match sent.kind {
            Kind::Set => SET_BULK,
            Kind::Delete => REMOVE_BULK,
            Kind::Get | Kind::Increment => GET_BULK,
        };
        match input.first() {
            None => return Ok(None),
            Some(&ERROR) => {
                return Ok(Some((1, Answer::Refused("the request failed".to_owned()))));
            }
            Some(first) if *first == magic => {}
            Some(_) => return Err(ProtocolError::of(Protocol::KyotoTycoon, input)),
        }
        let Some(head) = input.first_chunk::<HEAD_LEN>() else { return Ok(None) };
        let hits = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let answer = if hits == 0 { Answer::Miss } else { Answer::Done };
        if magic != GET_BULK {
            return Ok(Some((HEAD_LEN, answer)));
        }
        let mut end = HEAD_LEN;
        for _ in 0..hits {
            let Some(record) = input.get(end..end + RECORD_HEAD_LEN) else { return Ok(None) };
            let len = |at: usize| {
                u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
                    as usize
            };
            end = (end + RECORD_HEAD_LEN).saturating_add(len(2)).saturating_add(len(6));
            if input.len() < end {
                return Ok(None);
            }
        }
        Ok(Some((end, answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[test]
    fn replies_are_read_whole() {
        let mut get = b"\xba\0\0\0\x01\0\0\0\0\0\x03\0\0\0\x05".to_vec();
        get.extend_from_slice(&XT_MAX.to_be_bytes());
        get.extend_from_slice(b"keyvalue");
        assert_answers(&Binary, Kind::Get, &get, Answer::Done);
        assert_answers(&Binary, Kind::Get, b"\xba\0\0\0\0", Answer::Miss);
        assert_answers(&Binary, Kind::Set, b"\xb8\0\0\0\x01", Answer::Done);
        assert_answers(&Binary, Kind::Delete, b"\xb9\0\0\0\0", Answer::Miss);
        assert_answers(&Binary, Kind::Set, b"\xbf", Answer::Refused("the request failed".into()));
        assert_refuses(&Binary, Kind::Get, b"\xb8\0\0\0\x01");
    }
}
