//! Scans by prefix and range, forward and backward, with a limit.

use std::ops::{Bound, ControlFlow};

use crate::{DatabaseId, Direction, Entry, ReadError, ReadTransaction};

/// Which keys a scan visits, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// The smallest key.
    pub low: Bound<Vec<u8>>,
    /// The largest key.
    pub high: Bound<Vec<u8>>,
    /// From the smallest to the largest key, or the reverse.
    pub direction: Direction,
}

impl ScanRange {
    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self { low: Bound::Unbounded, high: Bound::Unbounded, direction: Direction::Forward }
    }

    /// The keys that start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let high = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Self { low: Bound::Included(prefix.to_vec()), high, direction: Direction::Forward }
    }

    /// The same keys from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        let direction = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        Self { direction, ..self }
    }

    fn start(&self) -> Bound<Vec<u8>> {
        match self.direction {
            Direction::Forward => self.low.clone(),
            Direction::Backward => self.high.clone(),
        }
    }

    /// The far end.
    fn end(&self) -> Bound<&[u8]> {
        let end = match self.direction {
            Direction::Forward => &self.high,
            Direction::Backward => &self.low,
        };
        end.as_ref().map(Vec::as_slice)
    }

    /// Whether a key met on the way is beyond the far end.
    fn is_past(&self, key: &[u8]) -> bool {
        self.direction.is_past(key, self.end())
    }
}

/// The first key after all that start with `prefix`; `None` if there is none, as after `0xff`.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// A scan in progress. It holds no transaction: each step is given the one to read from, so writes
/// may come between steps, and a listing can continue where an earlier one ended.
#[derive(Clone, Debug)]
pub struct Scanner {
    database: DatabaseId,
    range: ScanRange,
    next: Bound<Vec<u8>>,
    remaining: usize,
}

impl Scanner {
    /// A scan that ends after `limit` entries.
    #[must_use]
    pub fn new(database: DatabaseId, range: ScanRange, limit: usize) -> Self {
        let next = range.start();
        Self { database, range, next, remaining: limit }
    }

    /// Continues after `key`, the last key that an earlier scan returned.
    #[must_use]
    pub fn after(mut self, key: &[u8]) -> Self {
        self.next = Bound::Excluded(key.to_vec());
        self
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// As [`ReadTransaction::seek`].
    pub fn next<'t>(
        &mut self,
        transaction: &'t mut (impl ReadTransaction + ?Sized),
    ) -> Result<Option<Entry<'t>>, ReadError> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let from = self.next.as_ref().map(Vec::as_slice);
        let found = transaction.seek(self.database, from, self.range.direction)?;
        let Some(entry) = found.filter(|entry| !self.range.is_past(entry.key)) else {
            self.remaining = 0;
            return Ok(None);
        };
        self.remaining -= 1;
        remember(&mut self.next, entry.key);
        Ok(Some(entry))
    }

    /// Visits the remaining entries until `visit` breaks off or the limit is reached: as
    /// [`next`](Self::next), but faster. Afterwards the scan can continue with either.
    ///
    /// # Errors
    /// As [`ReadTransaction::scan`]. The scan is then where it was before the call.
    pub fn visit(
        &mut self,
        transaction: &mut (impl ReadTransaction + ?Sized),
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        if self.remaining == 0 {
            return Ok(());
        }
        let Self { database, range, next, remaining } = self;
        let (from, mut left, mut stopped_at) = (next.clone(), *remaining, None);
        let from = from.as_ref().map(Vec::as_slice);
        transaction.scan(*database, from, range.end(), range.direction, &mut |entry| {
            left -= 1;
            if visit(entry).is_continue() && left > 0 {
                return ControlFlow::Continue(());
            }
            stopped_at = Some(entry.key.to_vec());
            ControlFlow::Break(())
        })?;
        match stopped_at {
            Some(key) => (*remaining, *next) = (left, Bound::Excluded(key)),
            None => *remaining = 0,
        }
        Ok(())
    }
}

/// Reuses the buffer of the last bound, so that a step allocates nothing.
fn remember(next: &mut Bound<Vec<u8>>, key: &[u8]) {
    let mut buffer = match std::mem::replace(next, Bound::Unbounded) {
        Bound::Included(buffer) | Bound::Excluded(buffer) => buffer,
        Bound::Unbounded => Vec::new(),
    };
    buffer.clear();
    buffer.extend_from_slice(key);
    *next = Bound::Excluded(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key_that_lacks_it() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
