//! Taking samples: the subjects in turn, with the first round discarded; and the resolution of the clock.

use std::time::{Duration, Instant};

/// Number of clock steps that are examined for the resolution.
const GRAIN_STEPS: usize = 101;

/// The resolution of the clock: the median of the smallest steps in which it is seen to advance,
/// including the time that reading it takes.
#[must_use]
pub fn clock_grain() -> Duration {
    let step = || {
        let began = Instant::now();
        loop {
            let step = began.elapsed();
            if !step.is_zero() {
                return step;
            }
        }
    };
    let mut steps: Vec<Duration> = (0..GRAIN_STEPS).map(|_| step()).collect();
    steps.sort();
    steps[GRAIN_STEPS / 2]
}

/// Takes `rounds` samples of each subject, in turn: A B C A B C. Drifts over minutes, such as in
/// the clock of a shared machine, then affect all of them alike. One more round comes first and is
/// discarded. `sample(s)` takes one sample of subject `s`; the first error ends it all.
///
/// # Errors
/// Any error of `sample`.
pub fn interleave<E>(
    subjects: usize,
    rounds: usize,
    mut sample: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut samples = vec![Vec::with_capacity(rounds); subjects];
    for round in 0..=rounds {
        for (subject, taken) in samples.iter_mut().enumerate() {
            let value = sample(subject)?;
            if round > 0 {
                taken.push(value);
            }
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns_and_the_first_round_does_not_count() {
        let mut order = Vec::new();
        let samples = interleave(2, 2, |subject| {
            order.push(subject);
            Ok::<_, ()>(order.len() as f64)
        })
        .unwrap();
        assert_eq!(order, [0, 1, 0, 1, 0, 1]);
        assert_eq!(samples, [vec![3.0, 5.0], vec![4.0, 6.0]]);
    }

    #[test]
    fn the_clock_has_a_grain() {
        assert!(!clock_grain().is_zero());
    }

    #[test]
    fn the_first_failure_ends_it() {
        let mut taken = 0;
        let result = interleave(2, 3, |subject| {
            taken += 1;
            if subject == 1 { Err("refused") } else { Ok(1.0) }
        });
        assert_eq!((result, taken), (Err("refused"), 2));
    }
}
