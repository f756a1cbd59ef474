//! The encodings of Tokyo Tyrant's `_codec`. Those that Kyoto Cabinet also has are in `codec.rs`.

use std::io::Write;

use bzip2::{Compression, read::BzDecoder, write::BzEncoder};
use tokaido_wire::base64;

use super::codec::{self, CodecError, LEN_MAX};

/// Maximum length of what is compressed by bzip, in bytes. It takes some tenths of a second, in which no time
/// limit is checked.
pub(super) const BZIP_LEN_MAX: usize = 1 << 20;

/// Maximum number of bytes in one run of PackBits, equal or not.
const RUN_MAX: usize = 127;

/// The characters that XML escapes, with their escapes.
const ENTITIES: [(u8, &[u8]); 4] =
    [(b'&', b"&amp;"), (b'<', b"&lt;"), (b'>', b"&gt;"), (b'"', b"&quot;")];

/// Encodes a text, or decodes it if the mode begins with a tilde.
pub(crate) fn tokyo_codec(mode: &[u8], text: &[u8]) -> Result<Vec<u8>, CodecError> {
    if text.len() > LEN_MAX {
        return Err(CodecError::TooLong);
    }
    let made = match mode.to_ascii_lowercase().as_slice() {
        b"url" => url(text),
        b"quote" => quote(text),
        b"~base" => unbase(text),
        b"~quote" => unquote(text),
        b"pack" => pack(text),
        b"~pack" => unpack(text)?,
        b"xml" => xml(text),
        b"~xml" => without_entities(text),
        b"bzip" if text.len() > BZIP_LEN_MAX => return Err(CodecError::TooLongForBzip),
        b"bzip" => bzip(text).map_err(|_| CodecError::Broken)?,
        // Only one stream, since an empty stream is short to write but costly to begin.
        b"~bzip" => codec::decompressed(BzDecoder::new(text))?,
        // Only Kyoto Cabinet has these.
        b"zlib" | b"~zlib" => return Err(CodecError::Broken),
        other => return codec::codec(other, text),
    };
    if made.len() > LEN_MAX { Err(CodecError::TooLong) } else { Ok(made) }
}

/// Percent-encoding with upper-case letters.
fn url(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    for &byte in text {
        match byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            true => made.push(byte),
            false => made.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    made
}

/// Quoted-printable that keeps tabs and line ends.
fn quote(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\t' | b'\r' | b'\n' => made.push(byte),
            b' '..=b'~' if byte != b'=' => made.push(byte),
            _ => made.extend_from_slice(format!("={byte:02X}").as_bytes()),
        }
    }
    made
}

/// Skips characters that are not digits, up to the padding; bits that make no whole byte are dropped.
fn unbase(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in text.iter().take_while(|&&byte| byte != b'=') {
        let Some(value) = base64::value_of(byte) else { continue };
        (bits, count) = (bits << 6 | value, count + 6);
        if count >= 8 {
            count -= 8;
            made.push((bits >> count) as u8);
        }
    }
    made
}

/// A `=` is dropped together with a line end after it, or alone if nothing valid follows.
fn unquote(text: &[u8]) -> Vec<u8> {
    let hex = |digit: u8| char::from(digit).to_digit(16);
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'=', [b'\r', b'\n', after @ ..] | [b'\n', after @ ..]) => after,
            (b'=', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                let digits = [high, low].map(|digit| hex(*digit).unwrap_or(0) as u8);
                made.push(digits[0] << 4 | digits[1]);
                after
            }
            (b'=', _) => behind,
            _ => {
                made.push(byte);
                behind
            }
        };
    }
    made
}

/// PackBits, with Tokyo Cabinet's counts: a positive one is how often the next byte is repeated, a negative one
/// how many bytes follow that all differ from their neighbours.
fn pack(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len() + text.len() / RUN_MAX + 1);
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let window = &rest[..rest.len().min(RUN_MAX)];
        let same = window.iter().take_while(|&&byte| byte == first).count();
        let count = match same {
            1 if rest.len() > 1 => {
                let differing = window.windows(2).take_while(|pair| pair[0] != pair[1]).count() + 1;
                // The last one may begin a run with what follows it.
                let begins_run =
                    rest.get(differing).is_some_and(|&next| next == rest[differing - 1]);
                let count = differing - usize::from(begins_run);
                if count > 1 {
                    made.push((count as u8).wrapping_neg());
                    made.extend_from_slice(&rest[..count]);
                } else {
                    made.extend_from_slice(&[1, first]);
                }
                count
            }
            _ => {
                made.extend_from_slice(&[same as u8, first]);
                same
            }
        };
        rest = &rest[count..];
    }
    made
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut made = Vec::new();
    let mut rest = packed;
    while let [count, behind @ ..] = rest {
        let len = usize::from((*count as i8).unsigned_abs());
        if (*count as i8) < 0 {
            let (bytes, after) = behind.split_at(len.min(behind.len()));
            made.extend_from_slice(bytes);
            rest = after;
        } else {
            let (&byte, after) = behind.split_first().ok_or(CodecError::Broken)?;
            made.resize(made.len() + len, byte);
            rest = after;
        }
        if made.len() > LEN_MAX {
            return Err(CodecError::TooLong);
        }
    }
    Ok(made)
}

