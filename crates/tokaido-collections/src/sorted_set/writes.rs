//! Changing a sorted set.

use std::ops::{Bound, ControlFlow, Range};

use tokaido_store::{Direction, NewRecord, ReadError, WriteError, WriteTransaction};

use super::{
    super::{
        packed::{self, Packing, Texts},
        place::{Root, check_name},
        table::element_key,
    },
    SortedSet,
    reads::{VisitScored, visit_packed_ranks},
    record::Large,
    score::{self, SCORE_LEN, rank_key, split},
};

/// A sorted set loaded from the transaction, to be changed.
pub(super) struct Loaded {
    root: Root,
    pub(super) large: Option<Large>,
    len: u64,
}

impl SortedSet<'_> {
    /// Sets the scores of members. `decide` gets a member's current score, if it exists, and the
    /// offered one, and returns the new one; `None`: the member stays as it is.
    ///
    /// # Errors
    /// As [`len`](Self::len) and [`WriteTransaction::put`]; [`WriteError::FieldLength`].
    pub fn update<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        members: impl IntoIterator<Item = (&'m [u8], f64)>,
        mut decide: impl FnMut(Option<f64>, f64) -> Option<f64>,
    ) -> Result<(), WriteError> {
        let mut set = self.load(tx)?;
        let mut has_changed = false;
        for (member, offered) in members {
            check_name(member)?;
            let old = self.score_in(tx, &set, member)?;
            let Some(score) = decide(old, offered) else { continue };
            if old.is_some_and(|old| old == score) {
                continue;
            }
            has_changed = true;
            let has_room = old.is_some() || set.len < packing.elements_max as u64;
            if set.large.is_none() && has_room && packing.admits(member) {
                if let Some(old) = old {
                    remove_packed(&mut set.root.value, &rank_key(old, member))?;
                }
                insert_packed(&mut set.root.value, &rank_key(score, member))?;
                set.len += u64::from(old.is_none());
                continue;
            }
            let large = self.enlarge(tx, &mut set)?;
            match old {
                Some(old) => self.move_large(tx, large, member, [old, score])?,
                None => self.add_large(tx, large, member, score)?,
            }
            set.len = large.len;
        }
        if has_changed { self.save(tx, set) } else { Ok(()) }
    }

    /// Removes members; returns how many there were. The set is deleted with its last member.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn remove<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        members: impl IntoIterator<Item = &'m [u8]>,
    ) -> Result<u64, WriteError> {
        let mut set = self.load(tx)?;
        let before = set.len;
        let mut left = [false; 2];
        for member in members {
            let Some(score) = self.score_in(tx, &set, member)? else { continue };
            if let Some(large) = &set.large {
                let [was_first, was_last] = large.ends_at(&rank_key(score, member));
                left = [left[0] | was_first, left[1] | was_last];
            }
            self.remove_one(tx, &mut set, member, score)?;
        }
        let removed = before - set.len;
        if let Some(large) = &mut set.large {
            self.find_ends(tx, large, left)?;
        }
        if removed > 0 {
            self.save(tx, set)?;
        }
        Ok(removed)
    }

    /// Removes members by rank, calling `visit` with them and their scores, in either direction;
    /// returns how many. `visit` may break off only if the transaction is then rolled back.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn remove_ranks(
        &self,
        tx: &mut dyn WriteTransaction,
        ranks: Range<u64>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<u64, WriteError> {
        let set = self.load(tx)?;
        self.remove_ranks_of(tx, set, ranks, direction, &mut visit)
    }

    /// Removes `count` members from the end at which the direction begins, or all if there are no
    /// more; otherwise as [`remove_ranks`](Self::remove_ranks).
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn pop(
        &self,
        tx: &mut dyn WriteTransaction,
        direction: Direction,
        count: u64,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<u64, WriteError> {
        let set = self.load(tx)?;
        let ranks = match direction {
            Direction::Forward => 0..count,
            Direction::Backward => set.len.saturating_sub(count)..set.len,
        };
        self.remove_ranks_of(tx, set, ranks, direction, &mut visit)
    }

    fn remove_ranks_of(
        &self,
        tx: &mut dyn WriteTransaction,
        mut set: Loaded,
        ranks: Range<u64>,
        direction: Direction,
        visit: VisitScored<'_>,
    ) -> Result<u64, WriteError> {
        /// How many members are read before they are removed.
        const BATCH_MEMBERS: u64 = 1024;
        let len = set.len;
        let ranks = ranks.start..ranks.end.min(len);
        if ranks == (0..len) && len > 0 {
            self.visit_loaded(tx, &set, ranks, direction, visit)?;
            self.place.delete(tx)?;
            return Ok(len);
        }
        let mut left = ranks.end.saturating_sub(ranks.start);
        let (mut flow, mut next) = (ControlFlow::Continue(()), None);
        while left > 0 && flow.is_continue() {
            let count = BATCH_MEMBERS.min(left);
            left -= count;
            let (from, mut removed) = (next.take(), Vec::new());
            let show: VisitScored<'_> = &mut |member, score| {
                if removed.len() as u64 == count {
                    next = Some(rank_key(score, member));
                    return ControlFlow::Break(());
                }
                removed.push((member.to_vec(), score));
                flow = visit(member, score);
                flow
            };
            match (&set.large, from) {
                (Some(large), Some(from)) => self.visit_from(tx, large, &from, direction, show)?,
                // With the member behind them, where the next batch begins.
                _ => {
                    let (start, end) = (ranks.start, ranks.end);
                    let read = match direction {
                        Direction::Forward => start..start + count + 1,
                        Direction::Backward => (end - count).saturating_sub(1)..end,
                    };
                    self.visit_loaded(tx, &set, read, direction, show)?;
                }
            }
            for (member, score) in &removed {
                self.remove_one(tx, &mut set, member, *score)?;
            }
        }
        let removed = len - set.len;
        if removed == 0 {
            return Ok(0);
        }
        if let Some(large) = &mut set.large {
            let mut ends = [ranks.start == 0, ranks.end == len];
            match (direction, next) {
                (Direction::Forward, Some(next)) if std::mem::take(&mut ends[0]) => {
                    large.set_low(&next);
                }
                (Direction::Backward, Some(next)) if std::mem::take(&mut ends[1]) => {
                    large.set_last(&next);
                }
                _ => {}
            }
            self.find_ends(tx, large, ends)?;
        }
        self.save(tx, set)?;
        Ok(removed)
    }

    /// Makes this the sorted set of exactly these members, replacing whatever is under the key;
    /// returns how many there are. Without members, there is no record.
    ///
    /// # Errors
    /// As [`update`](Self::update), whatever is under the key.
    pub fn replace<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        members: impl IntoIterator<Item = (&'m [u8], f64)>,
    ) -> Result<u64, WriteError> {
        self.place.delete(tx)?;
        self.update(tx, packing, members, |_, score| Some(score))?;
        Ok(self.len(tx)?)
    }
}

