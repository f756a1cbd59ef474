//! What base and runs hold, by tree.

use std::collections::HashMap;

use crate::DatabaseStatistics;

use super::base::Total;

/// The totals of all trees.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    trees: HashMap<u32, Total, foldhash::fast::RandomState>,
}

impl Totals {
    pub(super) fn get(&self, tree: u32) -> Total {
        self.trees.get(&tree).copied().unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Total)> {
        self.trees.iter().map(|(tree, total)| (*tree, *total))
    }

    pub(super) fn has_estimates(&self) -> bool {
        self.trees.values().any(|total| total.is_estimate)
    }

    /// Adds the difference that writes to a tree make, which may be an estimate.
    pub(super) fn add(&mut self, tree: u32, difference: Total) {
        let total = self.trees.entry(tree).or_default();
        total.sum.add(difference.sum);
        total.is_estimate |= difference.is_estimate;
        if total.is_estimate {
            total.sum = total.sum.at_least_zero();
        }
    }

    /// Forgets the trees for which `is_live` is false.
    pub(super) fn retain(&mut self, is_live: impl Fn(u32) -> bool) {
        self.trees.retain(|tree, _| is_live(*tree));
    }

    /// Replaces the estimates. `counted` is exact, and of the moment at which the totals were `before`; what was
    /// added to them since then is added to that.
    pub(super) fn correct(
        &mut self,
        before: &Self,
        counted: impl Fn(u32) -> DatabaseStatistics,
        is_exact: bool,
    ) {
        for (tree, total) in self.trees.iter_mut().filter(|(_, total)| total.is_estimate) {
            let mut sum = counted(*tree);
            sum.add(total.sum);
            sum.subtract(before.get(*tree).sum);
            *total = Total { sum: sum.at_least_zero(), is_estimate: !is_exact };
        }
    }
}

impl FromIterator<(u32, Total)> for Totals {
    fn from_iter<I: IntoIterator<Item = (u32, Total)>>(totals: I) -> Self {
        Self { trees: totals.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(records: u64) -> DatabaseStatistics {
        DatabaseStatistics { records, ..DatabaseStatistics::default() }
    }

    #[test]
    fn estimates_are_replaced_by_what_was_counted() {
        let estimate = |number| Total { sum: records(number), is_estimate: true };
        let before = Totals::from_iter([(1, estimate(1000)), (2, Total::exact(records(5)))]);
        let mut totals = before.clone();
        totals.add(1, Total::exact(records(30)));
        totals.add(2, Total::exact(records(1)));
        totals.correct(&before, |_| records(900), true);
        assert_eq!(totals.get(1), Total::exact(records(930)));
        assert_eq!(totals.get(2), Total::exact(records(6)), "it was not an estimate");
        assert!(!totals.has_estimates());
    }

    #[test]
    fn an_estimate_is_not_negative() {
        let mut totals = Totals::from_iter([(1, Total { sum: records(10), is_estimate: true })]);
        let mut less = records(0);
        less.subtract(records(11));
        totals.add(1, Total::exact(less));
        assert_eq!(totals.get(1).sum, records(0));
    }
}
