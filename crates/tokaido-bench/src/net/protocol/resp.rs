//! The Redis protocol, versions 2 and 3.

use tokaido_wire::resp::{Reply, ReplyDecoder, encode_command};

use super::{Answer, Codec, Kind, Operation, Options, Protocol, ProtocolError, Sent, line, text};

/// The user that a password without a name belongs to.
const USER_DEFAULT: &str = "default";

pub(super) struct Resp {
    protocol: Protocol,
    password: Option<String>,
}

impl Resp {
    pub(super) fn new(protocol: Protocol, options: &Options) -> Self {
        Self { protocol, password: options.password.clone() }
    }

    fn wrong(&self, input: &[u8]) -> ProtocolError {
        ProtocolError::of(self.protocol, input)
    }
}

impl Codec for Resp {
    fn greetings(&self) -> Vec<Vec<u8>> {
        let mut words = match self.protocol {
            Protocol::Resp3 => vec!["HELLO", "3"],
            _ => Vec::new(),
        };
        match &self.password {
            Some(password) if words.is_empty() => words.extend(["AUTH", password]),
            Some(password) => words.extend(["AUTH", USER_DEFAULT, password]),
            None => {}
        }
        if words.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::new();
        encode_command(&mut out, &words);
        vec![out]
    }

    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        match kind {
            Kind::Get => encode_command(out, &[b"GET", key]),
            Kind::Set => encode_command(out, &[b"SET", key, value]),
            Kind::Delete => encode_command(out, &[b"DEL", key]),
            Kind::Increment => encode_command(out, &[b"INCR", key]),
        }
    }

    fn decode(&self, input: &[u8], sent: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let Some((head, head_len)) = line(input) else {
            // A protocol without lines might never end its first one.
            return match input.first().is_none_or(|kind| b"+-:$_#,(!=%~*>|".contains(kind)) {
                true => Ok(None),
                false => Err(self.wrong(input)),
            };
        };
        // Decodes the answers of these operations without copying; the general decoder handles the rest.
        let answer = match head {
            [b'+', ..] => Answer::Done,
            [b'-', message @ ..] => Answer::Refused(text(message)),
            b":0" if sent.kind == Kind::Delete => Answer::Miss,
            [b':', ..] => Answer::Done,
            b"$-1" | b"_" => Answer::Miss,
            [b'$', len @ ..] => {
                let len = super::number(len).ok_or_else(|| self.wrong(input))?;
                let end = head_len.saturating_add(len).saturating_add(2);
                return Ok((input.len() >= end).then_some((end, Answer::Done)));
            }
            _ => return self.decode_any(input),
        };
        Ok(Some((head_len, answer)))
    }
}

impl Resp {
    fn decode_any(&self, input: &[u8]) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let decoded = ReplyDecoder::new().decode(input).map_err(|_| self.wrong(input))?;
        Ok(decoded.map(|(reply, consumed)| {
            let answer = match reply {
                Reply::Error(message) => Answer::Refused(message),
                Reply::Null => Answer::Miss,
                _ => Answer::Done,
            };
            (consumed, answer)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn resp(protocol: Protocol, password: Option<&str>) -> Resp {
        let options = Options { password: password.map(str::to_owned), ..Options::default() };
        Resp::new(protocol, &options)
    }

    #[test]
    fn replies_are_read_whole() {
        let resp = resp(Protocol::Resp3, None);
        assert_eq!(encoded(&resp, Kind::Get), b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
        assert_answers(&resp, Kind::Get, b"$5\r\nva\r\ne\r\n", Answer::Done);
        assert_answers(&resp, Kind::Get, b"$-1\r\n", Answer::Miss);
        assert_answers(&resp, Kind::Get, b"_\r\n", Answer::Miss);
        assert_answers(&resp, Kind::Set, b"+OK\r\n", Answer::Done);
        assert_answers(&resp, Kind::Delete, b":0\r\n", Answer::Miss);
        assert_answers(&resp, Kind::Increment, b":0\r\n", Answer::Done);
        assert_answers(&resp, Kind::Set, b"-ERR no\r\n", Answer::Refused("ERR no".into()));
        assert_answers(&resp, Kind::Set, b"%1\r\n+a\r\n*1\r\n:1\r\n", Answer::Done);
        assert_refuses(&resp, Kind::Get, b"HTTP/1.1 400\r\n");
        assert_refuses(&resp, Kind::Get, b"\x81\0\0");
    }

    #[test]
    fn a_connection_says_hello_and_its_password() {
        let greeting = |protocol, password| resp(protocol, password).greetings().concat();
        assert_eq!(greeting(Protocol::Resp2, None), b"");
        assert_eq!(greeting(Protocol::Resp2, Some("p")), b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n");
        assert!(greeting(Protocol::Resp3, None).starts_with(b"*2\r\n$5\r\nHELLO\r\n"));
        assert!(greeting(Protocol::Resp3, Some("p")).starts_with(b"*5\r\n$5\r\nHELLO\r\n"));
    }
}
