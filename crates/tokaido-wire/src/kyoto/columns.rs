//! The pairs of a call: tab-separated, with one encoding for all columns, or as a form.

use std::collections::BTreeMap;

use super::quoted;
use crate::base64;

/// Names and values, ordered by name. If a name is given twice, its last value counts.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

const TSV: &str = "text/tab-separated-values";
const FORM: &str = "application/x-www-form-urlencoded";

/// A column longer than this is always encoded, whatever it contains.
const RAW_LEN_MAX: usize = 255;

/// How the columns of a body are encoded, names and values alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The columns stand for themselves, and contain no tabs and line ends.
    Raw,
    /// Base64.
    Base64,
    /// Quoted-printable.
    Quoted,
    /// Percent-encoding.
    Url,
}

/// What the `Content-Type` of a body says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// One pair on each line, with a tab between name and value.
    Tsv(Encoding),
    /// A form.
    Form,
    /// Anything else, which holds no pairs.
    Other,
}

/// A column does not have the encoding that the body declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a column is not encoded as colenc says")]
pub struct ColumnError;

impl ContentType {
    /// Reads the value of the header.
    #[must_use]
    pub fn parse(header: &str) -> Self {
        let mut parts = header.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if media.eq_ignore_ascii_case(FORM) {
            return Self::Form;
        }
        if !media.eq_ignore_ascii_case(TSV) {
            return Self::Other;
        }
        let mut encoding = Encoding::Raw;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("colenc") {
                let letter = value.trim().trim_start_matches('"').bytes().next();
                encoding = match letter.map(|letter| letter.to_ascii_uppercase()) {
                    Some(b'B') => Encoding::Base64,
                    Some(b'Q') => Encoding::Quoted,
                    Some(b'U') => Encoding::Url,
                    _ => encoding,
                };
            }
        }
        Self::Tsv(encoding)
    }

    /// Adds the pairs of a body.
    ///
    /// # Errors
    /// [`ColumnError`]; the pairs before the broken one have been added.
    pub fn read(self, body: &[u8], pairs: &mut Pairs) -> Result<(), ColumnError> {
        match self {
            Self::Tsv(encoding) => read_tsv(body, encoding, pairs),
            Self::Form => {
                read_form(body, pairs);
                Ok(())
            }
            Self::Other => Ok(()),
        }
    }
}

fn read_tsv(body: &[u8], encoding: Encoding, pairs: &mut Pairs) -> Result<(), ColumnError> {
    for line in body.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A line without a tab is not a pair, and is skipped as in Kyoto Tycoon.
        let Some(tab) = memchr::memchr(b'\t', line) else { continue };
        let decode = |column: &[u8]| encoding.decode(column).ok_or(ColumnError);
        pairs.insert(decode(&line[..tab])?, decode(&line[tab + 1..])?);
    }
    Ok(())
}

/// Adds the pairs of a form, or of the query of a URL. A name without `=` has an empty value, and a
/// malformed escape is left as it is.
pub fn read_form(text: &[u8], pairs: &mut Pairs) {
    for pair in text.split(|&byte| matches!(byte, b'&' | b';')) {
        let pair = pair.trim_ascii_start();
        if pair.is_empty() {
            continue;
        }
        let (name, value) = match memchr::memchr(b'=', pair) {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &b""[..]),
        };
        pairs.insert(unescape(name), unescape(value));
    }
}

impl Encoding {
    fn decode(self, column: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Raw => Some(column.to_vec()),
            Self::Base64 => base64::decode(column),
            Self::Quoted => quoted::decode(column),
            Self::Url => Some(unescape(column)),
        }
    }
}

/// Writes pairs as a body, with its `Content-Type`: raw if that can be read back, otherwise in the
/// shorter of Base64 and percent-encoding, as Kyoto Tycoon chooses.
#[must_use]
pub fn write(pairs: &Pairs) -> (&'static str, Vec<u8>) {
    let columns = || pairs.iter().flat_map(|(name, value)| [name, value]);
    let mut body = Vec::new();
    let mut put = |encode: &dyn Fn(&[u8], &mut Vec<u8>)| {
        for (name, value) in pairs {
            encode(name, &mut body);
            body.push(b'\t');
            encode(value, &mut body);
            body.push(b'\n');
        }
    };
    if columns().all(|column| is_plain(column)) {
        put(&|column, body| body.extend_from_slice(column));
        return (TSV, body);
    }
    // Both lengths are estimated from the first bytes of each column.
    let heads = || columns().map(|column| &column[..column.len().min(RAW_LEN_MAX)]);
    let base64_len: usize = heads().map(|head| head.len() * 6 / 4 + 3).sum();
    let url_len: usize = heads().flatten().map(|&byte| if is_kept(byte) { 1 } else { 3 }).sum();
    if base64_len < url_len {
        put(&|column, body| body.extend_from_slice(base64::encode(column).as_bytes()));
        ("text/tab-separated-values; colenc=B", body)
    } else {
        put(&escape);
        ("text/tab-separated-values; colenc=U", body)
    }
}

