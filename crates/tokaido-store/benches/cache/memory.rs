//! `cargo bench -p tokaido-store --bench cache -- memory`: resident bytes per record.

use std::{fs, process::Command};

use tokaido_store::cache::{Cache, Options};

use crate::{
    subjects::{self, Subject, Tokaido},
    traces,
};

const RECORDS: u64 = 1_000_000;

/// Runs each cache in its own process, since freed memory stays with a process.
pub(crate) fn print() {
    let program = std::env::current_exe().unwrap();
    println!("resident bytes per record of 16 + 64 bytes, {RECORDS} records");
    for name in subjects::NAMES {
        assert!(Command::new(&program).args(["memory-of", name]).status().unwrap().success());
    }
    println!("\nat other numbers of records, as the index grows (tokaido):");
    println!("| records | bytes used per record | of these, index |");
    println!("|---|---|---|");
    for records in [700_000, 900_000, 1_100_000, 1_300_000, 1_500_000, 2_000_000] {
        let cache = Tokaido(Cache::new(roomy()).unwrap());
        fill(&cache, records);
        let statistics = cache.0.statistics();
        let per_record = |bytes: u64| bytes as f64 / records as f64;
        let (used, index) = (per_record(statistics.bytes_used), per_record(statistics.index_bytes));
        println!("| {records} | {used:.1} | {index:.1} |");
    }
}

fn roomy() -> Options {
    Options { bytes_max: 1 << 30, ..Options::default() }
}

fn fill(cache: &dyn Subject, records: u64) {
    (0..records).for_each(|n| cache.set(&traces::key(n), &[b'v'; 64]));
}

pub(crate) fn print_one(name: &str) {
    let before = resident_bytes();
    let subject = match name {
        "tokaido" => Box::new(Tokaido(Cache::new(roomy()).unwrap())),
        name => subjects::new(name, RECORDS as usize * 11 / 10),
    };
    fill(&*subject, RECORDS);
    let bytes = resident_bytes() - before;
    let mut value = Vec::new();
    let found = (0..RECORDS).filter(|&n| subject.get(&traces::key(n), &mut value)).count();
    let per_record = bytes as f64 / found as f64;
    println!("{name}: {per_record:.1} ({found} records held)");
}

fn resident_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let resident: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    resident * 4096
}
