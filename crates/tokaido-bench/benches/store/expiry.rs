//! Removing what has expired.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use tokaido_store::{
    Clock, NewRecord, Store, transact,
    tree::{self, Options, SyncMode},
};

use crate::{
    Outcome,
    random::{VALUE, key},
    subject::{Place, Took},
};

/// Maximum number that one transaction removes, as in the server.
const REMOVALS_MAX: usize = 1_000;

/// Records of one transaction while the store is filled.
const BATCH: u64 = 10_000;

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Of `records` every so-many-th expires, so that `expired` of them go.
pub(crate) fn sweep(place: &Place, records: u64, expired: u64) -> Outcome<Took> {
    let clock = Arc::new(TestClock(AtomicU64::new(1_000)));
    let options =
        Options { sync: SyncMode::Os, clock: Arc::clone(&clock) as _, ..Options::default() };
    let store = tree::open(&place.empty("expiry")?, options)?;
    let main = store.database("main")?;
    let mut writer = store.writer()?;
    let every = records / expired;
    for first in (0..records).step_by(BATCH as usize) {
        transact(&mut *writer, |transaction| {
            (first..first + BATCH).try_for_each(|n| {
                // Spread over a second, as they come from clients.
                let at = (n % every == 0).then_some(2_000 + n % 1_000);
                transaction.put(main, &key(n), NewRecord::of(&VALUE).expiring(at))
            })
        })?;
    }
    clock.0.store(10_000, Relaxed);
    Took::timed(expired, || {
        let mut removed = 0;
        loop {
            let some = writer.reclaim(REMOVALS_MAX)?;
            writer.flush()?;
            removed += some as u64;
            if some < REMOVALS_MAX {
                break;
            }
        }
        if removed != expired {
            return Err(format!("{removed} of {expired} expired records were removed").into());
        }
        Ok(removed)
    })
}
