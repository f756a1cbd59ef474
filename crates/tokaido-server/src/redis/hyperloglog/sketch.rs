//! A HyperLogLog as Redis stores it, byte for byte. A header of 16 bytes: `HYLL`, the encoding, three zero bytes,
//! and the last count as a 64-bit little-endian number, whose highest bit says that the count is stale. Then
//! 16,384 registers of six bits, in one of two encodings: dense, all of them in sequence, or sparse, as runs of
//! equal ones.

use crate::redis::failure::Failure;

const MAGIC: &[u8] = b"HYLL";
/// The offset of the encoding.
const FORM_AT: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The offset of the last count, and of its byte whose highest bit says that it is stale.
const COUNT_AT: usize = 8;
const STALE_AT: usize = 15;
const STALE: u8 = 0x80;
const HEADER_LEN: usize = 16;

/// The number of a hash's bits that select a register.
const INDEX_BITS: u32 = 14;
const REGISTERS: usize = 1 << INDEX_BITS;
/// The number of a hash's other bits. A register's value is at most one more.
const RUN_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const REGISTER_MASK: u16 = (1 << REGISTER_BITS) - 1;
const DENSE_LEN: usize = HEADER_LEN + REGISTERS * REGISTER_BITS / 8;

/// Maximum length of the sparse encoding in bytes: Redis's default for `hll-sparse-max-bytes`.
const SPARSE_LEN_MAX: usize = 3000;
/// Maximum value of a register in the sparse encoding.
const SPARSE_VALUE_MAX: u8 = 32;
/// Maximum number of registers in a run with a non-zero value.
const VALUE_RUN_MAX: usize = 4;
/// Maximum number of registers in a run of zeros encoded in one byte.
const SHORT_RUN_MAX: usize = 64;

/// Consecutive equal registers of the sparse encoding.
#[derive(Clone, Copy)]
struct Run {
    value: u8,
    len: usize,
    /// Its length in bytes.
    size: usize,
}

impl Run {
    /// The run at an offset, or `None` at the end or if the run is cut off.
    fn at(bytes: &[u8], place: usize) -> Option<Self> {
        let byte = *bytes.get(place)?;
        let low = usize::from(byte & 0x3f);
        Some(match byte >> 6 {
            0 => Self { value: 0, len: low + 1, size: 1 },
            1 => {
                let next = usize::from(*bytes.get(place + 1)?);
                Self { value: 0, len: (low << 8 | next) + 1, size: 2 }
            }
            _ => Self { value: (byte >> 2 & 0x1f) + 1, len: usize::from(byte & 3) + 1, size: 1 },
        })
    }

