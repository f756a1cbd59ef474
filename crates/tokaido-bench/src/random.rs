//! Random numbers that are reproducible from a seed, and the Zipf distribution.

/// A generator of random numbers: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// Scatters a number over 64 bits; different numbers have different results.
pub(crate) fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The numbers below `count` in pseudo-random order: each comes up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    count: u64,
    /// The number of bits that hold every number below `count`.
    bits: u32,
}

impl Shuffle {
    /// `count` must be at least 1.
    pub(crate) fn new(count: u64) -> Self {
        // At least two, so that half of them is at least one.
        Self { count, bits: (u64::BITS - (count - 1).leading_zeros()).max(2) }
    }

    /// The number at an index below `count`.
    pub(crate) fn at(&self, place: u64) -> u64 {
        let mut number = self.step(place);
        // A step is a permutation of all numbers with this many bits, so one that is too large leads back in the end.
        while number >= self.count {
            number = self.step(number);
        }
        number
    }

    /// Every operation is reversible, so no two numbers have the same result.
    fn step(&self, mut number: u64) -> u64 {
        let mask = u64::MAX >> (u64::BITS - self.bits);
        for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            number = number.wrapping_mul(factor).wrapping_add(factor >> 32) & mask;
            number ^= number >> (self.bits / 2);
        }
        number
    }
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        let drawn = scatter(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// A number that is at least 0 and below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number that is at least 0 and below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Numbers from 1 to n, where k comes up in proportion to 1 / k^exponent. Drawn by
/// rejection-inversion (Hörmann and Derflinger, 1996), which needs no table.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: f64,
    exponent: f64,
    area_begin: f64,
    area_end: f64,
    shift: f64,
}

impl Zipf {
    /// A distribution over `count` numbers, at least one; the exponent is above 0.
    pub(crate) fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { count: count as f64, exponent, area_begin: 0.0, area_end: 0.0, shift: 0.0 };
        zipf.area_begin = zipf.area(1.5) - 1.0;
        zipf.area_end = zipf.area(zipf.count + 0.5);
        zipf.shift = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_end + random.fraction() * (self.area_begin - self.area_end);
            let x = self.area_inverse(area);
            let k = x.round().clamp(1.0, self.count);
            if k - x <= self.shift || area >= self.area(k + 0.5) - self.height(k) {
                return k as u64;
            }
        }
    }

    /// 1 / x^exponent.
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The area under `height`, up to x.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        // (e^p - 1) / p, whose limit at 0 is 1.
        let factor = if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 };
        factor * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let factor = if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        (factor * area).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    #[test]
    fn numbers_below_an_end_are_drawn_alike() {
        let mut random = Random::new(7);
        let mut counts = [0_usize; 10];
        for _ in 0..DRAWS {
            counts[random.below(10) as usize] += 1;
        }
        let expected = DRAWS / 10;
        assert!(counts.iter().all(|count| count.abs_diff(expected) < expected / 20), "{counts:?}");
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn a_shuffle_has_every_number_once_and_no_order() {
        for count in [1, 2, 3, 1_000, 4_096] {
            let shuffle = Shuffle::new(count);
            let numbers: Vec<u64> = (0..count).map(|place| shuffle.at(place)).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<u64>>());
            let ascents = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count() as u64;
            assert!(count < 1_000 || (count / 3..count * 2 / 3).contains(&ascents), "{ascents}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let draw = |seed| {
            std::array::from_fn::<u64, 4, _>({
                let mut random = Random::new(seed);
                move |_| random.next()
            })
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    /// Each number comes up as often as the formula says, for exponents below, at and above 1.
    #[test]
    fn zipf_numbers_come_up_by_the_formula() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let (count, mut random) = (100_u64, Random::new(3));
            let zipf = Zipf::new(count, exponent);
            let mut counts = vec![0_usize; count as usize + 1];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let weight = |k: u64| (k as f64).powf(-exponent);
            let total: f64 = (1..=count).map(weight).sum();
            for k in [1, 2, 3, 10, 50] {
                let expected = DRAWS as f64 * weight(k) / total;
                // Five standard deviations.
                let tolerance = 5.0 * expected.sqrt();
                let found = counts[k as usize] as f64;
                assert!(
                    (found - expected).abs() < tolerance,
                    "{k}^-{exponent}: {found}, not {expected}"
                );
            }
            assert_eq!(counts[0], 0);
        }
    }

    #[test]
    fn zipf_of_one_number_is_that_number() {
        assert_eq!(Zipf::new(1, 0.99).draw(&mut Random::new(1)), 1);
    }
}
