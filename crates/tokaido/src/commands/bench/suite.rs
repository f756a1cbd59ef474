//! `tokaido bench suite`, `peers` and `compare`: Tokaido compared with its peers.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tokaido_bench::{
    report::{self, Comparison},
    suite::{self, PEERS, Peer, Plan, Run, SCENARIOS, Scale, Scenario},
};
use tokaido_script::Interrupt;

use super::dictionary::DICTIONARIES;
use crate::{
    error::{EXIT_INTERRUPTED, Error},
    interrupt::{self, Running},
    progress::Status,
};

/// Stands for no peers at all.
const NONE: &str = "none";

/// Stands for all scenarios.
const ALL: &str = "all";

/// How often to check for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Exit status if something has become worse.
const EXIT_WORSE: u8 = 1;

/// The files of a report.
const PAGE: &str = "index.html";
const TABLES: &str = "report.md";
const RUN: &str = "run.json";

/// Compare Tokaido with its peers, in one run
///
/// SCENARIOS are dictionary, fib, growth, hello, patterns, regex, server and setget, which are the default. Further ones
/// are cache, commands, commit, connections, handlers and protocols; all stands for all of them. Peers are found on
/// PATH, or as libraries, started on loopback with the settings that the tables state, and stopped afterwards. A missing
/// peer gets a row that names the Debian package that provides it.
///
/// All subjects are measured in turn, round by round, and ratios are formed within a round. Next to each ratio is the
/// interval in which it lies with a confidence of 95 %.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido bench suite --quick
  tokaido bench suite server --report report
  tokaido bench suite hello --peers nginx,apache

Exit status: 0 if everything was measured, 1 if a scenario could not be run, 2 for a wrong command
line, 130 if Ctrl-C ended it; the results until then are kept."
)]
pub(crate) struct SuiteArgs {
    /// Scenarios to measure [default: the first eight]
    #[arg(value_name = "SCENARIO", value_parser = scenario)]
    scenarios: Vec<Wanted>,
    /// Take two minutes on two cores instead of a quarter of an hour; the figures are rough
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Take as long as necessary
    #[arg(long)]
    long: bool,
    /// Peers that take part, separated by commas, or none [default: all that are found]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = peer)]
    peers: Option<Vec<String>>,
    /// List of companies: lines of five columns separated by tabs, the third of which is the key [default: a generated list]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Address of a running Kyoto Tycoon that takes part in patterns: start it with -scr and the output of
    /// `bench peers --kyototycoon-script`. All its records are removed
    #[arg(long, value_name = "HOST:PORT")]
    kyototycoon: Option<String>,
    /// Write index.html with charts, report.md and run.json into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print the run as one JSON object, as `bench compare` reads it, instead of tables
    #[arg(long)]
    json: bool,
}

/// What to measure.
#[derive(Clone, Debug)]
enum Wanted {
    One(&'static Scenario),
    All,
}

fn scenario(name: &str) -> Result<Wanted, String> {
    if name == ALL {
        return Ok(Wanted::All);
    }
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
    found
        .map(Wanted::One)
        .ok_or_else(|| format!("there is no such scenario; there are {}", names.join(", ")))
}

fn peer(name: &str) -> Result<String, String> {
    match Peer::named(name) {
        None if name != NONE => {
            Err("there is no such peer; `tokaido bench peers` lists them".to_owned())
        }
        _ => Ok(name.to_owned()),
    }
}

pub(super) fn suite(args: &SuiteArgs) -> Result<ExitCode, Error> {
    let failed = |source| Error::Io { what: "cannot find the program itself", source };
    let plan = Plan {
        scale: match (args.quick, args.long) {
            (true, _) => Scale::Quick,
            (false, true) => Scale::Long,
            (false, false) => Scale::Default,
        },
        tokaido: std::env::current_exe().map_err(failed)?,
        only: args.peers.clone(),
        dictionaries: DICTIONARIES,
        list: args.data.clone(),
        kyoto_tycoon: args.kyototycoon.clone(),
    };
    if let Some(directory) = &args.report {
        // Now rather than after all measurements.
        fs::create_dir_all(directory).map_err(|error| file_error(directory, error))?;
    }
    interrupt::catch([Interrupt::default()])?;
    let run = {
        let _running = Running::begin();
        measure(&wanted(&args.scenarios), &plan)
    };
    if let Some(directory) = &args.report {
        write_report(directory, &run)?;
    }
    let text = if args.json { run.json() + "\n" } else { report::markdown(&run) };
    print(&text)?;
    Ok(match (run.was_stopped, run.failures.is_empty()) {
        (true, _) => EXIT_INTERRUPTED.into(),
        (false, false) => ExitCode::FAILURE,
        (false, true) => ExitCode::SUCCESS,
    })
}

/// The named scenarios, or the default ones if none is named.
fn wanted(names: &[Wanted]) -> Vec<&'static Scenario> {
    if names.is_empty() {
        return SCENARIOS.iter().filter(|scenario| !scenario.is_extra).collect();
    }
    let of = |name: &Wanted| match name {
        Wanted::One(scenario) => vec![*scenario],
        Wanted::All => SCENARIOS.iter().collect(),
    };
    names.iter().flat_map(of).collect()
}

