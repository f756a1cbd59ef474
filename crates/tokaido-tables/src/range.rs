//! Ranges of keys: of a table's rows, or of entries in its indexes.

use tokaido_store::prefix_end;

/// The keys from `low` on and below `high`; without `high`, all from `low` on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Option<Vec<u8>>,
}

impl Range {
    pub(crate) const ALL: Self = Self { low: Vec::new(), high: None };

    /// The keys that begin with `prefix`.
    pub(crate) fn beginning(prefix: Vec<u8>) -> Self {
        Self { high: prefix_end(&prefix), low: prefix }
    }

    /// One key.
    pub(crate) fn key(key: &[u8]) -> Self {
        Self { low: key.to_vec(), high: Some([key, &[0]].concat()) }
    }

    pub(crate) fn has(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }
}

/// The same keys in disjoint, ordered ranges.
pub(crate) fn apart(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort();
    let mut out: Vec<Range> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|high| range.low <= *high) => {
                // A missing upper end is above all others.
                if last.high.is_some() && (range.high.is_none() || range.high > last.high) {
                    last.high = range.high;
                }
            }
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_beginning_ends_behind_it() {
        let range = Range::beginning(b"a\xff".to_vec());
        assert!(range.has(b"a\xff") && range.has(b"a\xff\xff1") && !range.has(b"b"));
        assert!(Range::key(b"a").has(b"a") && !Range::key(b"a").has(b"a\0"));
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let range = |low: &str, high: &str| Range { low: low.into(), high: Some(high.into()) };
        let ranges = vec![range("x", "z"), range("a", "c"), range("b", "d"), range("a", "b")];
        assert_eq!(apart(ranges), [range("a", "d"), range("x", "z")]);
        assert_eq!(apart(vec![range("x", "z"), Range::ALL]), [Range::ALL]);
    }
}