    /// Appends the bytes of a run; none if it has no registers.
    fn write(value: u8, len: usize, bytes: &mut Vec<u8>) {
        match (value, len) {
            (_, 0) => {}
            (0, 1..=SHORT_RUN_MAX) => bytes.push((len - 1) as u8),
            (0, _) => bytes.extend([0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
            _ => bytes.push(Self::byte(value, len)),
        }
    }

    /// The byte that encodes a run with a non-zero value.
    fn byte(value: u8, len: usize) -> u8 {
        0x80 | (value - 1) << 2 | (len - 1) as u8
    }
}

/// A HyperLogLog.
pub(super) struct Sketch(Vec<u8>);

impl Sketch {
    /// Creates an empty one.
    pub(super) fn new() -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[FORM_AT] = SPARSE;
        Run::write(0, REGISTERS, &mut bytes);
        Self(bytes)
    }

    /// # Errors
    /// If the value is not a HyperLogLog.
    pub(super) fn read(value: &[u8]) -> Result<Self, Failure> {
        let is_sketch = value.len() >= HEADER_LEN
            && value.starts_with(MAGIC)
            && match value[FORM_AT] {
                DENSE => value.len() == DENSE_LEN,
                form => form == SPARSE,
            };
        if is_sketch { Ok(Self(value.to_vec())) } else { Err(Failure::NotASketch) }
    }

    /// The bytes, with the last count marked as stale.
    pub(super) fn into_changed(mut self) -> Vec<u8> {
        self.0[STALE_AT] |= STALE;
        self.0
    }

    pub(super) fn is_dense(&self) -> bool {
        self.0[FORM_AT] == DENSE
    }

    /// The last count, if it is not stale.
    pub(super) fn known_count(&self) -> Option<i64> {
        let count: [u8; 8] = self.0[COUNT_AT..HEADER_LEN].try_into().ok()?;
        (self.0[STALE_AT] & STALE == 0).then_some(i64::from_le_bytes(count))
    }

    /// Adds an element. Returns whether that has changed anything.
    pub(super) fn add(&mut self, element: &[u8]) -> Result<bool, Failure> {
        let hash = murmur(element);
        let index = hash as usize % REGISTERS;
        let rest = hash >> INDEX_BITS | 1 << RUN_BITS;
        self.set(index, rest.trailing_zeros() as u8 + 1)
    }

    /// Raises a register to a value. Returns whether it was lower.
    pub(super) fn set(&mut self, index: usize, value: u8) -> Result<bool, Failure> {
        if self.is_dense() {
            Ok(self.set_dense(index, value))
        } else {
            self.set_sparse(index, value)
        }
    }

    fn set_dense(&mut self, index: usize, value: u8) -> bool {
        if dense(&self.0, index) >= value {
            return false;
        }
        let (byte, shift) = dense_place(index);
        let cleared = !(REGISTER_MASK << shift);
        let [low, high] = (u16::from(value) << shift).to_le_bytes();
        let [cleared_low, cleared_high] = cleared.to_le_bytes();
        self.0[byte] = self.0[byte] & cleared_low | low;
        // After the last register there is nothing.
        if let Some(next) = self.0.get_mut(byte + 1) {
            *next = *next & cleared_high | high;
        }
        true
    }

    /// Sets a register of the sparse encoding by splitting the run that contains it.
    fn set_sparse(&mut self, index: usize, value: u8) -> Result<bool, Failure> {
        let (mut place, mut before, mut first) = (HEADER_LEN, HEADER_LEN, 0);
        let run = loop {
            let run = Run::at(&self.0, place).ok_or(Failure::DamagedSketch)?;
            if index < first + run.len {
                break run;
            }
            before = place;
            place += run.size;
            first += run.len;
        };
        if run.value >= value {
            return Ok(false);
        }
        let mut split = Vec::new();
        Run::write(run.value, index - first, &mut split);
        if value <= SPARSE_VALUE_MAX {
            Run::write(value, 1, &mut split);
        }
        Run::write(run.value, first + run.len - 1 - index, &mut split);
        let is_longer = split.len() > run.size;
        if value > SPARSE_VALUE_MAX
            || is_longer && self.0.len() - run.size + split.len() > SPARSE_LEN_MAX
        {
            self.make_dense()?;
            return Ok(self.set_dense(index, value));
        }
        self.0.splice(place..place + run.size, split);
        self.join(before);
        Ok(true)
    }

    /// Joins runs of equal value among the next few, as Redis does.
    fn join(&mut self, mut place: usize) {
        const RUNS: usize = 5;
        for _ in 0..RUNS {
            let Some(run) = Run::at(&self.0, place) else { return };
            let next = Run::at(&self.0, place + run.size).filter(|next| {
                run.value > 0 && next.value == run.value && run.len + next.len <= VALUE_RUN_MAX
            });
            match next {
                Some(next) => {
                    self.0[place + 1] = Run::byte(run.value, run.len + next.len);
                    self.0.remove(place);
                }
                None => place += run.size,
            }
        }
    }

    pub(super) fn make_dense(&mut self) -> Result<(), Failure> {
        if self.is_dense() {
            return Ok(());
        }
        let mut registers = Registers::new();
        registers.merge(self)?;
        let mut bytes = vec![0; DENSE_LEN];
        bytes[..HEADER_LEN].copy_from_slice(&self.0[..HEADER_LEN]);
        bytes[FORM_AT] = DENSE;
        self.0 = bytes;
        for (index, value) in registers.set() {
            self.set_dense(index, value);
        }
        Ok(())
    }
}

/// The offset of the byte in which a dense register begins, and the position of its lowest bit there.
fn dense_place(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (HEADER_LEN + bit / 8, bit % 8)
}

fn dense(bytes: &[u8], index: usize) -> u8 {
    let (byte, shift) = dense_place(index);
    let word = u16::from_le_bytes([bytes[byte], bytes.get(byte + 1).copied().unwrap_or(0)]);
    (word >> shift & REGISTER_MASK) as u8
}

/// The registers of several sketches combined: the highest value of each.
pub(super) struct Registers(Vec<u8>);

impl Registers {
    pub(super) fn new() -> Self {
        Self(vec![0; REGISTERS])
    }

    /// # Errors
    /// If the sparse encoding has too few registers or too many.
    pub(super) fn merge(&mut self, sketch: &Sketch) -> Result<(), Failure> {
        if sketch.is_dense() {
            for (index, value) in self.0.iter_mut().enumerate() {
                *value = (*value).max(dense(&sketch.0, index));
            }
            return Ok(());
        }
        let (mut place, mut first) = (HEADER_LEN, 0);
        while place < sketch.0.len() {
            let run = Run::at(&sketch.0, place).ok_or(Failure::DamagedSketch)?;
            let registers = self.0.get_mut(first..first + run.len).ok_or(Failure::DamagedSketch)?;
            registers.iter_mut().for_each(|value| *value = (*value).max(run.value));
            place += run.size;
            first += run.len;
        }
        if first == REGISTERS { Ok(()) } else { Err(Failure::DamagedSketch) }
    }

    /// The registers that are not zero.
    pub(super) fn set(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().copied().enumerate().filter(|&(_, value)| value > 0)
    }

    /// The approximate number of distinct elements, by Otmar Ertl's estimator in "New cardinality estimation
    /// algorithms for HyperLogLog sketches", arXiv:1702.01284.
    pub(super) fn count(&self) -> i64 {
        /// 0.5 / ln 2.
        const ALPHA: f64 = 0.721_347_520_444_481_7;
        let mut histogram = [0u32; REGISTER_MASK as usize + 1];
        self.0.iter().for_each(|&value| histogram[usize::from(value)] += 1);
        let of = |value: u32| f64::from(histogram[value as usize]);
        let m = REGISTERS as f64;
        let mut z = m * tau((m - of(RUN_BITS + 1)) / m);
        for value in (1..=RUN_BITS).rev() {
            z = (z + of(value)) * 0.5;
        }
        z += m * sigma(of(0) / m);
        (ALPHA * m * m / z).round() as i64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

/// `MurmurHash64A` with Redis's seed.
fn murmur(data: &[u8]) -> u64 {
    const SEED: u64 = 0xadc8_3b19;
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = SEED ^ (data.len() as u64).wrapping_mul(M);
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}
