//! What the writer does between groups.

use tokaido_collections::{Packing, SortedSet};
use tokaido_store::Clock;

use super::*;

/// In milliseconds.
struct FixedClock(u64);

impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

#[test]
fn expired_records_are_removed_when_it_is_time() {
    let clock = Arc::new(FixedClock(1000));
    const REMOVALS_MAX: u64 = 100;
    let bed = Bed::with_options(tree::Options { clock, ..tree::Options::default() });
    let main = bed.store.database("main").expect("a name");
    let mut writer = GroupWriter::new(bed.store.writer().expect("a writer"));
    for i in 0..=REMOVALS_MAX {
        let record = NewRecord::of(b"v").expiring(Some(i.min(1000)));
        transact(&mut writer, |tx| tx.put(main, &i.to_be_bytes(), record)).expect("a write");
    }
    writer.end_group().expect("a flush");
    let pen = Pen::default();
    pen.put(writer);
    let left = || {
        let mut snapshot = bed.store.snapshot().expect("a snapshot");
        snapshot.statistics(main).expect("statistics").records
    };
    let limits = Limits { expiry_batch_max: REMOVALS_MAX as usize, ..bed.limits };
    let mut upkeep = Upkeep::new(&limits, true);
    upkeep.run_if_due(&pen, &Pause::default());
    assert_eq!(left(), REMOVALS_MAX + 1);
    upkeep.due = Instant::now();
    upkeep.run_if_due(&pen, &Pause::default());
    assert_eq!(left(), 1);
    // The batch was full, so the next is due at once.
    assert!(upkeep.wait().is_zero());
    upkeep.run_if_due(&pen, &Pause::default());
    assert_eq!(left(), 0);
    assert!(!upkeep.wait().is_zero());
}

#[test]
fn members_of_sorted_sets_are_counted_once_a_reader_has_asked_for_it() {
    const COUNTED_MAX: usize = 500;
    let bed = Bed::with_options(tree::Options::default());
    let main = bed.store.database("main").expect("a name");
    let mut writer = GroupWriter::new(bed.store.writer().expect("a writer"));
    let set = SortedSet::new(main, b"board");
    let names: Vec<String> = (0..COUNTED_MAX * 2 + 1).map(|i| i.to_string()).collect();
    transact(&mut writer, |tx| {
        let members = names.iter().map(|name| (name.as_bytes(), 1.0));
        set.update(tx, Packing::default(), members, |_, score| Some(score))
    })
    .expect("a write");
    writer.end_group().expect("a flush");
    let pen = Pen::default();
    pen.put(writer);
    let limits = Limits { expiry_batch_max: COUNTED_MAX, ..bed.limits };
    let mut upkeep = Upkeep::new(&limits, true);
    let mut uncounted_after_upkeep = || {
        upkeep.due = Instant::now();
        upkeep.run_if_due(&pen, &Pause::default());
        set.uncounted(&mut *bed.store.snapshot().expect("a snapshot")).expect("a sorted set")
    };
    assert_eq!(uncounted_after_upkeep(), 1001);
    let mut snapshot = bed.store.snapshot().expect("a snapshot");
    let rank = set.rank(&mut *snapshot, b"999").expect("a sorted set");
    assert_eq!(rank, Some((1000, 1.0)));
    assert_eq!([(); 3].map(|()| uncounted_after_upkeep()), [501, 1, 0]);
    snapshot.renew().expect("a snapshot");
    assert_eq!(set.rank(&mut *snapshot, b"999").expect("a sorted set"), rank);
}

#[test]
fn upkeep_that_is_wanted_is_done_at_once() {
    let clock = Arc::new(FixedClock(1000));
    for is_wanted in [false, true] {
        let clock = clock.clone();
        let bed = Bed::with_options(tree::Options { clock, ..tree::Options::default() });
        let main = bed.store.database("main").expect("a name");
        let mut writer = bed.store.writer().expect("a writer");
        let record = NewRecord::of(b"v").expiring(Some(1));
        transact(&mut *writer, |tx| tx.put(main, b"k", record)).expect("a write");
        drop(writer);
        let limits = Limits { expiry_interval_ms: 1_000_000, ..bed.limits };
        if is_wanted {
            bed.handle.want_upkeep();
        }
        let (_, _, bed) = Bed { limits, ..bed }.run();
        let mut snapshot = bed.store.snapshot().expect("a snapshot");
        let left = snapshot.statistics(main).expect("statistics").records;
        assert_eq!(left, u64::from(!is_wanted));
    }
}

#[test]
fn expired_records_stay_if_writes_are_paused_while_the_pen_is_waited_for() {
    let clock = Arc::new(FixedClock(1000));
    let bed = Bed::with_options(tree::Options { clock, ..tree::Options::default() });
    let main = bed.store.database("main").expect("a name");
    let mut writer = GroupWriter::new(bed.store.writer().expect("a writer"));
    let record = NewRecord::of(b"v").expiring(Some(1));
    transact(&mut writer, |tx| tx.put(main, b"k", record)).expect("a write");
    writer.end_group().expect("a flush");
    let (pen, mut upkeep) = (Pen::default(), Upkeep::new(&bed.limits, true));
    pen.put(writer);
    upkeep.due = Instant::now();
    let held = pen.lock();
    std::thread::scope(|scope| {
        let sweep = scope.spawn(|| upkeep.run_if_due(&pen, &bed.pause));
        // Gives it time to get as far as the pen.
        std::thread::sleep(Duration::from_millis(50));
        bed.pause.begin(Paused::Writes, Instant::now() + Duration::from_secs(1000));
        drop(held);
        sweep.join().expect("no panic");
    });
    let mut snapshot = bed.store.snapshot().expect("a snapshot");
    assert_eq!(snapshot.statistics(main).expect("statistics").records, 1);
}

#[test]
fn a_store_is_tidied_while_expired_records_are_kept_and_a_panic_of_it_loses_the_writer() {
    let bed = Bed::new();
    let (store, failures) = (bed.store.clone(), bed.failures.clone());
    let (pen, mut upkeep) = (Pen::default(), Upkeep::new(&bed.limits, true));
    pen.put(GroupWriter::new(Box::new(FailingWriter::new(store, failures))));
    *lock(&bed.failures.tidying) = Some("a defect of the engine");
    bed.pause.keep_expired(true);
    upkeep.due = Instant::now();
    upkeep.run_if_due(&pen, &bed.pause);
    let mut pen = pen.lock();
    let writer = pen.as_mut().expect("it was put there");
    assert!(writer.is_lost());
    assert!(writer.begin().is_err() && writer.end_group().is_err());
}
