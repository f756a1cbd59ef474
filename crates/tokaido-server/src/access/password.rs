//! Passwords, stored only as SHA-256 hashes, as in Redis' files.

use std::hint::black_box;

use sha2::{Digest as _, Sha256};

/// The hash of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Hash([u8; 32]);

impl Hash {
    pub(super) fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Parses 64 hexadecimal digits, which are lower case, as in Redis.
    pub(super) fn parse(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = digits.as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(high)? << 4 | digit(low)?;
        }
        Some(Self(bytes))
    }

    /// The hash in 64 hexadecimal digits.
    pub(super) fn digits(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares every byte, whatever the first ones are, so that timing reveals nothing.
    pub(super) fn equals(self, other: Self) -> bool {
        let differ = self.0.iter().zip(other.0).fold(0, |all, (a, b)| all | black_box(a ^ b));
        black_box(differ) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_redis_and_comes_back_from_its_digits() {
        // The hash that Redis shows after `ACL SETUSER x >x`.
        let digits = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        let hash = Hash::of(b"x");
        assert_eq!(hash.digits(), digits);
        let parsed = Hash::parse(digits.as_bytes()).expect("64 digits");
        assert!(parsed.equals(hash) && !parsed.equals(Hash::of(b"y")));
        for broken in ["", "2d", &digits[1..], &digits.to_uppercase(), &format!("{digits}0")] {
            assert!(Hash::parse(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
