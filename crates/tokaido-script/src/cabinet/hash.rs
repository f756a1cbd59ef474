//! The hash functions of Kyoto Cabinet, cut to 48 bits, which a double holds.

/// The bits of a hash that scripts get.
const MASK: u64 = (1 << 48) - 1;

/// MurmurHash 2 with 64 bits, in Kyoto Cabinet's order of operations.
pub(crate) fn murmur(text: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 19_780_211;
    let mut hash = SEED ^ (text.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        let mut number = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        number ^= number >> 47;
        hash = hash.wrapping_mul(MULTIPLIER) ^ number.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| tail << 8 | u64::from(byte));
        hash = (hash ^ tail).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(MULTIPLIER);
    (hash ^ hash >> 47) & MASK
}

/// The Fowler-Noll-Vo hash, with Kyoto Cabinet's factor.
pub(crate) fn fnv(text: &[u8]) -> u64 {
    let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(109_951_162_811);
    text.iter().fold(14_695_981_039_346_656_037, hash) & MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kyoto Cabinet 1.2.79 gives.
    #[test]
    fn hashes_are_those_of_kyoto_cabinet() {
        for (text, by_murmur, by_fnv) in [
            ("", 33_346_480_082_061, 172_505_283_306_277),
            ("a", 178_013_140_068_799, 280_391_095_641_772),
            ("abc", 114_849_429_314_854, 101_813_348_627_779),
            ("hello world", 41_887_138_601_910, 229_247_393_592_607),
            ("0123456789abcdef", 152_048_669_655_516, 172_603_530_452_693),
            ("Kyoto Tycoon is here!", 155_492_534_989_258, 151_908_426_794_238),
        ] {
            assert_eq!(
                (murmur(text.as_bytes()), fnv(text.as_bytes())),
                (by_murmur, by_fnv),
                "{text}"
            );
        }
    }
}
