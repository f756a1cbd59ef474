//! Commits that are on the disk when they return: of one thread, and of many.

use std::{sync::Barrier, thread};

use tokaido_store::{
    DatabaseId, Embedded, NewRecord, Store, TransactError, WriteError, open, transact, tree,
};
use tokio::task::JoinSet;

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
    let mut commit = |n| transact(&mut *writer, |tx| tx.put(main, &key(n), NewRecord::of(&VALUE)));
    // The first one makes the file of the log.
    commit(0)?;
    Took::timed(COMMITS, || {
        (1..=COMMITS).try_for_each(&mut commit)?;
        Ok(0)
    })
}

/// Threads of one process that share a handle, each waiting for its own. What a thread needs at
/// first, a stack and memory of its own, it has got before the time counts.
pub(crate) fn many(place: &Place) -> Outcome<Took> {
    let main = open(place.empty("durable-many")?)?.database("main")?;
    let start = Barrier::new(WRITERS as usize + 1);
    let write = |writer: u64| {
        let warmed = main.put(key(writer), VALUE);
        start.wait();
        warmed?;
        let first = WRITERS + writer * COMMITS_OF_EACH;
        (first..first + COMMITS_OF_EACH).try_for_each(|n| main.put(key(n), VALUE))
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        start.wait();
        Took::timed(WRITERS * COMMITS_OF_EACH, || {
            threads.into_iter().try_for_each(|thread| thread.join().expect("no writer panics"))?;
            Ok(0)
        })
    })
}

/// As many tasks of one thread, each awaiting its own: what an asynchronous program does.
pub(crate) fn tasks(place: &Place) -> Outcome<Took> {
    let store = open(place.empty("durable-tasks")?)?;
    let main = store.database("main")?;
    // The first ones make the file of the log, and the thread that commits.
    store
        .submit({
            let main = main.id();
            move |tx| tx.put(main, &key(0), NewRecord::of(&VALUE))
        })
        .wait()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Took::timed(WRITERS * COMMITS_OF_EACH, || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for writer in 0..WRITERS {
                let main = main.id();
                tasks.spawn(write(store.clone(), main, 1 + writer * COMMITS_OF_EACH));
            }
            while let Some(written) = tasks.join_next().await {
                written??;
            }
            Ok(0)
        })
    })
}

/// Awaits each put before the next.
async fn write(
    store: Embedded,
    main: DatabaseId,
    first: u64,
) -> Result<(), TransactError<WriteError>> {
    for n in first..first + COMMITS_OF_EACH {
        let key = key(n);
        store.submit(move |tx| tx.put(main, &key, NewRecord::of(&VALUE))).await?;
    }
    Ok(())
}
