//! What to evict when a shard is full: S3-FIFO, with queues of segments in place of linked lists.
//!
//! New records go into the *window*, a twentieth of the memory. When its oldest segment is drained,
//! records used meanwhile move to the *main* queue. The others are evicted, and remembered for a
//! while in the [`Ghost`](super::ghost::Ghost): a new record that is remembered goes straight into
//! the main queue. When the oldest segment of the main queue is drained, records used since it was
//! written are appended again. So a scan passes through the window and disturbs nothing else, and a
//! hit costs two bits in the record's header.
//!
//! *Invariant*: `bytes() <= shard_bytes` at all times. `make_room` keeps one segment of the budget
//! in reserve, since a drain may allocate that much before it frees what it drained. Between drains
//! the spare segment is part of that reserve, so it must not be counted as free room.

use super::{
    ghost::Ghost,
    record::{self, View},
    segment::{Drained, Location, Queue},
    shard::{Key, Now, Shard, hash_of},
};

/// The window's part of the shard. Measured: docs/cache.md.
const WINDOW_PART: usize = 20;
/// When more than this part of the memory in use is dead records, segments are compacted before
/// live records are evicted.
const DEAD_PART: usize = 4;
/// One insertion may drain this many bytes while it looks for unused records. After that, each
/// drain of the main queue evicts the least used quarter of its live bytes. This bounds the work of
/// one insertion: about a millisecond with short records.
const PATIENCE_BYTES: usize = 512 << 10;
const KEPT: (usize, usize) = (3, 4);

impl Shard {
    /// Evicts until a record can be written to `queue` and an entry added to the index.
    pub(super) fn make_room(&mut self, queue: Queue, footprint: usize, now: &mut Now<'_>) {
        for attempt in 0.. {
            if self.fits(queue, footprint) {
                if self.index.is_full() {
                    self.grow_index();
                }
                return;
            }
            self.evict(attempt * self.layout.segment_len >= PATIENCE_BYTES, now);
        }
    }

    /// Whether there is room without evicting.
    fn fits(&self, queue: Queue, footprint: usize) -> bool {
        let is_full = self.index.is_full();
        let has_room = self.segments.has_room(queue, footprint);
        if has_room && !is_full {
            return true;
        }
        let segment = if has_room { 0 } else { self.segments.wanted(footprint) };
        let growth = self.growth_bytes();
        let in_use = self.bytes() - self.segments.spare_bytes();
        in_use + segment + growth + self.segments.reserve() <= self.layout.shard_bytes
    }

    /// Whether a record can be put in place of `old` without evicting another.
    pub(super) fn has_room_for(
        &self,
        key: Key<'_>,
        value_len: usize,
        old: Option<Location>,
    ) -> bool {
        let footprint = record::footprint(key.bytes.len(), value_len);
        let is_in_place = old.is_some_and(|old| self.view(old).footprint() == footprint);
        // A new record may start in either queue.
        is_in_place || self.fits(Queue::Window, footprint) && self.fits(Queue::Main, footprint)
    }

    /// The bytes that the index takes if it must grow now, plus those of the ghost. The ghost grows
    /// after it, when a drain first needs it, so in a cache that never fills up it takes nothing.
    fn growth_bytes(&self) -> usize {
        let (buckets, index_bytes) = match self.index.is_full() {
            true => self.index.growth(),
            false => (self.index.buckets(), 0),
        };
        let ghost_bytes = if self.ghost.sets() == buckets { 0 } else { Ghost::bytes_for(buckets) };
        index_bytes + ghost_bytes
    }

    fn grow_index(&mut self) {
        let (segments, hasher) = (&self.segments, &self.hasher);
        self.index.grow(|location| hash_of(hasher, segments.view(location).key()));
    }

    /// One step: drains a segment. A compaction leaves fewer dead bytes, and any other step brings
    /// records closer to eviction, so steps eventually free memory.
    fn evict(&mut self, is_urgent: bool, now: &mut Now<'_>) {
        self.ghost.grow(self.index.buckets());
        let used = self.segments.live() + self.segments.dead();
        if self.segments.dead() > used / DEAD_PART
            && let Some(number) = self.segments.most_dead(2 * DEAD_PART)
        {
            return self.compact(number, now);
        }
        // When urgent, drain the main queue: what the window passes on to it frees nothing.
        let is_window_next = !is_urgent
            && self.segments.queue_bytes(Queue::Window) > self.layout.shard_bytes / WINDOW_PART;
        let main = self.segments.oldest(Queue::Main);
        let window = self.segments.oldest(Queue::Window);
        match (window, main) {
            (Some(number), None) => self.drain_window(number, now),
            (Some(number), _) if is_window_next => {
                self.drain_window(number, now);
            }
            (_, Some(number)) => self.drain_main(number, is_urgent, now),
            (None, None) => self.drop_index(),
        }
    }

