//! Our side: reads workloads from standard input and runs them, as `peers/peer.h` does.

use std::{
    fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{Outcome, durable, expiry, memory, random};

/// What a workload took.
pub(crate) struct Took {
    pub(crate) time: Duration,
    /// What the processor worked in that time, for all threads.
    pub(crate) worked: Duration,
    pub(crate) operations: u64,
    /// Over what was read, to be compared with the peers'.
    pub(crate) sum: u64,
}

impl Took {
    /// Times `work`, which gives the sum.
    pub(crate) fn timed(operations: u64, work: impl FnOnce() -> Outcome<u64>) -> Outcome<Self> {
        let (start, worked) = (Instant::now(), processor_time());
        let sum = work()?;
        Ok(Self { time: start.elapsed(), worked: processor_time() - worked, operations, sum })
    }
}

fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is there on every Linux, and `time` is for it to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Where a subject works.
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
}

impl Place {
    /// A directory below its own with nothing in it.
    pub(crate) fn empty(&self, name: &str) -> Outcome<PathBuf> {
        let directory = self.directory.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}

pub(crate) fn serve(directory: &Path) -> Outcome {
    let place = Place { directory: directory.to_owned() };
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let took = run(&place, line?.trim())?;
        let (time, worked) = (took.time.as_nanos(), took.worked.as_nanos());
        writeln!(out, "{time} {worked} {} {}", took.operations, took.sum)?;
        out.flush()?;
    }
    Ok(())
}

fn run(place: &Place, workload: &str) -> Outcome<Took> {
    match workload {
        "random-put" => random::put(place),
        "random-get" => random::get_from_base(place),
        "random-get-memtable" => random::get_from_memtable(place),
        "random-scan" => random::scan(place),
        "durable-commit" => durable::one(place),
        "durable-64" => durable::many(place),
        "durable-64-tasks" => durable::tasks(place),
        "expiry-100k" => expiry::sweep(place, 100_000, 1_000),
        "expiry-1m" => expiry::sweep(place, 1_000_000, 10_000),
        "memory-cache" => memory::of_cache(),
        "memory-tree" => memory::of_tree(place),
        _ => Err(format!("no workload {workload} here").into()),
    }
}
