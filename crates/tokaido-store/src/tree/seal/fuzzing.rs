//! What must hold of a seal for any bytes whatever.

use super::{Seal, format::sign};

/// Any bytes as a seal, and the same with the length and the checksum of one, which a fuzzer would
/// hardly find by itself.
pub fn check_seal(bytes: &[u8]) {
    let mut signed = bytes.to_vec();
    sign(&mut signed);
    for bytes in [bytes, &signed] {
        if let Some(seal) = Seal::decode(bytes) {
            assert_eq!(seal.encode().as_deref(), Some(bytes), "{seal:?}");
        }
    }
}
