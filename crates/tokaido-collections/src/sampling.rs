//! Drawing random elements of tables.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    ops::{Bound, ControlFlow},
};

use tokaido_store::{CollectionId, ReadError, ReadTransaction};

use super::{
    packed::Texts,
    place::{Random, Visit, damaged, head},
    table::{TAG, Table},
};

/// A random draw picks among this many neighbours, so that their chances even out.
const DRAWN_FROM: u64 = 8;

const TOO_FEW: &str = "a large collection has fewer elements than its record says";

impl Table<'_> {
    /// Calls `visit` with `times` elements, each drawn at random from all of them, until it breaks
    /// off; none if there are none.
    pub(super) fn draw(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        times: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        let len = self.count(record.collection, record.value)?;
        let Some(collection) = record.collection else {
            let mut all = Vec::with_capacity(len as usize);
            let mut texts = Texts::of(record.value);
            while let Some(element) = self.next_packed(&mut texts)? {
                all.push(element);
            }
            if all.is_empty() {
                return Err(damaged("a packed collection has no elements"));
            }
            let _ = (0..times).try_for_each(|_| {
                let (name, value) = all[below(random, len) as usize];
                visit(name, value)
            });
            return Ok(());
        };
        for _ in 0..times {
            if self.draw_large(tx, collection, len, random, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Calls `visit` with `count` different elements, drawn at random, or all if there are no more,
    /// until it breaks off.
    pub(super) fn sample(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        count: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        let len = self.count(record.collection, record.value)?;
        match record.collection {
            None => self.sample_packed(record.value, len, count, random, visit),
            Some(collection) => self.sample_large(tx, collection, len, count, random, visit),
        }
    }

    pub(super) fn sample_packed(
        &self,
        packed: &[u8],
        len: u64,
        count: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let mut selection = Selection { wanted: count.min(len), left: len };
        self.visit_packed(packed, &mut |name, value| selection.pass(random, name, value, visit))
    }

    /// As [`sample`](Self::sample): visits all elements if many are wanted, else draws one by one.
    pub(super) fn sample_large(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        collection: CollectionId,
        len: u64,
        count: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        /// If less than one in this many elements is wanted, they are drawn one by one.
        const SMALL_PART: u64 = 3;
        /// This many draws per wanted element are enough, unless the elements are clustered.
        const DRAWS_EACH: u64 = 4;
        if count.saturating_mul(SMALL_PART) >= len {
            let mut selection = Selection { wanted: count.min(len), left: len };
            return self.visit_all(tx, collection, &mut |name, value| {
                selection.pass(random, name, value, visit)
            });
        }
        let (hasher, mut seen) = (RandomState::new(), HashSet::new());
        let mut has_ended = false;
        let mut take = |name: &[u8], value: &[u8]| {
            // Two names with the same hash would only be drawn less often.
            if (seen.len() as u64) < count && seen.insert(hasher.hash_one(name)) {
                has_ended = visit(name, value).is_break();
            }
            has_ended |= seen.len() as u64 == count;
            if has_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        for _ in 0..count * DRAWS_EACH {
            if self.draw_large(tx, collection, len, random, &mut take)?.is_break() {
                return Ok(());
            }
        }
        self.visit_all(tx, collection, &mut take)?;
        if has_ended { Ok(()) } else { Err(damaged(TOO_FEW)) }
    }

    /// Draws one element: picks a random position in the order, and then one of the elements that
    /// follow it. The gaps before elements vary; the mean of several varies less.
    fn draw_large(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        collection: CollectionId,
        len: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let head = head(collection, TAG);
        let place = (random() as u32).to_be_bytes();
        let mut skipped = below(random, len.min(DRAWN_FROM));
        let mut flow = None;
        // After the last element comes the first one again.
        for from in [&[&head[..], &place].concat(), &head[..]] {
            self.visit_from(tx, &head, Bound::Included(from), &mut |name, value| {
                if skipped > 0 {
                    skipped -= 1;
                    return ControlFlow::Continue(());
                }
                flow = Some(visit(name, value));
                ControlFlow::Break(())
            })?;
            if let Some(flow) = flow {
                return Ok(flow);
            }
        }
        Err(damaged(TOO_FEW))
    }
}

/// Selects `wanted` of the elements that pass, of which `left` are still to come, each with the
/// same probability.
struct Selection {
    wanted: u64,
    left: u64,
}

impl Selection {
    fn pass(
        &mut self,
        random: Random<'_>,
        name: &[u8],
        value: &[u8],
        visit: Visit<'_>,
    ) -> ControlFlow<()> {
        if below(random, self.left) < self.wanted {
            self.wanted -= 1;
            visit(name, value)?;
        }
        self.left = self.left.saturating_sub(1);
        if self.wanted == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A random number below `bound`; 0 if that is 0.
fn below(random: Random<'_>, bound: u64) -> u64 {
    // The upper half of the product is as uniform as the random number.
    ((u128::from(random()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_below_it() {
        for bound in [1, 2, 3, 1 << 40] {
            assert_eq!(below(&mut || 0, bound), 0);
            assert_eq!(below(&mut || u64::MAX, bound), bound - 1);
        }
    }
}
