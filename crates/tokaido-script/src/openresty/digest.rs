//! Digests, by the names that scripts use for them.

use md5::Md5;
use sha1_smol::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

/// The block size of SHA-1, to which a key is padded.
const SHA1_BLOCK_LEN: usize = 64;

/// The digest of a text; `None` if there is none of that name.
pub(crate) fn digest(name: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    Some(match name {
        b"md5" => Md5::digest(text).to_vec(),
        b"sha1" => sha1(text).to_vec(),
        b"sha224" => Sha224::digest(text).to_vec(),
        b"sha256" => Sha256::digest(text).to_vec(),
        b"sha384" => Sha384::digest(text).to_vec(),
        b"sha512" => Sha512::digest(text).to_vec(),
        _ => return None,
    })
}

fn sha1(text: &[u8]) -> [u8; 20] {
    Sha1::from(text).digest().bytes()
}

/// A text's HMAC: RFC 2104 with SHA-1.
pub(crate) fn hmac_sha1(key: &[u8], text: &[u8]) -> [u8; 20] {
    let mut block = [0; SHA1_BLOCK_LEN];
    if key.len() > SHA1_BLOCK_LEN {
        block[..20].copy_from_slice(&sha1(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = sha1(&[&block.map(|byte| byte ^ 0x36), text].concat());
    sha1(&[&block.map(|byte| byte ^ 0x5c)[..], &inner].concat())
}

/// zlib's checksum.
pub(crate) fn crc32(text: &[u8]) -> u32 {
    crc32fast::hash(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_their_standards() {
        let of = |name: &str| hex(&digest(name.as_bytes(), b"hello").unwrap());
        assert_eq!(of("md5"), "5d41402abc4b2a76b9719d911017c592");
        assert_eq!(of("sha1"), "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d");
        assert!(of("sha224").starts_with("ea09ae9cc6768c50fcee903ed054556e"));
        assert!(of("sha256").starts_with("2cf24dba5fb0a30e26e83b2ac5b9e29e"));
        assert!(of("sha384").starts_with("59e1748777448c69de6b800d7a33bbfb"));
        assert!(of("sha512").starts_with("9b71d224bd62f3785d96d46ad3ea3d73"));
        assert_eq!(digest(b"sha3", b""), None);
        assert_eq!(crc32(b"hello"), 907_060_870);
    }

    /// Test cases 2 and 6 of RFC 2202.
    #[test]
    fn signatures_are_those_of_the_rfc() {
        let signed = hmac_sha1(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(hex(&signed), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let signed = hmac_sha1(&[0xaa; 80], text);
        assert_eq!(hex(&signed), "aa4ae5e15272d00e95705637ce8a3b55ed402112");
    }
}
