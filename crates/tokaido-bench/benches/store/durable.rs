//! Commits that are on the disk when they return: of one thread, and of many.

use std::thread;

use tokaido_store::{NewRecord, Store, WriteError, open, transact, tree};

use crate::{
    Outcome,
    random::{VALUE, key},
    subject::{Place, Took},
};

const COMMITS: u64 = 2_000;
const WRITERS: u64 = 64;
const COMMITS_OF_EACH: u64 = 200;

/// One writer, who waits for each.
pub(crate) fn one(place: &Place) -> Outcome<Took> {
    let store = tree::open(&place.empty("durable")?, tree::Options::default())?;
    let main = store.database("main")?;
    let mut writer = store.writer()?;
    let mut commit = |n| {
        transact(&mut *writer, |tx| tx.put(main, &key(n), NewRecord::of(&VALUE)))
            .map_err(|error: tokaido_store::TransactError<WriteError>| error)
    };
    // The first one makes the file of the log.
    commit(0)?;
    Took::timed(COMMITS, || {
        (1..=COMMITS).try_for_each(&mut commit)?;
        Ok(0)
    })
}

/// Threads of one process that share a handle, each waiting for its own.
pub(crate) fn many(place: &Place) -> Outcome<Took> {
    let main = open(place.empty("durable-many")?)?.database("main")?;
    main.put(key(0), VALUE)?;
    Took::timed(WRITERS * COMMITS_OF_EACH, || {
        thread::scope(|scope| {
            let write = |writer: u64| {
                let numbers = writer * COMMITS_OF_EACH + 1..=(writer + 1) * COMMITS_OF_EACH;
                numbers.into_iter().try_for_each(|n| main.put(key(n), VALUE))
            };
            let threads: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no writer panics"))
        })?;
        Ok(0)
    })
}
