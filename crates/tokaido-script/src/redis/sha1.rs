//! The names of scripts.

/// The SHA-1 of a text, in hexadecimal digits: what a script is known by.
#[must_use]
pub fn sha1_hex(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}
