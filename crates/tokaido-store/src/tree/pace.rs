//! Back-pressure on the writer during a checkpoint or a merge of runs into the base.
//!
//! A checkpoint of a large store takes longer than a writer at full speed takes to fill the next memtable. If the writer
//! filled it and then waited for the rest of the checkpoint, its clients would see seconds of silence. So a writer that
//! is ahead of the checkpoint pauses briefly before a group: for as long as the checkpoint takes to catch up, but for at
//! most [`PAUSE_MAX`], unless the checkpoint is so slow that more is needed. Where the store does not fit into memory, a
//! checkpoint reads a page for each record, and the silence would last half a minute.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// The longest pause before one group, where that is enough to keep the memtable from filling up too early.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// This part of the next memtable may be filled before the checkpoint has done anything, so that a short checkpoint
/// does not make a burst of writes pause.
const FREE_PART: f64 = 0.125;

/// The speed of a checkpoint is known only after a while. A pause is at most this part of the time that the checkpoint
/// has taken so far, or [`PAUSE_MAX`] if that is longer.
const TRUSTED_PART: f64 = 0.125;

/// The room left in the memtable counts as at least this part of what is to come.
const ROOM_PART_MIN: f64 = 0.1;

/// How far the checkpoint under way has come, and how fast.
#[derive(Debug)]
pub(super) struct Pace {
    opened: Instant,
    /// When the checkpoint began, in nanoseconds since `opened`.
    began_ns: AtomicU64,
    /// Nodes of the frozen memtable.
    nodes: AtomicU64,
    /// How many of them are in the base.
    done: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { opened: Instant::now(), began_ns: zero(), nodes: zero(), done: zero() }
    }
}

impl Pace {
    /// Begins a checkpoint of this many nodes.
    pub(super) fn begin(&self, nodes: usize) {
        self.done.store(0, Relaxed);
        self.nodes.store(nodes as u64, Relaxed);
        self.began_ns.store(self.opened.elapsed().as_nanos() as u64, Relaxed);
    }

    /// Whether there is something left to do.
    pub(super) fn is_under_way(&self) -> bool {
        self.nodes.load(Relaxed) > 0
    }

    /// Ends the checkpoint. No writer need pause for it any more.
    pub(super) fn end(&self) {
        self.nodes.store(0, Relaxed);
    }

    /// Notes that this many nodes are in the base.
    pub(super) fn advance(&self, done: usize) {
        self.done.store(done as u64, Relaxed);
    }

    /// How many nodes are in the base.
    pub(super) fn done(&self) -> usize {
        self.done.load(Relaxed) as usize
    }

    /// How long a writer is to pause that has filled `bytes` of the `limit` of the next memtable and added `new_nodes`
    /// since its last group began.
    pub(super) fn pause(&self, bytes: usize, limit: usize, new_nodes: usize) -> Option<Duration> {
        let free = limit as f64 * FREE_PART;
        if bytes as f64 <= free {
            return None;
        }
        let (nodes, done) = (self.nodes.load(Relaxed), self.done.load(Relaxed));
        if nodes == 0 {
            return None;
        }
        let part = done as f64 / nodes as f64;
        let ahead = bytes as f64 - free - (limit as f64 - free) * part;
        if ahead <= 0.0 {
            return None;
        }
        let began = Duration::from_nanos(self.began_ns.load(Relaxed));
        let elapsed = self.opened.elapsed().saturating_sub(began).as_secs_f64();
        // The time that the checkpoint took for as much. It is unknown until the checkpoint has done something.
        let seconds = ahead / (limit as f64 * part) * elapsed;
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(PAUSE_MAX);
        // With such pauses, the writes from now on fill the rest of the memtable, and no more, by the end of the
        // checkpoint.
        let room = (limit as f64 - bytes as f64).max(0.0);
        let room_part = (room / (room + ahead)).max(ROOM_PART_MIN);
        let needed = new_nodes as f64 / done as f64 * elapsed / room_part;
        let needed = needed.min(elapsed * TRUSTED_PART);
        Some(pause.min(Duration::try_from_secs_f64(needed).unwrap_or_default().max(PAUSE_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    #[test]
    fn a_writer_pauses_only_when_it_is_ahead() {
        let pace = Pace::default();
        pace.begin(100);
        assert_eq!(pace.pause(125, LIMIT, 9), None, "the free part");
        assert_eq!(pace.pause(126, LIMIT, 9), Some(PAUSE_MAX), "nothing is done yet");
        pace.advance(50);
        // The free part, and half of the rest.
        assert_eq!(pace.pause(562, LIMIT, 9), None);
        assert!(pace.pause(563, LIMIT, 9).is_some());
        pace.advance(100);
        assert_eq!(pace.pause(LIMIT, LIMIT, 9), None);
    }

    #[test]
    fn a_pause_is_as_long_as_the_checkpoint_takes_for_as_much() {
        let opened = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let pace = Pace { opened, ..Pace::default() };
        pace.nodes.store(1_000_000, Relaxed);
        pace.advance(500_000);
        // Half of it took a second, so a millionth takes two microseconds.
        let pause = pace.pause(562_501, 1_000_000, 9).unwrap();
        assert!(pause >= Duration::from_micros(2) && pause < Duration::from_millis(2), "{pause:?}");
        assert_eq!(pace.pause(900_000, 1_000_000, 9), Some(PAUSE_MAX));
    }

    #[test]
    fn a_pause_is_as_long_as_it_must_be_for_the_memtable_not_to_be_full_too_soon() {
        let opened = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let pace = Pace { opened, ..Pace::default() };
        pace.nodes.store(2000, Relaxed);
        pace.advance(1000);
        let check = |bytes, new_nodes, seconds_each: f64| {
            let before = opened.elapsed().as_secs_f64();
            let pause = pace.pause(bytes, LIMIT, new_nodes).unwrap().as_secs_f64();
            let after = opened.elapsed().as_secs_f64();
            let range = before * seconds_each - 1e-6..after * seconds_each + 1e-6;
            assert!(range.contains(&pause), "{pause} is not in {range:?}");
        };
        // A twentieth as many new nodes as are done. There is room for a quarter, but there should be for 0.4375.
        check(750, 50, 0.05 * 0.4375 / 0.25);
        check(750, 500, TRUSTED_PART);
        // Without any room, the pause is still bounded.
        check(LIMIT, 10, 0.01 / ROOM_PART_MIN);
    }
}