impl SortedSet<'_> {
    fn visit_loaded(
        &self,
        tx: &mut dyn WriteTransaction,
        set: &Loaded,
        ranks: Range<u64>,
        direction: Direction,
        visit: VisitScored<'_>,
    ) -> Result<(), ReadError> {
        match &set.large {
            Some(large) => self.visit_large_ranks(tx, large, ranks, direction, visit),
            None => visit_packed_ranks(&set.root.value, ranks, direction, visit),
        }
    }

    /// Visits the members from a position on.
    fn visit_from(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &Large,
        from: &[u8],
        direction: Direction,
        visit: VisitScored<'_>,
    ) -> Result<(), ReadError> {
        let from = large.key(from);
        let (from, to) = (Bound::Included(&from[..]), Bound::Unbounded);
        self.visit_keys(tx, large.collection, from, to, direction, &mut |_, member, score| {
            visit(member, score)
        })
    }

    pub(super) fn load(&self, tx: &mut dyn WriteTransaction) -> Result<Loaded, ReadError> {
        let root = self.place.load(tx)?;
        let large = root.collection.map(|collection| Large::read(collection, &root.value));
        let large = large.transpose()?;
        let len = match &large {
            Some(large) => large.len,
            None => packed::count(&root.value)? as u64,
        };
        Ok(Loaded { root, large, len })
    }

    /// Puts the record back, or deletes it if it has no members left.
    pub(super) fn save(
        &self,
        tx: &mut dyn WriteTransaction,
        mut set: Loaded,
    ) -> Result<(), WriteError> {
        if set.len == 0 {
            return self.place.delete(tx);
        }
        if let Some(large) = &set.large {
            set.root.collection = Some(large.collection);
            set.root.value = large.value();
        }
        self.place.save(tx, &set.root)
    }

    /// The current score of a member.
    fn score_in(
        &self,
        tx: &mut dyn WriteTransaction,
        set: &Loaded,
        member: &[u8],
    ) -> Result<Option<f64>, ReadError> {
        let Some(large) = &set.large else {
            let mut texts = Texts::of(&set.root.value);
            while let Some(key) = texts.next()? {
                let (found, score) = split(key)?;
                if found == member {
                    return Ok(Some(score));
                }
            }
            return Ok(None);
        };
        if check_name(member).is_err() {
            return Ok(None);
        }
        let key = element_key(large.collection, member);
        let found = tx.get(self.place.elements(), &key)?;
        found.map(|record| score::decode(record.value)).transpose()
    }

    /// Removes an existing member.
    fn remove_one(
        &self,
        tx: &mut dyn WriteTransaction,
        set: &mut Loaded,
        member: &[u8],
        score: f64,
    ) -> Result<(), WriteError> {
        let Some(large) = &mut set.large else {
            remove_packed(&mut set.root.value, &rank_key(score, member))?;
            set.len -= 1;
            return Ok(());
        };
        let key = rank_key(score, member);
        tx.delete_existing(self.place.elements(), &element_key(large.collection, member))?;
        tx.delete_existing(self.place.elements(), &large.key(&key))?;
        let mut ranks = large.ranks(self.place);
        ranks.remove(tx, &key, member)?;
        large.counts = ranks.counts;
        large.len -= 1;
        set.len = large.len;
        Ok(())
    }

    /// Finds the first member, the last one, or both. If members are removed in order, this never walks over the same
    /// one twice.
    fn find_ends(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &mut Large,
        [first, last]: [bool; 2],
    ) -> Result<(), ReadError> {
        if first && let Some(found) = self.end_of(tx, large, Direction::Forward)? {
            large.set_low(&found);
        }
        if last && let Some(found) = self.end_of(tx, large, Direction::Backward)? {
            large.set_last(&found);
        }
        Ok(())
    }

    /// The position of the first member in a direction.
    fn end_of(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &Large,
        direction: Direction,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let mut found = None;
        self.walk(tx, large, direction, &mut |key, _, _| {
            found = Some(key.to_vec());
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    fn add_large(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &mut Large,
        member: &[u8],
        score: f64,
    ) -> Result<(), WriteError> {
        let key = rank_key(score, member);
        large.admit(&key);
        let elements = self.place.elements();
        let by_member = element_key(large.collection, member);
        tx.put(elements, &by_member, NewRecord::of(&key[..SCORE_LEN]))?;
        tx.put(elements, &large.key(&key), NewRecord::of(&[]))?;
        let mut ranks = large.ranks(self.place);
        ranks.add(tx, &key, member)?;
        large.counts = ranks.counts;
        large.len += 1;
        Ok(())
    }

    /// Changes the score of an existing member.
    fn move_large(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &mut Large,
        member: &[u8],
        scores: [f64; 2],
    ) -> Result<(), WriteError> {
        let [from, to] = scores.map(|score| rank_key(score, member));
        let left = large.ends_at(&from);
        large.admit(&to);
        let elements = self.place.elements();
        let by_member = element_key(large.collection, member);
        tx.put(elements, &by_member, NewRecord::of(&to[..SCORE_LEN]))?;
        tx.delete_existing(elements, &large.key(&from))?;
        tx.put(elements, &large.key(&to), NewRecord::of(&[]))?;
        let mut ranks = large.ranks(self.place);
        ranks.shift(tx, [&from, &to], member)?;
        large.counts = ranks.counts;
        Ok(self.find_ends(tx, large, left)?)
    }

    /// Turns a packed sorted set into a large one.
    fn enlarge<'l>(
        &self,
        tx: &mut dyn WriteTransaction,
        set: &'l mut Loaded,
    ) -> Result<&'l mut Large, WriteError> {
        let large = match set.large.take() {
            Some(large) => large,
            None => {
                let collection = tx.new_collection()?;
                let mut large = Large::new(collection);
                let mut texts = Texts::of(&set.root.value);
                while let Some(key) = texts.next()? {
                    let (member, score) = split(key)?;
                    self.add_large(tx, &mut large, member, score)?;
                }
                large
            }
        };
        Ok(set.large.insert(large))
    }
}

