//! The file format shared by reader and writer: sizes, the hash, and pairs of numbers.

/// Maximum length of a cdb file, in bytes: positions in it have 32 bits.
pub const FILE_LEN_MAX: u64 = u32::MAX as u64;

/// The number of hash tables in a file; a key's table is its hash modulo this.
pub(super) const TABLES: usize = 256;

/// The bytes of a pair: the position and length of a table, the lengths of a key and a value, or
/// the hash and position of a record.
pub(super) const PAIR_LEN: usize = 8;

/// The bytes before the first record: a pair for each table.
pub(super) const HEADER_LEN: usize = TABLES * PAIR_LEN;

/// Slots of the hash tables for each record. Half of them stay empty, so that look-ups end soon.
pub(super) const SLOTS_PER_RECORD: usize = 2;

/// The bytes of a record's slots.
pub(super) const SLOTS_LEN: u64 = (SLOTS_PER_RECORD * PAIR_LEN) as u64;

/// The bytes of a record, without its slots: the two lengths, the key, the value.
pub(super) fn record_len(key_len: usize, value_len: usize) -> u64 {
    PAIR_LEN as u64 + key_len as u64 + value_len as u64
}

/// The hash of a key.
pub(super) fn hash(key: &[u8]) -> u32 {
    key.iter().fold(5381, |hash: u32, &byte| (hash << 5).wrapping_add(hash) ^ u32::from(byte))
}

/// The table that keys of this hash are in.
pub(super) fn table_of(hash: u32) -> usize {
    hash as usize % TABLES
}

/// The slot at which the search for a hash begins, in a table of `slots` slots (at least one).
pub(super) fn first_slot(hash: u32, slots: usize) -> usize {
    (hash as usize / TABLES) % slots
}

/// The two numbers of a pair.
pub(super) fn decode_pair(bytes: [u8; PAIR_LEN]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

/// A pair of two numbers.
pub(super) fn encode_pair(first: u32, second: u32) -> [u8; PAIR_LEN] {
    let mut bytes = [0; PAIR_LEN];
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    bytes[4..].copy_from_slice(&second.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: 5381 * 33 = 177,573 = 0x2b5a5, whose last byte "a" (0x61) changes.
    #[test]
    fn the_hash_is_that_of_the_format() {
        assert_eq!(hash(b""), 5381);
        assert_eq!(hash(b"a"), 0x2b5a5 ^ 0x61);
        assert_eq!(hash(b"ab"), ((0x2b5a5 ^ 0x61) * 33) ^ 0x62);
    }

    #[test]
    fn pairs_are_little_endian() {
        assert_eq!(encode_pair(1, 0x0403_0201), [1, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(decode_pair([1, 0, 0, 0, 1, 2, 3, 4]), (1, 0x0403_0201));
    }
}