fn xml(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    for byte in text {
        match ENTITIES.iter().find(|(meant, _)| meant == byte) {
            Some((_, entity)) => made.extend_from_slice(entity),
            None => made.push(*byte),
        }
    }
    made
}

/// Other entities stay as they are.
fn without_entities(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let entity = ENTITIES.iter().find(|(_, entity)| byte == b'&' && rest.starts_with(entity));
        rest = match entity {
            Some((meant, entity)) => {
                made.push(*meant);
                &rest[entity.len()..]
            }
            None => {
                made.push(byte);
                behind
            }
        };
    }
    made
}

fn bzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = BzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(mode: &str, text: &[u8]) -> Vec<u8> {
        tokyo_codec(mode.as_bytes(), text).unwrap()
    }

    /// What `tcucodec` of Tokyo Cabinet 1.4.48 gives.
    #[test]
    fn texts_become_what_tokyo_cabinet_makes_of_them() {
        let text = b"a b~_-.!*()'\xff=\n\x7f\x01~ \t";
        for (mode, expected) in [
            ("url", &b"a%20b~_-.!*()'%FF%3D%0A%7F%01~%20%09"[..]),
            ("quote", b"a b~_-.!*()'=FF=3D\n=7F=01~ \t"),
            ("BASE", b"YSBifl8tLiEqKCkn/z0KfwF+IAk="),
            ("hex", b"6120627e5f2d2e212a282927ff3d0a7f017e2009"),
            ("pack", b"\xeca b~_-.!*()'\xff=\n\x7f\x01~ \t"),
        ] {
            assert_eq!(made(mode, text), expected, "{mode}");
        }
        assert_eq!(made("pack", b"aaaabbbbcdefggggggh"), b"\x04a\x04b\xfccdef\x06g\x01h");
        assert_eq!(made("xml", b"a<>&\"'\x01\t\n"), b"a&lt;&gt;&amp;&quot;'\x01\t\n");
        let unescaped = made("~xml", b"&#65;&lt;&amp;&apos;&quot;&gt;&x;<a>");
        assert_eq!(unescaped, b"&#65;<&&apos;\">&x;<a>");
        assert!(tokyo_codec(b"zlib", b"a").is_err() && tokyo_codec(b"rot13", b"a").is_err());
        assert_eq!(made("~base", b"Y!Q=="), b"a");
        assert_eq!(made("~base", b"YWJj\nZA"), b"abcd");
        assert_eq!(made("~quote", b"a=3Db=\r\nc=zd="), b"a=bczd");
        assert!(tokyo_codec(b"~bzip", b"no such thing").is_err());
    }

    #[test]
    fn little_that_becomes_much_is_refused() {
        let more = vec![0; LEN_MAX + 1];
        for (mode, packed) in [("~bzip", bzip(&more).unwrap()), ("~pack", pack(&more))] {
            let unpacked = tokyo_codec(mode.as_bytes(), &packed);
            assert!(matches!(unpacked, Err(CodecError::TooLong)), "{mode}");
        }
        let packed = tokyo_codec(b"bzip", &more[..=BZIP_LEN_MAX]);
        assert!(matches!(packed, Err(CodecError::TooLongForBzip)));
    }

    #[test]
    fn one_stream_is_decompressed() {
        let twice = [made("bzip", b"a"), made("bzip", b"b")].concat();
        assert_eq!(made("~bzip", &twice), b"a");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in prop::collection::vec(0u8..4, 0..600)) {
            for mode in ["url", "base", "quote", "hex", "pack", "xml", "deflate", "gzip", "bzip"] {
                let decoded = made(&format!("~{mode}"), &made(mode, &text));
                prop_assert_eq!(&decoded, &text, "{}", mode);
            }
        }
    }
}
