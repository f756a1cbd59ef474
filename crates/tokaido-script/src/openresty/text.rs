//! Text encodings as in nginx-lua: URIs, base64, SQL strings.

use tokaido_wire::base64;

use crate::percent;

/// Escapes like `ngx.escape_uri`, whose second argument selects the characters left as they are.
pub(crate) fn escape_uri(text: &[u8], kind: i32, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if stays(byte, kind) {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

fn stays(byte: u8, kind: i32) -> bool {
    let is_visible = byte.is_ascii_graphic();
    match kind {
        // A path, the arguments after it, a part of either.
        0 => is_visible && !b"#%?".contains(&byte),
        1 => is_visible && !b"#%?+".contains(&byte),
        2 => byte.is_ascii_alphanumeric() || b"!'()*-._~".contains(&byte),
        // An HTML attribute, one of a refresh.
        3 => is_visible && !b"\"#%'".contains(&byte),
        4 => is_visible && !b"\"'".contains(&byte),
        // A memcached key, a mail header.
        _ => byte > b' ' && byte != b'%',
    }
}

/// Decodes `%41` to a character, and a plus to a space. Invalid escapes stay as they are.
pub(crate) fn unescape_uri(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&percent::unescape(text, true).0);
}

/// A base64 alphabet: its two characters besides letters and digits, and whether it is padded.
#[derive(Clone, Copy)]
pub(crate) struct Base64 {
    pub(crate) is_url: bool,
    pub(crate) is_padded: bool,
}

impl Base64 {
    fn six(self, digit: u8) -> Option<u32> {
        match digit {
            b'-' if self.is_url => Some(62),
            b'_' if self.is_url => Some(63),
            b'+' | b'/' if self.is_url => None,
            _ => base64::value_of(digit),
        }
    }

    pub(crate) fn encode(self, bytes: &[u8], out: &mut Vec<u8>) {
        let text = base64::encode(bytes);
        let digits = if self.is_padded { &text } else { text.trim_end_matches('=') };
        out.extend(digits.bytes().map(|digit| match digit {
            b'+' if self.is_url => b'-',
            b'/' if self.is_url => b'_',
            _ => digit,
        }));
    }

    /// Decodes up to the first `=`; false if there is any other character, or one digit too many.
    pub(crate) fn decode(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let end = text.iter().position(|&byte| byte == b'=').unwrap_or(text.len());
        if end % 4 == 1 {
            return false;
        }
        for chunk in text[..end].chunks(4) {
            let mut bits = 0;
            for place in 0..4 {
                let six = match chunk.get(place) {
                    Some(&digit) => match self.six(digit) {
                        Some(six) => six,
                        None => return false,
                    },
                    None => 0,
                };
                bits = bits << 6 | six;
            }
            out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
        }
        true
    }
}

/// A quoted SQL string as MySQL reads it.
pub(crate) fn quote_sql(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in text {
        let escaped = match byte {
            0 => b'0',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            0x1a => b'Z',
            b'\'' | b'"' | b'\\' => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escaped]);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(make: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        make(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn uris_are_escaped_by_what_they_are_for() {
        let text = "a b+c/?&=#%'\"~é".as_bytes();
        let escaped = |kind| made(|out| escape_uri(text, kind, out));
        assert_eq!(escaped(0), "a%20b+c/%3F&=%23%25'\"~%C3%A9");
        assert_eq!(escaped(1), "a%20b%2Bc/%3F&=%23%25'\"~%C3%A9");
        assert_eq!(escaped(2), "a%20b%2Bc%2F%3F%26%3D%23%25'%22~%C3%A9");
        assert_eq!(escaped(5), "a%20b+c/?&=#%25'\"~é");
    }

    #[test]
    fn what_is_no_escape_stays() {
        let unescaped = |text: &str| made(|out| unescape_uri(text.as_bytes(), out));
        assert_eq!(unescaped("a%20b+c%zz%4%41%"), "a b c%zz%4A%");
        assert_eq!(unescaped("%"), "%");
    }

    #[test]
    fn base64_goes_both_ways() {
        let plain = Base64 { is_url: false, is_padded: true };
        let url = Base64 { is_url: true, is_padded: false };
        for (bytes, padded, bare) in [
            (&b"hello"[..], "aGVsbG8=", "aGVsbG8"),
            (b"", "", ""),
            (b"a", "YQ==", "YQ"),
            (b"\xff\xfe\xfd", "//79", "__79"),
        ] {
            assert_eq!(made(|out| plain.encode(bytes, out)), padded);
            assert_eq!(made(|out| url.encode(bytes, out)), bare);
            let mut out = Vec::new();
            assert!(plain.decode(padded.as_bytes(), &mut out) && out == bytes);
            out.clear();
            assert!(url.decode(bare.as_bytes(), &mut out) && out == bytes);
        }
        for broken in ["a", "a=", "aGVs\nbG8=", "aG-_"] {
            assert!(!plain.decode(broken.as_bytes(), &mut Vec::new()), "{broken:?}");
        }
        let mut out = Vec::new();
        assert!(plain.decode(b"aGVsbG8=xyz", &mut out) && out == b"hello");
    }

    #[test]
    fn sql_is_quoted() {
        assert_eq!(made(|out| quote_sql(b"a'b\"\\\0\x1a\n", out)), r#"'a\'b\"\\\0\Z\n'"#);
    }
}
