//! What a set of samples says: the median, its spread, and the ratio of two interleaved sets.

/// The middle of a set of samples and how far they scatter around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median: a stray sample does not move it, as it would a mean.
    pub median: f64,
    /// A quarter of the samples are below.
    pub quartile_low: f64,
    /// A quarter of the samples are above.
    pub quartile_high: f64,
    /// The least of them: what the machine can do when nothing disturbs it.
    pub min: f64,
    /// How many samples there were.
    pub count: usize,
}

impl Summary {
    /// Sums up `samples`; `None` when there are none, or when one is not a finite number.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: quantile(&sorted, 0.5),
            quartile_low: quantile(&sorted, 0.25),
            quartile_high: quantile(&sorted, 0.75),
            min: sorted[0],
            count: sorted.len(),
        })
    }

    /// The distance between the quartiles, as a part of the median: 0.02 reads "within 2 %".
    /// Zero when the median is zero.
    #[must_use]
    pub fn spread(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        ((self.quartile_high - self.quartile_low) / self.median).abs()
    }
}

/// How many times B is A, from samples taken A B A B: the ratio is formed within each round, so
/// that a machine which slows down in the middle slows both sides of a ratio down. `None` unless
/// both have the same number of samples, at least one, and no sample of A is zero.
#[must_use]
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Summary> {
    if a.len() != b.len() {
        return None;
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / a).collect();
    Summary::of(&ratios)
}

/// The value below which the part `q` of `sorted` lies, on a line between its two neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_sample_or_between_the_middle_two() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of(&[7.0]).unwrap().median, 7.0);
    }

    #[test]
    fn one_stray_sample_moves_neither_median_nor_spread_far() {
        let calm = Summary::of(&[10.0, 10.1, 9.9, 10.0, 10.0]).unwrap();
        let stray = Summary::of(&[10.0, 10.1, 9.9, 10.0, 900.0]).unwrap();
        assert_eq!(calm.median, stray.median);
        assert!(stray.spread() < 0.02, "{stray:?}");
    }

    #[test]
    fn quartiles_lie_between_their_neighbours() {
        let summary = Summary::of(&[0.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.quartile_low, summary.quartile_high), (0.75, 2.25));
        assert_eq!(summary.min, 0.0);
        assert_eq!(summary.spread(), 1.0);
        assert_eq!(summary.count, 4);
    }

    #[test]
    fn nothing_is_said_of_no_samples_or_of_ones_that_are_no_numbers() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
        assert_eq!(Summary::of(&[0.0]).unwrap().spread(), 0.0);
    }

    #[test]
    fn a_ratio_is_formed_within_each_round() {
        // The machine runs at half its speed from the second round on; B is always twice A.
        let summary = ratio(&[10.0, 5.0, 5.0], &[20.0, 10.0, 10.0]).unwrap();
        assert_eq!((summary.median, summary.spread()), (2.0, 0.0));
    }

    #[test]
    fn a_ratio_needs_as_many_of_the_one_as_of_the_other() {
        assert_eq!(ratio(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(ratio(&[], &[]), None);
        assert_eq!(ratio(&[0.0], &[1.0]), None);
    }
}
