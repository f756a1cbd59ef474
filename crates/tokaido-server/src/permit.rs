//! Permits, which count what there is only so many of.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// One of those that are counted, until it is dropped.
pub(crate) struct Permit(Arc<AtomicUsize>);

impl Permit {
    /// Counts one more, unless there are `max` already.
    pub(crate) fn take(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let permit = Self(count.clone());
        (count.fetch_add(1, Relaxed) < max).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_than_the_maximum() {
        let count = Arc::default();
        let first = Permit::take(&count, 2).expect("the first");
        let _second = Permit::take(&count, 2).expect("the second");
        assert!(Permit::take(&count, 2).is_none());
        drop(first);
        assert!(Permit::take(&count, 2).is_some());
        assert_eq!(count.load(Relaxed), 1);
    }
}
