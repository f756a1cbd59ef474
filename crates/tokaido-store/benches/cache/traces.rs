//! Sequences of keys on which caches are compared.

/// Spreads numbers over 64 bits (the finaliser of SplitMix64).
pub(crate) fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// A key of 16 bytes.
pub(crate) fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    let bits = scatter(n);
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = b"0123456789abcdef"[(bits >> (4 * i)) as usize & 15];
    }
    key
}

/// Draws numbers below `keys`, the n-th most frequent one with a weight of 1 / n^skew.
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
    state: u64,
}

impl Zipf {
    pub(crate) fn new(keys: usize, skew: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let weight = |n: usize| (n as f64).powf(-skew);
        let mut cumulative: Vec<_> = (1..=keys)
            .map(|n| {
                sum += weight(n);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|up_to| *up_to /= sum);
        Self { cumulative, state: seed }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let unit = (scatter(self.state) >> 11) as f64 / (1u64 << 53) as f64;
        self.cumulative.partition_point(|up_to| *up_to < unit) as u64
    }
}

const LEN: usize = 2_000_000;
/// Numbers that no distribution draws.
const SCANNED: u64 = 1 << 40;

/// The traces for a cache of `capacity` records, by name.
pub(crate) fn all(capacity: usize) -> Vec<(&'static str, Vec<u64>)> {
    let keys = capacity * 10;
    let zipf = |skew| {
        let mut zipf = Zipf::new(keys, skew, 42);
        (0..LEN).map(|_| zipf.draw()).collect::<Vec<_>>()
    };
    let mut scanned = SCANNED..;
    let with_scans = zipf(1.0).chunks(capacity).fold(Vec::new(), |mut trace, part| {
        trace.extend(part);
        trace.extend(scanned.by_ref().take(capacity / 2));
        trace
    });
    // Eight times, a part of the working set is replaced.
    let shifting = zipf(0.9).into_iter().enumerate();
    let shifting = shifting.map(|(i, n)| n + (i / (LEN / 8) * keys / 4) as u64).collect();
    let looping = |len: usize| (0..LEN).map(|i| (i % len) as u64).collect::<Vec<_>>();
    let half_looping = zipf(0.9).into_iter().enumerate();
    let half_looping = half_looping
        .map(|(i, n)| match i % 2 {
            0 => SCANNED + (i / 2 % (capacity * 6 / 5)) as u64,
            _ => n,
        })
        .collect();
    vec![
        ("Zipf 0.7", zipf(0.7)),
        ("Zipf 0.9", zipf(0.9)),
        ("Zipf 1.0", zipf(1.0)),
        ("Zipf 1.0 and scans", with_scans),
        ("Zipf 0.9, shifting", shifting),
        ("loop of 1.2 x capacity", looping(capacity * 6 / 5)),
        ("loop of 2 x capacity", looping(capacity * 2)),
        ("half loop, half Zipf 0.9", half_looping),
    ]
}