fn is_plain(column: &[u8]) -> bool {
    column.len() <= RAW_LEN_MAX && column.iter().all(|&byte| byte >= b' ' && byte != 0x7f)
}

/// Whether a byte stands for itself in percent-encoding.
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.!~*'()".contains(&byte)
}

/// Percent-encodes.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if is_kept(byte) {
            out.push(byte);
        } else {
            let digit = |nibble: u8| DIGITS[usize::from(nibble)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Decodes percent-encoding with `+` for a space. A malformed escape is left as it is.
#[must_use]
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(byte),
            },
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// The value of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(of: &[(&str, &str)]) -> Pairs {
        of.iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect()
    }

    #[track_caller]
    fn check(content_type: &str, body: &str, expected: &[(&str, &str)]) {
        let mut found = Pairs::new();
        ContentType::parse(content_type).read(body.as_bytes(), &mut found).expect("pairs");
        assert_eq!(found, pairs(expected), "{content_type}: {body:?}");
    }

    #[test]
    fn bodies_are_read_by_their_content_type() {
        check(
            "text/tab-separated-values",
            "a\t1\nb\t2\r\nc\t\n\nno pair\nd\t4\t5",
            &[("a", "1"), ("b", "2"), ("c", ""), ("d", "4\t5")],
        );
        check(
            "Text/Tab-Separated-Values; charset=utf-8; ColEnc=\"b\"",
            "a2V5\tdg==\n",
            &[("key", "v")],
        );
        check("text/tab-separated-values;colenc=U", "k%20\ta+b%zz\n", &[("k ", "a b%zz")]);
        check("text/tab-separated-values; colenc=Q", "k\tx=3Dy\n", &[("k", "x=y")]);
        check(
            "application/x-www-form-urlencoded",
            "a=1&b=%31;c&=&a=2",
            &[("a", "2"), ("b", "1"), ("c", ""), ("", "")],
        );
        check("application/json", "{\"a\":1}", &[]);
    }

    #[test]
    fn a_column_that_is_not_what_it_says_is_refused() {
        for (encoding, body) in [("B", "a\tb*c=\n"), ("Q", "a\t=ZZ\n")] {
            let content_type =
                ContentType::parse(&format!("text/tab-separated-values; colenc={encoding}"));
            assert_eq!(content_type.read(body.as_bytes(), &mut Pairs::new()), Err(ColumnError));
        }
    }

    #[test]
    fn what_is_plain_is_written_as_it_is() {
        assert_eq!(write(&Pairs::new()), (TSV, Vec::new()));
        assert_eq!(write(&pairs(&[("a", "1"), ("日本", "x y")])).1, "a\t1\n日本\tx y\n".as_bytes());
        assert_eq!(
            write(&pairs(&[("a", "1\t")])),
            ("text/tab-separated-values; colenc=U", b"a\t1%09\n".to_vec())
        );
        let binary = write(&pairs(&[("a", "\0\0\0\0\0\0\0\0")]));
        assert_eq!(
            binary,
            ("text/tab-separated-values; colenc=B", b"YQ==\tAAAAAAAAAAA=\n".to_vec())
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(written: Pairs) {
            let (content_type, body) = write(&written);
            let mut read = Pairs::new();
            ContentType::parse(content_type).read(&body, &mut read).expect("pairs");
            prop_assert_eq!(read, written);
        }

        #[test]
        fn garbage_is_no_panic(body: Vec<u8>, header: String) {
            let _ = ContentType::parse(&header).read(&body, &mut Pairs::new());
            for encoding in [Encoding::Base64, Encoding::Quoted, Encoding::Url, Encoding::Raw] {
                let _ = ContentType::Tsv(encoding).read(&body, &mut Pairs::new());
            }
        }
    }
}
