//! The durable store in a program of one's own: `cargo run -p tokaido-store --example tree`.
//!
//! Pages are counted by several threads at once, each hit one transaction over two databases, on
//! disk when the call returns.

use std::{error::Error, io::Write, path::Path, thread};

use tokaido_store::{IncrementError, ScanRange, Scanner, WriteOperations};

const HITS: [&str; 6] = ["/index", "/about", "/index", "/map", "/index", "/about"];

fn run(directory: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let store = tokaido_store::open(directory)?;
    let hits = store.database("hits")?;
    let totals = store.database("totals")?;

    // Threads share the handle. Their commits take turns, and share syncs where they meet.
    let counted = thread::scope(|scope| {
        let count = |page: &'static str| {
            store.transact(|tx| {
                tx.increment(hits.id(), page.as_bytes(), 1)?;
                tx.increment(totals.id(), b"hits", 1)?;
                Ok::<(), IncrementError>(())
            })
        };
        let threads = HITS.map(|page| scope.spawn(move || count(page)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    });
    counted?;

    // One call, one transaction.
    hits.put("/robots.txt", "7")?;
    assert!(hits.delete("/robots.txt")?);
    assert_eq!(hits.get("/robots.txt")?, None);

    // An error takes back all that its transaction did.
    let refused = store.transact(|tx| {
        tx.clear(hits.id())?;
        Err::<(), Box<dyn Error + Send + Sync>>("on second thoughts, no".into())
    });
    writeln!(out, "refused: {}", refused.expect_err("the body said no"))?;

    for entry in hits.scan(ScanRange::all())? {
        let (page, count) = entry?;
        writeln!(out, "{} {}", String::from_utf8(page)?, String::from_utf8(count)?)?;
    }

    // A snapshot stays as it is while others write, and reads without copying.
    let mut snapshot = store.snapshot()?;
    hits.put("/zebra", "1")?;
    let mut last_first = Scanner::new(hits.id(), ScanRange::all().reversed(), 1);
    let last = last_first.next(&mut *snapshot)?.expect("there are pages");
    writeln!(out, "last: {}", last.key.escape_ascii())?;
    let total = snapshot.get(totals.id(), b"hits")?.expect("it was counted");
    writeln!(out, "total: {}", total.value.escape_ascii())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    run(directory.path(), &mut std::io::stdout())
}

#[test]
fn it_prints_what_it_should() {
    let directory = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    run(directory.path(), &mut out).unwrap();
    let expected =
        "refused: on second thoughts, no\n/about 2\n/index 3\n/map 1\nlast: /map\ntotal: 6\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    // What was answered is there when the store is opened again.
    let store = tokaido_store::open(directory.path()).unwrap();
    assert!(store.database("hits").unwrap().get("/zebra").unwrap().is_some());
}