fn measure(scenarios: &[&'static Scenario], plan: &Plan) -> Run {
    let status = Status::new();
    let progress =
        |what: &str, left: Duration| status.show(&format!("{what}, {} left", minutes(left)));
    let (stop, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                stop.store(interrupt::was_raised(), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        });
        let run = suite::run(scenarios, plan, &stop, &progress);
        is_over.store(true, Ordering::Relaxed);
        run
    })
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 60 => format!("less than {} s", (seconds / 10 + 1) * 10),
        seconds => format!("about {} min", seconds.div_ceil(60)),
    }
}

fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Stdout)
}

fn write_report(directory: &Path, run: &Run) -> Result<(), Error> {
    let page = report::html(run)?;
    for (name, text) in [(PAGE, page), (TABLES, report::markdown(run)), (RUN, run.json() + "\n")] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| file_error(&path, error))?;
    }
    Ok(())
}

fn file_error(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source }
}

/// List the peers that `bench suite` knows, and where they are
#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    /// Print the script that a Kyoto Tycoon needs to take part, instead of the list
    #[arg(long)]
    kyototycoon_script: bool,
}

pub(super) fn peers(args: &PeersArgs) -> Result<ExitCode, Error> {
    if args.kyototycoon_script {
        print(&suite::kyoto_tycoon_script())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let mut packages = Vec::new();
    for peer in PEERS {
        let found = match peer.find() {
            Some(presence) => format!("{:<12} {}", presence.version, presence.path.display()),
            None if peer.packages.is_empty() => "not there, and no package of Debian 12".to_owned(),
            None => match peer.apart_from {
                Some(other) => format!("not there: {}, but not beside {other}", peer.packages),
                None => {
                    packages.push(peer.packages);
                    format!("not there: {}", peer.packages)
                }
            },
        };
        text.push_str(&format!("{:<12} {found}\n", peer.name));
    }
    if !packages.is_empty() {
        text.push_str(&format!("\napt-get install {}\n", packages.join(" ")));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Compare two runs of `bench suite`, and find what has become worse
///
/// OLD and NEW are the output of `bench suite --json`, or run.json of a report.
///
/// Tokaido's figures are compared relative to its peers: if they have become slower by as much, it was the machine.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Exit status: 0 if nothing of Tokaido has become worse, 1 if something has or on failure, 2 for a wrong
command line."
)]
pub(crate) struct CompareArgs {
    /// Earlier run
    old: PathBuf,
    /// Later run
    new: PathBuf,
}

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode, Error> {
    let comparison = Comparison::of(&Run::read(&args.old)?, &Run::read(&args.new)?);
    print(&comparison.to_string())?;
    Ok(match comparison.regressions().next() {
        Some(_) => EXIT_WORSE.into(),
        None => ExitCode::SUCCESS,
    })
}
