//! How long requests took, and how they ended.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::operation::{Answer, Kind};

/// Longest time that a histogram can represent.
const LATENCY_MAX: Duration = Duration::from_secs(3600);

/// Significant digits that it keeps.
const DIGITS: u8 = 3;

/// Latencies of requests.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        let ns_max = LATENCY_MAX.as_nanos() as u64;
        Self(Histogram::new_with_bounds(1, ns_max, DIGITS).expect("the bounds are in order"))
    }
}

impl Latency {
    pub(crate) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    pub(super) fn clear(&mut self) {
        self.0.reset();
    }

    /// The number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time in ns within which the fraction `quantile` of the requests completed; 0 without requests.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The longest time, in ns.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean, in ns.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }
}

/// The outcomes of requests.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// From the time a request was due to its answer. In a closed loop it is due when it is sent.
    pub response: Latency,
    /// From sending to the answer, as a generator reports it that ignores when requests were due.
    pub service: Latency,
    /// Requests that were answered, by kind, in the order of [`Kind::ALL`].
    pub answered: [u64; Kind::ALL.len()],
    /// Requests whose record did not exist.
    pub misses: u64,
    /// Requests that the server refused.
    pub refused: u64,
    /// The server's message for the first of them.
    pub refusal: Option<String>,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
}

impl Tally {
    /// Total number of answered requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.answered.iter().sum()
    }

    pub(super) fn count(&mut self, kind: Kind, answer: &Answer) {
        self.answered[kind as usize] += 1;
        match answer {
            Answer::Done => {}
            Answer::Miss => self.misses += 1,
            Answer::Refused(why) => {
                self.refused += 1;
                self.refusal.get_or_insert_with(|| why.clone());
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        for (sum, count) in self.answered.iter_mut().zip(other.answered) {
            *sum += count;
        }
        self.misses += other.misses;
        self.refused += other.refused;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        if self.refusal.is_none() {
            self.refusal.clone_from(&other.refusal);
        }
    }

    pub(super) fn clear(&mut self) {
        let (mut response, mut service) =
            (std::mem::take(&mut self.response), std::mem::take(&mut self.service));
        response.clear();
        service.clear();
        *self = Self { response, service, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_times() {
        let mut latency = Latency::default();
        (1..=10_000).for_each(|us| latency.record(us * 1000));
        for (quantile, us) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.99, 9_900.0), (0.999, 9_990.0)] {
            let found = latency.quantile(quantile) as f64 / 1000.0;
            assert!((found - us).abs() < us * 0.002, "{quantile}: {found}");
        }
        assert!(latency.max().abs_diff(10_000_000) < 10_000);
        let other = latency.clone();
        latency.add(&other);
        assert_eq!(latency.count(), 20_000);
        assert_eq!(Latency::default().quantile(0.99), 0);
    }

    #[test]
    fn what_is_longer_than_the_longest_counts_as_that() {
        let mut latency = Latency::default();
        latency.record(u64::MAX);
        assert_eq!(latency.count(), 1);
        assert!(latency.max() >= LATENCY_MAX.as_nanos() as u64);
    }

    #[test]
    fn answers_are_counted_by_kind_and_the_first_refusal_is_kept() {
        let mut tally = Tally::default();
        tally.count(Kind::Get, &Answer::Miss);
        tally.count(Kind::Set, &Answer::Refused("first".into()));
        let mut other = Tally::default();
        other.count(Kind::Set, &Answer::Refused("second".into()));
        tally.add(&other);
        assert_eq!((tally.answered, tally.misses, tally.refused), ([1, 2, 0, 0], 1, 2));
        assert_eq!(tally.refusal.as_deref(), Some("first"));
        tally.clear();
        assert_eq!((tally.requests(), tally.refusal), (0, None));
    }
}