fn remove_packed(packed: &mut Vec<u8>, key: &[u8]) -> Result<(), ReadError> {
    let mut texts = Texts::of(packed);
    loop {
        let start = texts.at();
        match texts.next()? {
            None => return Ok(()),
            Some(found) if found == key => {
                let end = texts.at();
                packed.drain(start..end);
                return Ok(());
            }
            Some(_) => {}
        }
    }
}

fn insert_packed(packed: &mut Vec<u8>, key: &[u8]) -> Result<(), ReadError> {
    let mut texts = Texts::of(packed);
    let at = loop {
        let start = texts.at();
        match texts.next()? {
            Some(found) if found < key => {}
            _ => break start,
        }
    };
    packed::replace(packed, at..at, &[key]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, ops::ControlFlow};

    use tokaido_store::{Store, transact, tree};

    use super::{
        super::count_requested, Direction, Packing, SortedSet, WriteError, WriteTransaction,
    };

    const MEMBERS: u32 = 3_000;

    fn member(n: u32) -> Vec<u8> {
        format!("member {n}").into_bytes()
    }

    fn scattered(n: u32) -> f64 {
        f64::from(n.wrapping_mul(2_654_435_761) % MEMBERS)
    }

    /// Every rank, by member and by number, must match the model.
    fn check(set: &SortedSet<'_>, tx: &mut dyn WriteTransaction, scores: &BTreeMap<u32, f64>) {
        let mut order: Vec<_> = scores.iter().map(|(n, score)| (*score, member(*n))).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        assert_eq!(set.len(tx).unwrap(), order.len() as u64);
        for (rank, (score, member)) in (0..).zip(&order) {
            assert_eq!(set.rank(tx, member).unwrap(), Some((rank, *score)));
            let mut found = None;
            set.visit_ranks(tx, rank..rank + 1, Direction::Forward, |member, _| {
                found = Some(member.to_vec());
                ControlFlow::Break(())
            })
            .unwrap();
            assert_eq!(found.as_ref(), Some(member));
        }
    }

    /// Changes a sorted set and its model, comparing them at the end of each round's transaction.
    fn in_rounds(
        rounds: u32,
        change: impl Fn(
            u32,
            &SortedSet<'_>,
            &mut dyn WriteTransaction,
            &mut BTreeMap<u32, f64>,
        ) -> Result<(), WriteError>,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let options = tree::Options { size_max: 1 << 30, ..tree::Options::default() };
        let store = tree::open(directory.path(), options).unwrap();
        let database = store.database("main").unwrap();
        let set = SortedSet::new(database, b"z");
        let mut writer = store.writer().unwrap();
        let mut scores = BTreeMap::new();
        for round in 0..rounds {
            transact(&mut *writer, |tx| {
                // A part of the members, then all of them.
                for limit in [0, 0, MEMBERS / 4, MEMBERS * 2].into_iter().take(round as usize + 1) {
                    tx.request_upkeep(database, b"z");
                    count_requested(tx, limit as usize)?;
                }
                change(round, &set, tx, &mut scores)?;
                check(&set, tx, &scores);
                Ok::<_, WriteError>(())
            })
            .unwrap();
        }
    }

    #[test]
    fn ranks_stay_true_while_members_move() {
        in_rounds(4, |round, set, tx, scores| {
            for n in 0..MEMBERS {
                // Some stay near their place, some go far.
                let score = if n % 3 == 0 { scattered(n + round) } else { f64::from(n + round) };
                scores.insert(n, score);
                set.update(tx, Packing::default(), [(&member(n)[..], score)], |_, s| Some(s))?;
            }
            Ok(())
        });
    }

    /// Records deleted at either end stay in the store for a while; they must not be counted.
    #[test]
    fn ranks_stay_true_while_members_go_from_the_ends_and_come_back() {
        in_rounds(6, |round, set, tx, scores| {
            for n in 0..MEMBERS / 2 {
                let (n, score) = (n + round * 100, scattered(n + round));
                scores.insert(n, score);
                set.update(tx, Packing::default(), [(&member(n)[..], score)], |_, s| Some(s))?;
            }
            for step in 0..MEMBERS / 3 {
                let direction = [Direction::Forward, Direction::Backward][step as usize % 2];
                let mut last = Vec::new();
                if step % 3 == 0 {
                    set.visit_ranks(tx, 0..1, Direction::Forward, |first, _| {
                        last = first.to_vec();
                        ControlFlow::Break(())
                    })?;
                    assert_eq!(set.remove(tx, [&last[..]])?, 1);
                } else {
                    let popped = set.pop(tx, direction, 1, |popped, _| {
                        last = popped.to_vec();
                        ControlFlow::Continue(())
                    })?;
                    assert_eq!(popped, 1);
                }
                scores.retain(|n, _| member(*n) != last);
            }
            Ok(())
        });
    }

    /// More than are read at a time, from the middle and from both ends, with counts and without.
    #[test]
    fn ranges_of_many_ranks_are_removed() {
        in_rounds(4, |round, set, tx, scores| {
            for n in 0..MEMBERS {
                scores.insert(n, scattered(n));
                set.update(tx, Packing::default(), [(&member(n)[..], scattered(n))], |_, s| {
                    Some(s)
                })?;
            }
            for (ranks, direction) in [
                (300..2400, Direction::Forward),
                (0..100, Direction::Backward),
                (700..800, Direction::Forward),
                (600..700, Direction::Backward),
            ] {
                let mut order: Vec<_> = scores.iter().map(|(n, score)| (*score, *n)).collect();
                order.sort_by(|a, b| {
                    a.0.total_cmp(&b.0).then_with(|| member(a.1).cmp(&member(b.1)))
                });
                let ranks = if round % 2 == 0 { ranks } else { 0..1500 };
                let removed = set
                    .remove_ranks(tx, ranks.clone(), direction, |_, _| ControlFlow::Continue(()))?;
                let ranks = ranks.start as usize..(ranks.end as usize).min(order.len());
                assert_eq!(removed as usize, ranks.len());
                for (_, n) in &order[ranks] {
                    scores.remove(n);
                }
                check(set, tx, scores);
            }
            Ok(())
        });
    }
}
