//! Encodings of text as nginx-lua has them: URIs, base64, SQL strings.

/// What `ngx.escape_uri` leaves as it is, by its second argument.
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
        // A path, the arguments behind it, a part of either.
        0 => is_visible && !b"#%?".contains(&byte),
        1 => is_visible && !b"#%?+".contains(&byte),
        2 => byte.is_ascii_alphanumeric() || b"!'()*-._~".contains(&byte),
        // An attribute of HTML, one of a refresh.
        3 => is_visible && !b"\"#%'".contains(&byte),
        4 => is_visible && !b"\"'".contains(&byte),
        // A key of memcached, a header of mail.
        _ => byte > b' ' && byte != b'%',
    }
}

/// Takes `%41` for a character, and a plus for a space. What is no such thing stays.
pub(crate) fn unescape_uri(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let decoded = match (byte, behind) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match decoded {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &behind[2..];
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                rest = behind;
            }
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

/// The two characters beside letters and digits, and whether the end is filled up.
#[derive(Clone, Copy)]
pub(crate) struct Base64 {
    pub(crate) is_url: bool,
    pub(crate) is_padded: bool,
}

impl Base64 {
    fn digit(self, six: u8) -> u8 {
        match six {
            0..=25 => b'A' + six,
            26..=51 => b'a' + six - 26,
            52..=61 => b'0' + six - 52,
            62 => {
                if self.is_url {
                    b'-'
                } else {
                    b'+'
                }
            }
            _ => {
                if self.is_url {
                    b'_'
                } else {
                    b'/'
                }
            }
        }
    }

    fn six(self, digit: u8) -> Option<u8> {
        Some(match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            _ if digit == self.digit(62) => 62,
            _ if digit == self.digit(63) => 63,
            _ => return None,
        })
    }

    pub(crate) fn encode(self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len().div_ceil(3) * 4);
        for chunk in bytes.chunks(3) {
            let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                if place <= chunk.len() {
                    out.push(self.digit((bits >> (18 - 6 * place)) as u8 & 63));
                } else if self.is_padded {
                    out.push(b'=');
                }
            }
        }
    }

    /// Reads up to the first `=`; false if there is something else in it, or a digit too many.
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
                bits = bits << 6 | u32::from(six);
            }
            out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
        }
        true
    }
}

/// A string of SQL as MySQL reads it, with its quotes.
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
