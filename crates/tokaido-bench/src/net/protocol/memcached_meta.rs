//! The meta commands of memcached.

use super::{
    Answer, Codec, Kind, Operation, Protocol, ProtocolError, Sent, line, memcached_text::refusal,
    number,
};

pub(super) struct Meta;

impl Codec for Meta {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let len = value.len().to_string();
        let parts: &[&[u8]] = match kind {
            Kind::Get => &[b"mg ", key, b" v\r\n"],
            Kind::Set => &[b"ms ", key, b" ", len.as_bytes(), b"\r\n", value, b"\r\n"],
            Kind::Delete => &[b"md ", key, b"\r\n"],
            Kind::Increment => &[b"ma ", key, b"\r\n"],
        };
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    fn decode(&self, input: &[u8], _: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let wrong = || ProtocolError::of(Protocol::MemcachedMeta, input);
        let Some((head, head_len)) = line(input) else { return Ok(None) };
        let mut words = head.split(|byte| *byte == b' ');
        let answer = match words.next().unwrap_or_default() {
            b"HD" => Answer::Done,
            b"EN" | b"NF" | b"NS" => Answer::Miss,
            b"VA" => {
                let len = words.next().and_then(number).ok_or_else(wrong)?;
                let end = head_len.saturating_add(len).saturating_add(2);
                return Ok((input.len() >= end).then_some((end, Answer::Done)));
            }
            _ => refusal(head).ok_or_else(wrong)?,
        };
        Ok(Some((head_len, answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[test]
    fn replies_are_read_whole() {
        assert_eq!(encoded(&Meta, Kind::Set), b"ms key 5\r\nvalue\r\n");
        assert_eq!(encoded(&Meta, Kind::Get), b"mg key v\r\n");
        assert_answers(&Meta, Kind::Get, b"VA 4 f0\r\nEN\r\n\r\n", Answer::Done);
        assert_answers(&Meta, Kind::Get, b"EN\r\n", Answer::Miss);
        assert_answers(&Meta, Kind::Set, b"HD\r\n", Answer::Done);
        assert_answers(&Meta, Kind::Delete, b"NF\r\n", Answer::Miss);
        let refused = Answer::Refused("CLIENT_ERROR bad".into());
        assert_answers(&Meta, Kind::Set, b"CLIENT_ERROR bad\r\n", refused);
        assert_refuses(&Meta, Kind::Get, b"VALUE\r\n");
    }
}
