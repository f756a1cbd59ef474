//! HTTP/1.1: each key has a path, which is read by GET, written by PUT and removed by DELETE.

use super::{Answer, Codec, Kind, Operation, Options, Protocol, ProtocolError, Sent, number, text};

/// The placeholder for the key in a path.
const KEY: &str = "{key}";

/// Maximum length of the head of a response, in bytes.
const HEAD_LEN_MAX: usize = 64 << 10;

pub(super) struct Http {
    /// The path before and after the key; without a key, the first part is the whole path.
    path: (String, Option<String>),
    /// The headers of each request, including the empty line.
    headers: Vec<u8>,
}

impl Http {
    pub(super) fn new(options: &Options) -> Self {
        let path = match options.path.split_once(KEY) {
            Some((before, behind)) => (before.to_owned(), Some(behind.to_owned())),
            None => (options.path.clone(), None),
        };
        let authorization = options.password.as_ref();
        let authorization =
            authorization.map(|password| format!("authorization: Bearer {password}\r\n"));
        let close = if options.close { "connection: close\r\n" } else { "" };
        let authorization = authorization.unwrap_or_default();
        let headers = format!("host: {}\r\n{authorization}{close}", options.host);
        Self { path, headers: headers.into_bytes() }
    }
}

impl Codec for Http {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let Operation { kind, key, value } = *operation;
        let method = match kind {
            // There is no increment: see `Protocol::has`.
            Kind::Get | Kind::Increment => "GET ",
            Kind::Set => "PUT ",
            Kind::Delete => "DELETE ",
        };
        out.extend_from_slice(method.as_bytes());
        out.extend_from_slice(self.path.0.as_bytes());
        if let Some(behind) = &self.path.1 {
            write_percent(out, key);
            out.extend_from_slice(behind.as_bytes());
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(&self.headers);
        if kind == Kind::Set {
            out.extend_from_slice(format!("content-length: {}\r\n\r\n", value.len()).as_bytes());
            out.extend_from_slice(value);
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }

    fn decode(&self, input: &[u8], _: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        let wrong = || ProtocolError::of(Protocol::Http, input);
        const BEGIN: &[u8] = b"HTTP/1.";
        let seen = input.len().min(BEGIN.len());
        if input[..seen] != BEGIN[..seen] {
            return Err(wrong());
        }
        let Some(head_len) = input.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if input.len() > HEAD_LEN_MAX { Err(wrong()) } else { Ok(None) };
        };
        let (head, body) = (&input[..head_len], &input[head_len + 4..]);
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.next().unwrap_or_default();
        let status = first.split(|byte| *byte == b' ').nth(1).and_then(number).ok_or_else(wrong)?;
        let body_len = match body_len(status, lines, body) {
            BodyLen::Known(len) => len,
            BodyLen::Unfinished => return Ok(None),
            BodyLen::Wrong => return Err(wrong()),
        };
        if body.len() < body_len {
            return Ok(None);
        }
        let answer = match status {
            200..=299 | 304 => Answer::Done,
            404 => Answer::Miss,
            _ => Answer::Refused(text(first)),
        };
        Ok(Some((head_len + 4 + body_len, answer)))
    }
}

enum BodyLen {
    Known(usize),
    /// Some of its chunks are missing.
    Unfinished,
    Wrong,
}

fn body_len<'a>(status: usize, headers: impl Iterator<Item = &'a [u8]>, body: &[u8]) -> BodyLen {
    // A body that ends with the connection cannot be told from one that has yet to arrive.
    let mut len = matches!(status, 204 | 304).then_some(0);
    let mut is_chunked = false;
    for header in headers {
        let Some(colon) = header.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&header[..colon], header[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            len = len.or_else(|| number(value));
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            is_chunked = value.eq_ignore_ascii_case(b"chunked");
        }
    }
    match (len, is_chunked) {
        (_, true) => chunks_len(body),
        (Some(len), false) => BodyLen::Known(len),
        (None, false) => BodyLen::Wrong,
    }
}

/// The length of a chunked body. Each chunk follows its length in hexadecimal digits and a line
/// end, and ends with another line end; the last one is empty.
fn chunks_len(body: &[u8]) -> BodyLen {
    let mut at = 0;
    loop {
        let Some((line, line_len)) = super::line(&body[at..]) else { return BodyLen::Unfinished };
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
        let Some(len) = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()) else {
            return BodyLen::Wrong;
        };
        let end = at.saturating_add(line_len).saturating_add(len).saturating_add(2);
        match body.get(end.saturating_sub(2)..end) {
            None => return BodyLen::Unfinished,
            Some(b"\r\n") if len == 0 => return BodyLen::Known(end),
            Some(b"\r\n") => at = end,
            Some(_) => return BodyLen::Wrong,
        }
    }
}

/// Appends a key, percent-encoded for a path.
fn write_percent(out: &mut Vec<u8>, key: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn http(path: &str, password: Option<&str>) -> Http {
        let (path, password) = (path.to_owned(), password.map(str::to_owned));
        Http::new(&Options { path, password, host: "h".to_owned(), close: false })
    }

    #[test]
    fn a_request_has_path_host_and_length() {
        let get = b"GET /a/key/b HTTP/1.1\r\nhost: h\r\n\r\n";
        assert_eq!(encoded(&http("/a/{key}/b", None), Kind::Get), get);
        let put = b"PUT /all HTTP/1.1\r\nhost: h\r\nauthorization: Bearer p\r\ncontent-length: 5\r\n\r\nvalue";
        assert_eq!(encoded(&http("/all", Some("p")), Kind::Set), put);
        let mut out = Vec::new();
        write_percent(&mut out, b"a/b c:1");
        assert_eq!(out, b"a%2Fb%20c:1");
    }

    #[test]
    fn responses_are_read_whole() {
        let http = http("/{key}", None);
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nvalue";
        assert_answers(&http, Kind::Get, sized, Answer::Done);
        let chunked =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x\r\nva\r\nu\r\n0\r\n\r\n";
        assert_answers(&http, Kind::Get, chunked, Answer::Done);
        assert_answers(&http, Kind::Set, b"HTTP/1.1 204 No Content\r\n\r\n", Answer::Done);
        assert_answers(
            &http,
            Kind::Get,
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            Answer::Miss,
        );
        let refused = Answer::Refused("HTTP/1.1 500 Oh".into());
        assert_answers(
            &http,
            Kind::Get,
            b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno",
            refused,
        );
        assert_refuses(&http, Kind::Get, b"HTTP/1.1 200 OK\r\n\r\n");
        assert_refuses(&http, Kind::Get, b"+OK\r\n");
    }
}
