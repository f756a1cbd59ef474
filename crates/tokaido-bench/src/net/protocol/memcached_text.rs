//! The text protocol of memcached.

use super::{Answer, Codec, Kind, Operation, Protocol, ProtocolError, Sent, line, number, text};

pub(super) struct Text;

/// The prefixes of lines that refuse a request; the last one is a whole line.
const REFUSALS: [&[u8]; 3] = [b"CLIENT_ERROR", b"SERVER_ERROR", b"ERROR"];

/// The refusal that a line contains, if it is one.
pub(super) fn refusal(line: &[u8]) -> Option<Answer> {
    let is_refusal = REFUSALS.iter().any(|beginning| line.starts_with(beginning));
    is_refusal.then(|| Answer::Refused(text(line)))
}

impl Codec for Text {
    /// `get k` is valid in the Redis protocol as well; a server that speaks both decides by the first line.
    fn greetings(&self) -> Vec<Vec<u8>> {
        vec![b"version\r\n".to_vec()]
    }

    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let len = value.len().to_string();
        let parts: &[&[u8]] = match kind {
            Kind::Get => &[b"get ", key, b"\r\n"],
            Kind::Set => &[b"set ", key, b" 0 0 ", len.as_bytes(), b"\r\n", value, b"\r\n"],
            Kind::Delete => &[b"delete ", key, b"\r\n"],
            Kind::Increment => &[b"incr ", key, b" 1\r\n"],
        };
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    fn decode(&self, input: &[u8], _: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let wrong = || ProtocolError::of(Protocol::Memcached, input);
        let Some((head, head_len)) = line(input) else { return Ok(None) };
        let answer = match head {
            b"STORED" | b"DELETED" => Answer::Done,
            b"END" | b"NOT_FOUND" | b"NOT_STORED" => Answer::Miss,
            [b'0'..=b'9', ..] | [b'V', b'E', b'R', b'S', ..] => Answer::Done,
            _ => {
                if let Some(refused) = refusal(head) {
                    return Ok(Some((head_len, refused)));
                }
                // VALUE key flags length
                let mut words = head.split(|byte| *byte == b' ');
                let is_value = words.next() == Some(b"VALUE");
                let len = words.nth(2).and_then(number).filter(|_| is_value).ok_or_else(wrong)?;
                const END: &[u8] = b"\r\nEND\r\n";
                let end = head_len.saturating_add(len).saturating_add(END.len());
                return match input.get(end - END.len()..end) {
                    None => Ok(None),
                    Some(END) => Ok(Some((end, Answer::Done))),
                    Some(_) => Err(wrong()),
                };
            }
        };
        Ok(Some((head_len, answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[test]
    fn replies_are_read_whole() {
        assert_eq!(encoded(&Text, Kind::Set), b"set key 0 0 5\r\nvalue\r\n");
        assert_eq!(encoded(&Text, Kind::Get), b"get key\r\n");
        let value = b"VALUE key 0 6\r\nEND\r\nx\r\nEND\r\n";
        assert_answers(&Text, Kind::Get, value, Answer::Done);
        assert_answers(&Text, Kind::Get, b"END\r\n", Answer::Miss);
        assert_answers(&Text, Kind::Set, b"STORED\r\n", Answer::Done);
        assert_answers(&Text, Kind::Delete, b"NOT_FOUND\r\n", Answer::Miss);
        assert_answers(&Text, Kind::Set, b"VERSION 1.6\r\n", Answer::Done);
        assert_answers(&Text, Kind::Increment, b"12\r\n", Answer::Done);
        let refused = Answer::Refused("SERVER_ERROR out of memory".into());
        assert_answers(&Text, Kind::Set, b"SERVER_ERROR out of memory\r\n", refused);
        assert_refuses(&Text, Kind::Get, b"-ERR\r\n");
        assert_refuses(&Text, Kind::Get, b"VALUE key 0 1\r\nxx\r\nEND\r\n");
    }
}
