//! What opening a large store costs: `cargo bench -p tokaido-store --bench open`.
//!
//! The store is filled, closed, dropped from the page cache, and opened; timed until the first
//! record is there. Once with an empty log, and once with one as full as it ever gets, which only a
//! kill leaves behind: each step is a process that ends without closing the store.
//! `TOKAIDO_OPEN_MB` sets the size of the store, `TOKAIDO_OPEN_DIR` its directory.

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use tokaido_store::{
    NewRecord, Store, transact,
    tree::{self, MEMTABLE_BYTES_DEFAULT, SyncMode},
};

const SIZE_MB_DEFAULT: u64 = 200;
const VALUE_LEN: usize = 1000;
const BATCH: u64 = 5_000;
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments[i].parse::<u64>().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("fill") => fill_and_die(arguments[2].as_ref(), number(3), number(4)),
        Some("open") => open_and_die(arguments[2].as_ref(), number(3)),
        _ => run(),
    }
}

/// Runs this program again for one step, and returns its output.
fn step(name: &str, path: &Path, numbers: &[u64]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(name).arg(path).args(numbers.iter().map(u64::to_string));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run() {
    let variable = |name| std::env::var(name).ok();
    let size_mb = variable("TOKAIDO_OPEN_MB").map_or(SIZE_MB_DEFAULT, |mb| mb.parse().unwrap());
    let parent = variable("TOKAIDO_OPEN_DIR").unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(parent).unwrap();
    let path = directory.path();
    let records = size_mb * 1_000_000 / (16 + VALUE_LEN as u64);
    let began = Instant::now();
    drop(fill(path, 0, records));
    tree::open(path, options()).unwrap().checkpoint().unwrap();
    println!(
        "{records} records of 16 + {VALUE_LEN} bytes, data.mdb of {} MB, filled in {:.0?}",
        fs::metadata(path.join("data.mdb")).unwrap().len() / 1_000_000,
        began.elapsed()
    );
    measure("with an empty log", path, records);
    // A memtable needs more room than the log: it has nodes and towers beside the records.
    let count = MEMTABLE_BYTES_DEFAULT as u64 * 9 / 10 / (VALUE_LEN as u64 + 150);
    step("fill", path, &[records, count]);
    measure("with a full log", path, records);
}

fn options() -> tree::Options {
    tree::Options { sync: SyncMode::Os, ..tree::Options::default() }
}

fn key(n: u64) -> String {
    format!("{n:016}")
}

fn fill_and_die(path: &Path, first: u64, count: u64) -> ! {
    let _store = fill(path, first, count);
    std::process::exit(0)
}

/// Prints how many nanoseconds it took until the store was open, and until a record was read.
fn open_and_die(path: &Path, wanted: u64) -> ! {
    let began = Instant::now();
    let store = tree::open(path, options()).unwrap();
    let opened = began.elapsed();
    let main = store.database("main").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert!(snapshot.get(main, key(wanted).as_bytes()).unwrap().is_some());
    println!("{} {}", opened.as_nanos(), began.elapsed().as_nanos());
    std::process::exit(0)
}

fn fill(path: &Path, first: u64, count: u64) -> tree::TreeStore {
    let store = tree::open(path, options()).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    for begin in (first..first + count).step_by(BATCH as usize) {
        transact(&mut *writer, |tx| {
            let end = (begin + BATCH).min(first + count);
            let mut keys = (begin..end).map(key);
            keys.try_for_each(|key| tx.put(main, key.as_bytes(), NewRecord::of(&[b'v'; VALUE_LEN])))
        })
        .unwrap();
    }
    drop(writer);
    store
}

fn measure(what: &str, path: &Path, records: u64) {
    let log_bytes: u64 = fs::read_dir(path.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    let mut times: Vec<(Duration, Duration)> = (0..ROUNDS as u64)
        .map(|round| {
            forget(&path.join("data.mdb"));
            fs::read_dir(path.join("log"))
                .unwrap()
                .for_each(|entry| forget(&entry.unwrap().path()));
            let said = step("open", path, &[records * (round + 1) / (ROUNDS as u64 + 1)]);
            let mut times = said.split_whitespace().map(|ns| ns.parse().unwrap());
            let mut next = || Duration::from_nanos(times.next().unwrap());
            let opened = next();
            (next(), opened)
        })
        .collect();
    times.sort();
    let (median, opened) = times[ROUNDS / 2];
    println!(
        "{what} ({:.1} MB): opened in {opened:.1?}, first record after {median:.1?}; from {:.1?} to {:.1?}",
        log_bytes as f64 / 1e6,
        times[0].0,
        times[ROUNDS - 1].0
    );
}

/// Drops a file from the page cache, so that it must be read from the disk.
fn forget(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the file is open; the call takes numbers only.
    let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(code, 0, "the page cache cannot be dropped");
}