    /// With no record left, the shard is full of an index for more records than it can hold.
    fn drop_index(&mut self) {
        assert_eq!(self.index.len(), 0, "records lie in segments");
        self.clear();
    }

    fn drain_window(&mut self, number: u32, now: &mut Now<'_>) {
        let drained = self.segments.detach(number);
        self.drain(drained, now, |view| match view.visits() {
            0 => Fate::Evict { is_remembered: true },
            visits => Fate::Keep { queue: Queue::Main, visits: visits - 1 },
        });
    }

    fn drain_main(&mut self, number: u32, is_urgent: bool, now: &mut Now<'_>) {
        let drained = self.segments.detach(number);
        let mut quota = Quota::new(&drained, is_urgent);
        self.drain(drained, now, |view| {
            if quota.keeps(view) {
                Fate::Keep { queue: Queue::Main, visits: view.visits() - 1 }
            } else {
                Fate::Evict { is_remembered: false }
            }
        });
    }

    /// Rewrites the live records of a segment without gaps.
    fn compact(&mut self, number: u32, now: &mut Now<'_>) {
        let drained = self.segments.detach(number);
        let queue = drained.queue;
        self.drain(drained, now, |view| Fate::Keep { queue, visits: view.visits() });
    }

    /// Drains a segment that was taken out of its queue.
    fn drain(
        &mut self,
        drained: Drained,
        now: &mut Now<'_>,
        mut fate_of: impl FnMut(&View<'_>) -> Fate,
    ) {
        let mut moved_whole = None;
        for (from, view) in drained.records() {
            let hash = hash_of(&self.hasher, view.key());
            if now.has_passed(view.expires_at_ms()) {
                self.index.remove(hash, from);
                self.counters.expired += 1;
                continue;
            }
            match fate_of(&view) {
                Fate::Evict { is_remembered } => {
                    self.index.remove(hash, from);
                    self.counters.evicted += 1;
                    if is_remembered {
                        self.ghost.remember(hash);
                    }
                }
                Fate::Keep { queue, visits } if drained.is_one_record() => {
                    moved_whole = Some((queue, visits));
                }
                Fate::Keep { queue, visits } => {
                    let footprint = view.footprint();
                    let to = self.segments.append(queue, footprint);
                    let bytes = &mut self.segments.at_mut(to)[..footprint];
                    bytes.copy_from_slice(drained.record_bytes(from, footprint));
                    record::set_visits(bytes, visits);
                    self.index.relocate(hash, from, to);
                }
            }
        }
        match moved_whole {
            None => self.segments.release(drained),
            Some((queue, visits)) => {
                // The segment keeps its number, so the record's location in the index stays right.
                let location = self.segments.attach(queue, drained);
                record::set_visits(self.segments.at_mut(location), visits);
            }
        }
    }
}

/// What a drain does with a record.
enum Fate {
    Keep { queue: Queue, visits: u8 },
    Evict { is_remembered: bool },
}

/// Which records of a main queue segment are kept: the most used ones, and no unused ones.
struct Quota {
    /// Records with more visits are kept; those with this many are kept while there is room; those
    /// with fewer are evicted.
    visits: u8,
    /// Room for records with exactly this many visits, in bytes.
    room: usize,
}

impl Quota {
    fn new(drained: &Drained, is_urgent: bool) -> Self {
        let mut bytes = [0; record::VISITS_MAX as usize + 1];
        for (_, view) in drained.records() {
            bytes[usize::from(view.visits())] += view.footprint();
        }
        let living: usize = bytes.iter().sum();
        let is_bounded = is_urgent && !drained.is_one_record();
        let mut room = if is_bounded { living * KEPT.0 / KEPT.1 } else { living };
        for visits in (1..=record::VISITS_MAX).rev() {
            match room.checked_sub(bytes[usize::from(visits)]) {
                Some(rest) => room = rest,
                None => return Self { visits, room },
            }
        }
        Self { visits: 0, room: 0 }
    }

    fn keeps(&mut self, view: &View<'_>) -> bool {
        if view.visits() != self.visits {
            return view.visits() > self.visits;
        }
        let rest = self.room.checked_sub(view.footprint());
        self.room = rest.unwrap_or(self.room);
        rest.is_some()
    }
}
