//! The hash by which elements are ordered where they have no order of their own.

/// The upper half of 64-bit FNV-1a with MurmurHash3's finalizer. It is stored in files, so it must
/// not change.
pub(super) fn hash(name: &[u8]) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in name {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((hash ^ hash >> 33) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_stays_as_it_is() {
        // Computed by another implementation.
        assert_eq!(
            [hash(b""), hash(b"a"), hash(b"field:1")],
            [0xefd0_1f60, 0x82a2_a958, 0x9ab5_7999]
        );
    }
}
