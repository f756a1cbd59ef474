//! The store beside its peers, in turn in one run: `cargo bench -p tokaido-bench --bench store`.
//!
//! Every subject is a process of its own, which is told a workload by a line and answers with the
//! time of the part that counts: ours is this program again, the peers are `peers/*.c`, compiled
//! here against the libraries that are installed. Each round runs every subject once, and ratios
//! are formed within a round. docs/performance.md has the workloads, the figures, and how to read
//! them. Loop patterns and dictionaries are measured by `tokaido bench suite`.
//!
//! `-- NAME…` runs the workloads whose names begin so, `--rounds N` takes so many samples.

mod durable;
mod expiry;
mod memory;
mod peers;
mod random;
mod report;
mod subject;
mod workloads;

use std::{error::Error, process::ExitCode};

// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Samples of each subject, after one that does not count.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["--subject", directory] => subject::serve(directory.as_ref()),
        _ => bench(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &[&str]) -> Outcome {
    let mut rounds = ROUNDS;
    let mut names = Vec::new();
    let mut left = arguments.iter();
    while let Some(&argument) = left.next() {
        match argument {
            // What cargo adds by itself.
            "--bench" => {}
            "--rounds" => {
                let number = left.next().and_then(|number| number.parse().ok());
                rounds = number.filter(|&rounds| rounds > 0).ok_or("--rounds takes a number")?;
            }
            name if name.starts_with('-') => return Err(format!("no option {name}").into()),
            name => names.push(name),
        }
    }
    workloads::run(&names, rounds)
}
