//! The encodings of `codec`.

use std::io::{Read, Write};

use flate2::{
    Compression,
    read::{DeflateDecoder, GzDecoder, ZlibDecoder},
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};
use tokaido_wire::{
    base64,
    kyoto::{columns, quoted},
};

use super::tokyo_codec::BZIP_LEN_MAX;

/// Maximum length of the input and of the output, in bytes.
pub(super) const LEN_MAX: usize = 4 << 20;

/// A text could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// It is not what the decoder expects, or there is no such encoding.
    #[error("the text is not encoded so")]
    Broken,
    /// It, or the result, is too long.
    #[error("codec takes, and makes, at most {LEN_MAX} bytes")]
    TooLong,
    /// It would take too long to compress.
    #[error("codec compresses at most {BZIP_LEN_MAX} bytes by bzip")]
    TooLongForBzip,
}

/// Encodes a text, or decodes it if the mode begins with a tilde.
pub(crate) fn codec(mode: &[u8], text: &[u8]) -> Result<Vec<u8>, CodecError> {
    if text.len() > LEN_MAX {
        return Err(CodecError::TooLong);
    }
    let decoded = |bytes: Option<Vec<u8>>| bytes.ok_or(CodecError::Broken);
    let level = Compression::default();
    let made = match mode.to_ascii_lowercase().as_slice() {
        b"url" => escaped(text),
        b"~url" => columns::unescape(text),
        b"base" => base64::encode(text).into_bytes(),
        b"~base" => decoded(base64::decode(&without_spaces(text)))?,
        b"quote" => quoted::encode(text),
        b"~quote" => decoded(quoted::decode(&without_soft_breaks(text)))?,
        b"hex" => text.iter().flat_map(|&byte| [byte >> 4, byte & 15].map(hex_digit)).collect(),
        b"~hex" => unhex(text),
        b"zlib" => {
            compressed(DeflateEncoder::new(Vec::new(), level), text, DeflateEncoder::finish)?
        }
        b"deflate" => compressed(ZlibEncoder::new(Vec::new(), level), text, ZlibEncoder::finish)?,
        b"gzip" => compressed(GzEncoder::new(Vec::new(), level), text, GzEncoder::finish)?,
        b"~zlib" => decompressed(DeflateDecoder::new(text))?,
        b"~deflate" => decompressed(ZlibDecoder::new(text))?,
        // Only one stream, since an empty stream is short to write but costly to begin.
        b"~gzip" => decompressed(GzDecoder::new(text))?,
        _ => return Err(CodecError::Broken),
    };
    if made.len() > LEN_MAX { Err(CodecError::TooLong) } else { Ok(made) }
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    columns::escape(text, &mut escaped);
    escaped
}

fn without_spaces(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// Removes the soft line breaks of quoted-printable.
fn without_soft_breaks(text: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'=', [b'\r', b'\n', after @ ..] | [b'\n', after @ ..]) => after,
            _ => {
                whole.push(byte);
                behind
            }
        };
    }
    whole
}

fn hex_digit(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit)]
}

/// Skips characters that are not digits, and a last digit without a partner.
fn unhex(text: &[u8]) -> Vec<u8> {
    let digits = text.iter().filter_map(|&byte| char::from(byte).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn compressed<E: Write>(
    mut encoder: E,
    text: &[u8],
    finish: impl FnOnce(E) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<u8>, CodecError> {
    // Writing to memory always succeeds.
    encoder.write_all(text).and_then(|()| finish(encoder)).map_err(|_| CodecError::Broken)
}

pub(super) fn decompressed(decoder: impl Read) -> Result<Vec<u8>, CodecError> {
    let mut text = Vec::new();
    let read = decoder.take(LEN_MAX as u64 + 1).read_to_end(&mut text);
    read.map(|_| text).map_err(|_| CodecError::Broken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(mode: &str, text: &[u8]) -> Option<Vec<u8>> {
        codec(mode.as_bytes(), text).ok()
    }

    /// What Kyoto Cabinet's own functions give.
    #[test]
    fn texts_become_what_kyoto_cabinet_makes_of_them() {
        let made = |mode, text: &[u8]| String::from_utf8(run(mode, text).unwrap()).unwrap();
        assert_eq!(made("url", b"a b~_-.\xff"), "a%20b~_-.%ff");
        assert_eq!(made("~url", b"a+b%20c"), "a b c");
        assert_eq!(made("BASE", b"hello"), "aGVsbG8=");
        assert_eq!(made("~base", b"aGVs bG8="), "hello");
        assert_eq!(made("quote", b"a=\n\x7f~ "), "a=3D=0A=7F~ ");
        assert_eq!(made("~quote", b"a=3Db=\nc=\r\nd"), "a=bcd");
        assert_eq!(made("hex", b"\x00\xab"), "00ab");
        assert_eq!(made("~hex", b"4a 4B4c4"), "JKL");
        assert_eq!(run("rot13", b"a"), None);
        assert_eq!(run("~base", b"*"), None);
    }

    #[test]
    fn what_kyoto_cabinet_has_compressed_is_read() {
        for (mode, packed) in [
            ("~zlib", "cb48cdc9c957c840900000"),
            ("~deflate", "789ccb48cdc9c957c84090003a2e067d"),
            ("~gzip", "1f8b0800000000000003cb48cdc9c957c84090008088f9e511000000"),
        ] {
            let packed = run("~hex", packed.as_bytes()).unwrap();
            assert_eq!(run(mode, &packed).unwrap(), b"hello hello hello", "{mode}");
            assert_eq!(run(mode, b"nothing of the kind"), None, "{mode}");
        }
    }

    #[test]
    fn little_that_becomes_much_is_refused() {
        let zeros = vec![0; LEN_MAX];
        let packed = run("gzip", &zeros).unwrap();
        assert_eq!(run("~gzip", &packed).unwrap().len(), LEN_MAX);
        let more = [&zeros[..], b"0"].concat();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&more).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(matches!(codec(b"~gzip", &packed), Err(CodecError::TooLong)));
    }

    #[test]
    fn one_stream_is_decompressed() {
        let twice = [run("gzip", b"a").unwrap(), run("gzip", b"b").unwrap()].concat();
        assert_eq!(run("~gzip", &twice).unwrap(), b"a");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: Vec<u8>) {
            for mode in ["url", "base", "quote", "hex", "zlib", "deflate", "gzip"] {
                let encoded = run(mode, &text).unwrap();
                prop_assert_eq!(run(&format!("~{mode}"), &encoded).unwrap(), text.clone(), "{}", mode);
            }
        }
    }
}
