//! What a set of samples says: the median, its spread and its confidence interval, and the ratio of
//! two interleaved sets.

use crate::random::Random;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2_000;

/// The fraction of the resamples that the interval contains.
const CONFIDENCE: f64 = 0.95;

/// A sample further beyond the quartiles than this many interquartile ranges is an outlier (Tukey, 1977).
const FENCE: f64 = 1.5;

/// The middle of a set of samples and how far they scatter around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median: unlike a mean, it is not moved by a stray sample.
    pub median: f64,
    /// A quarter of the samples are below.
    pub quartile_low: f64,
    /// A quarter of the samples are above.
    pub quartile_high: f64,
    /// The smallest sample: what the machine can do when nothing disturbs it.
    pub min: f64,
    /// The number of samples.
    pub count: usize,
}

impl Summary {
    /// Summarises `samples`; `None` if there are none, or if one is not a finite number.
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
}

/// The ratio of B to A in each round, from samples taken A B A B: if the machine slows down in the
/// middle, both sides of a ratio slow down. There is one ratio for each round that both have.
#[must_use]
pub fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| b / a).collect()
}

/// The 95 % confidence interval of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// A bootstrap (Efron, 1979): resamples of the same size are drawn from the samples with replacement, many times over, and
    /// their medians taken. The same samples give the same interval. `None` without samples.
    #[must_use]
    pub fn of_median(samples: &[f64]) -> Option<Self> {
        Summary::of(samples)?;
        let mut random = Random::new(samples.len() as u64);
        let mut drawn = vec![0.0; samples.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                drawn.fill_with(|| samples[random.below(samples.len() as u64) as usize]);
                drawn.sort_by(f64::total_cmp);
                quantile(&drawn, 0.5)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let outside = (1.0 - CONFIDENCE) / 2.0;
        Some(Self { low: quantile(&medians, outside), high: quantile(&medians, 1.0 - outside) })
    }

    /// Whether the interval contains this value, so that no difference from it was measured.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The samples that lie far outside the others. They count, but may indicate a disturbance.
#[must_use]
pub fn outliers(samples: &[f64]) -> Vec<f64> {
    let Some(summary) = Summary::of(samples) else { return Vec::new() };
    let fence = FENCE * (summary.quartile_high - summary.quartile_low);
    let usual = summary.quartile_low - fence..=summary.quartile_high + fence;
    samples.iter().copied().filter(|sample| !usual.contains(sample)).collect()
}

/// The value below which the fraction `q` of `sorted` lies, interpolated linearly between its two neighbours.
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
    fn one_stray_sample_moves_neither_median_nor_quartiles_far() {
        let calm = Summary::of(&[10.0, 10.1, 9.9, 10.0, 10.0]).unwrap();
        let stray = Summary::of(&[10.0, 10.1, 9.9, 10.0, 900.0]).unwrap();
        assert_eq!(calm.median, stray.median);
        assert!(stray.quartile_high - stray.quartile_low < 0.2, "{stray:?}");
    }

    #[test]
    fn quartiles_lie_between_their_neighbours() {
        let summary = Summary::of(&[0.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.quartile_low, summary.quartile_high), (0.75, 2.25));
        assert_eq!(summary.min, 0.0);
        assert_eq!(summary.count, 4);
    }

    #[test]
    fn nothing_is_said_of_no_samples_or_of_ones_that_are_no_numbers() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
    }

    #[test]
    fn a_ratio_is_formed_within_each_round() {
        // The machine runs at half its speed from the second round on; B is always twice A.
        assert_eq!(ratios(&[10.0, 5.0, 5.0], &[20.0, 10.0, 10.0]), [2.0; 3]);
    }

    #[test]
    fn the_interval_holds_the_median_of_the_distribution_as_often_as_it_says() {
        // 400 sets of samples from a known distribution whose median is 1 and which is as skewed as times are.
        let mut random = Random::new(7);
        let mut draw = || 0.5 + 0.5 * -(1.0 - random.fraction()).ln() / std::f64::consts::LN_2;
        let sets = 400;
        let held = (0..sets)
            .filter(|_| {
                let samples: Vec<f64> = (0..15).map(|_| draw()).collect();
                Interval::of_median(&samples).is_some_and(|interval| interval.holds(1.0))
            })
            .count();
        // The bootstrap of a median is known to be somewhat off with few samples.
        assert!((360..=396).contains(&held), "{held} of {sets}");
    }

    #[test]
    fn an_interval_is_narrow_where_samples_agree_and_the_same_each_time() {
        let agreeing = Interval::of_median(&[1.0; 5]).unwrap();
        assert_eq!((agreeing.low, agreeing.high), (1.0, 1.0));
        assert!(!agreeing.holds(1.01));
        let samples = [0.9, 1.2, 1.0, 1.1, 0.8];
        assert_eq!(Interval::of_median(&samples), Interval::of_median(&samples));
        assert_eq!(Interval::of_median(&[]), None);
    }

    #[test]
    fn outliers_are_those_far_from_the_others() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.0, 90.0, 10.05]), [90.0]);
        assert_eq!(outliers(&[1.0, 2.0, 3.0, 4.0]), [0.0_f64; 0]);
        assert_eq!(outliers(&[]), [0.0_f64; 0]);
    }
}
