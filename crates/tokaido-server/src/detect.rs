//! Which protocol a connection speaks, told by its first bytes.

/// Most bytes of a first line that are looked at.
pub(crate) const FIRST_LINE_BYTES_MAX: usize = 64 << 10;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The Redis protocol, in arrays of bulk strings or in lines.
    Resp,
    /// HTTP/1.0 and 1.1.
    Http,
}

/// The protocol, or `None` as long as the first bytes do not tell.
///
/// Only HTTP has a first line that ends in its version; an array of RESP begins with `*`, which no
/// HTTP method does. What is neither, garbage too, is RESP: there it gets an error that a person
/// can read.
pub(crate) fn detect(input: &[u8]) -> Option<Protocol> {
    if *input.first()? == b'*' {
        return Some(Protocol::Resp);
    }
    let window = &input[..input.len().min(FIRST_LINE_BYTES_MAX)];
    match memchr::memchr(b'\n', window) {
        Some(end) if is_request_line(&window[..end]) => Some(Protocol::Http),
        Some(_) => Some(Protocol::Resp),
        None if window.len() == FIRST_LINE_BYTES_MAX => Some(Protocol::Resp),
        None => None,
    }
}

fn is_request_line(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Some((digit, start)) = line.split_last() else { return false };
    digit.is_ascii_digit() && start.ends_with(b" HTTP/1.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_protocol() {
        let cases: [(&[u8], Option<Protocol>); 11] = [
            (b"", None),
            (b"*", Some(Protocol::Resp)),
            (b"PING", None),
            (b"PING\r\n", Some(Protocol::Resp)),
            (b"\r\n", Some(Protocol::Resp)),
            (b"GET / HTTP/1.1", None),
            (b"GET / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"GET / HTTP/1.0\nHost: x", Some(Protocol::Http)),
            (b"GET key\r\nGET / HTTP/1.1\r\n", Some(Protocol::Resp)),
            (b"PRI * HTTP/2.0\r\n", Some(Protocol::Resp)),
            (b"\x16\x03\x01\x00\n", Some(Protocol::Resp)),
        ];
        for (input, protocol) in cases {
            assert_eq!(detect(input), protocol, "{input:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_waited_for_for_ever() {
        assert_eq!(detect(&[b'x'; FIRST_LINE_BYTES_MAX - 1]), None);
        assert_eq!(detect(&[b'x'; FIRST_LINE_BYTES_MAX]), Some(Protocol::Resp));
    }

    #[test]
    fn more_bytes_never_change_the_answer() {
        for text in
            [&b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"*1\r\n$4\r\nPING\r\n", b"GET a\n"]
        {
            let whole = detect(text);
            for len in 0..text.len() {
                assert!(detect(&text[..len]).is_none_or(|early| Some(early) == whole));
            }
        }
    }
}
