//! Transactions that are submitted and awaited later.

#[path = "common/slow_log.rs"]
mod slow_log;

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, atomic::Ordering::SeqCst, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use tokaido_store::{
    CommitError, DatabaseId, Embedded, IncrementError, NewRecord, Pending, TransactError,
    WriteError, WriteOperations, open,
};

use crate::slow_log::on_slow_log;

type Put = Pending<(), WriteError>;

fn submit_put(store: &Embedded, database: DatabaseId, key: String) -> Put {
    store.submit(move |tx| tx.put(database, key.as_bytes(), NewRecord::of(b"v")))
}

/// Runs a future on this thread, which sleeps until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn what_is_submitted_is_run_in_its_order_and_shares_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let (store, syncs, _) = on_slow_log(directory.path());
    let main = store.database("main").unwrap().id();
    let counts: Vec<Pending<i64, IncrementError>> =
        (0..200).map(|_| store.submit(move |tx| tx.increment(main, b"n", 1))).collect();
    for (n, count) in (1..).zip(counts) {
        assert_eq!(count.wait().unwrap(), n);
    }
    let syncs = syncs.load(SeqCst);
    assert!(syncs < 20, "{syncs} syncs");
}

#[test]
fn whoever_awaits_is_woken_with_the_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let (store, ..) = on_slow_log(directory.path());
    let main = store.database("main").unwrap();
    block_on(async {
        for n in 0..5 {
            submit_put(&store, main.id(), format!("{n}")).await.unwrap();
            assert!(main.get(format!("{n}")).unwrap().is_some());
        }
        let refused = store.submit(|_| Err::<(), _>("no")).await;
        assert!(matches!(refused, Err(TransactError::Body("no"))), "{refused:?}");
        let empty = submit_put(&store, main.id(), String::new()).await;
        assert!(matches!(empty, Err(TransactError::Body(WriteError::Read(_)))), "{empty:?}");
    });
}

#[test]
fn a_panic_reaches_whoever_awaits_and_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    let before = submit_put(&store, main.id(), "before".to_owned());
    let id = main.id();
    let panicking = store.submit(move |tx| -> Result<(), WriteError> {
        tx.put(id, b"half", NewRecord::of(b"v"))?;
        std::panic::resume_unwind(Box::new("a defect of the body"))
    });
    let after = submit_put(&store, main.id(), "after".to_owned());
    let panic = catch_unwind(AssertUnwindSafe(|| panicking.wait())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a defect of the body"));
    before.wait().unwrap();
    after.wait().unwrap();
    assert_eq!(main.get("half").unwrap(), None);
    assert_eq!(main.statistics().unwrap().records, 2);
}

#[test]
fn closing_the_store_runs_what_was_submitted() {
    let directory = tempfile::tempdir().unwrap();
    {
        let store = open(directory.path()).unwrap();
        let main = store.database("main").unwrap().id();
        for n in 0..3_000 {
            drop(submit_put(&store, main, format!("{n}")));
        }
    }
    let main = open(directory.path()).unwrap().database("main").unwrap();
    assert_eq!(main.statistics().unwrap().records, 3_000);
}

#[test]
fn a_body_may_have_the_last_handle() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    let pending = store.submit(move |tx| tx.put(main.id(), b"k", NewRecord::of(b"v")));
    drop(store);
    pending.wait().unwrap();
    // The thread that ran the body closes the store.
    let deadline = Instant::now() + Duration::from_secs(20);
    let reopened = loop {
        match open(directory.path()) {
            Ok(store) => break store,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(reopened.database("main").unwrap().get("k").unwrap().is_some());
}

#[test]
fn too_many_that_wait_are_refused() {
    const LIMIT: usize = 1 << 16;
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap().id();
    let (holding, held) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let first = store.submit(move |_| {
        begun.send(()).unwrap();
        held.recv().map_err(|_| "go on")
    });
    has_begun.recv().unwrap();
    let waiting: Vec<Put> = (0..LIMIT).map(|n| submit_put(&store, main, format!("{n}"))).collect();
    let refused = submit_put(&store, main, "one more".to_owned()).wait().unwrap_err();
    let told = "65536 submitted transactions wait to be run; await some of them before the next";
    assert!(refused.to_string().ends_with(told), "{refused}");
    drop(holding);
    first.wait().unwrap_err();
    for put in waiting {
        put.wait().unwrap();
    }
    submit_put(&store, main, "one more".to_owned()).wait().unwrap();
}

#[test]
fn a_transaction_cannot_wait_for_another() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    let (inner, id) = (store.clone(), main.id());
    let outer = store.submit(move |_| {
        let waited = submit_put(&inner, id, "inner".to_owned()).wait();
        assert!(matches!(waited, Err(TransactError::Write(WriteError::WriterBusy))));
        Ok::<_, WriteError>(())
    });
    outer.wait().unwrap();
    // It had not run by then, but runs all the same.
    submit_put(&store, main.id(), "later".to_owned()).wait().unwrap();
    assert!(main.get("inner").unwrap().is_some());
}

#[test]
fn threads_that_wait_and_what_is_submitted_share_groups() {
    let directory = tempfile::tempdir().unwrap();
    let (store, syncs, _) = on_slow_log(directory.path());
    let main = store.database("main").unwrap();
    thread::scope(|scope| {
        for t in 0..4 {
            let (store, main) = (&store, &main);
            scope.spawn(move || {
                for n in 0..50 {
                    let pending = submit_put(store, main.id(), format!("submitted {t} {n}"));
                    main.put(format!("waited {t} {n}"), "v").unwrap();
                    pending.wait().unwrap();
                }
            });
        }
    });
    assert_eq!(main.statistics().unwrap().records, 400);
    let syncs = syncs.load(SeqCst);
    assert!(syncs < 250, "{syncs} syncs");
}

#[test]
fn a_sync_that_fails_is_told_to_all_of_its_group() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, is_broken) = on_slow_log(directory.path());
    let main = store.database("main").unwrap().id();
    submit_put(&store, main, "before".to_owned()).wait().unwrap();
    is_broken.store(true, SeqCst);
    let puts: Vec<Put> = (0..50).map(|n| submit_put(&store, main, format!("{n}"))).collect();
    for put in puts {
        let refused = put.wait().unwrap_err();
        let is_told = matches!(
            refused,
            TransactError::Commit(CommitError::Undetermined { .. } | CommitError::Failed { .. })
                | TransactError::Write(WriteError::Poisoned { .. })
        );
        assert!(is_told, "{refused:?}");
    }
    assert!(store.database("main").unwrap().get("before").unwrap().is_some());
}
