//! The scenarios: each starts its peers, measures in turn, and returns items.

mod cache;
mod commands;
mod commit;
mod connections;
mod dictionary;
mod fib;
mod growth;
mod handlers;
mod hello;
mod load;
mod patterns;
mod protocols;
mod regex;
mod server;
mod setget;
mod timed;

use std::{
    collections::BTreeMap,
    sync::atomic::AtomicBool,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    error::SuiteError,
    plan::{Context, Plan, Scale, present},
    run::{Item, RUN_FORMAT, Run},
};
use crate::machine::Machine;

/// Something that is measured.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub what: &'static str,
    /// Whether it is run only when it is named.
    pub is_extra: bool,
    /// Approximate duration in seconds on two cores, at each scale.
    seconds: [u64; 3],
    measure: fn(&Context<'_>, &mut Vec<Item>) -> Result<(), SuiteError>,
}

/// All scenarios, in the order in which they run; first come those that run when none is named.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "fib",
        what: "fib(37) in servers and plain interpreters, their start told apart",
        is_extra: false,
        seconds: [10, 80, 240],
        measure: fib::measure,
    },
    Scenario {
        name: "hello",
        what: "hello world over HTTP: connections kept and not, virtual machines kept and not",
        is_extra: false,
        seconds: [20, 90, 400],
        measure: hello::measure,
    },
    Scenario {
        name: "patterns",
        what: "loops over records in the Lua of each server",
        is_extra: false,
        seconds: [10, 100, 300],
        measure: patterns::measure,
    },
    Scenario {
        name: "regex",
        what: "a search by ngx.re.find, measured well and badly",
        is_extra: false,
        seconds: [5, 30, 60],
        measure: regex::measure,
    },
    Scenario {
        name: "dictionary",
        what: "a list of companies in files of keys and values, and over the network",
        is_extra: false,
        seconds: [10, 90, 300],
        measure: dictionary::measure,
    },
    Scenario {
        name: "setget",
        what: "keys set and got one by one, through client libraries of several languages and in process",
        is_extra: false,
        seconds: [25, 150, 2_400],
        measure: setget::measure,
    },
    Scenario {
        name: "server",
        what: "GET and SET at 50 connections, by pipeline and by durability; latency at a rate",
        is_extra: false,
        seconds: [30, 170, 900],
        measure: server::measure,
    },
    Scenario {
        name: "growth",
        what: "what becomes slower or larger with the number of records",
        is_extra: false,
        seconds: [15, 220, 3_600],
        measure: growth::measure,
    },
    Scenario {
        name: "commands",
        what: "commands of Redis on lists, sets, hashes, sorted sets, streams and scripts",
        is_extra: true,
        seconds: [20, 210, 900],
        measure: commands::measure,
    },
    Scenario {
        name: "cache",
        what: "caches of a bounded size: accesses that miss, and the memory of a record",
        is_extra: true,
        seconds: [10, 140, 600],
        measure: cache::measure,
    },
    Scenario {
        name: "connections",
        what: "connections that wait: their memory, and what they take from those that work",
        is_extra: true,
        seconds: [20, 65, 150],
        measure: connections::measure,
    },
    Scenario {
        name: "protocols",
        what: "GET and SET by each protocol of one server",
        is_extra: true,
        seconds: [10, 80, 540],
        measure: protocols::measure,
    },
    Scenario {
        name: "handlers",
        what: "handlers of ngx and Ruby: shared dictionaries, hello world, bodies that are echoed",
        is_extra: true,
        seconds: [10, 40, 240],
        measure: handlers::measure,
    },
    Scenario {
        name: "commit",
        what: "commits in process that are on the disk before they end",
        is_extra: true,
        seconds: [2, 6, 40],
        measure: commit::measure,
    },
];

impl Scenario {
    /// Approximate duration on two cores.
    #[must_use]
    pub fn time(&self, scale: Scale) -> Duration {
        let [quick, default, long] = self.seconds;
        Duration::from_secs(scale.pick(quick, default, long))
    }
}

/// Runs these scenarios. `progress` is called with what is measured now, and roughly how much time
/// is left. Setting `stop` ends the run; what was done until then is kept.
#[must_use]
pub fn run(
    scenarios: &[&Scenario],
    plan: &Plan,
    stop: &AtomicBool,
    progress: &dyn Fn(&str, Duration),
) -> Run {
    let began = Instant::now();
    let mut run = Run {
        format: RUN_FORMAT,
        tokaido: env!("CARGO_PKG_VERSION").to_owned(),
        began: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        took_s: 0.0,
        scale: plan.scale,
        machine: Machine::look(),
        peers: BTreeMap::new(),
        was_stopped: false,
        failures: BTreeMap::new(),
        items: Vec::new(),
    };
    let present = present(plan);
    let versions = present.iter().map(|(name, peer)| ((*name).to_owned(), peer.version.clone()));
    run.peers.extend(versions);
    for (index, scenario) in scenarios.iter().enumerate() {
        let (start, all) = (Instant::now(), scenario.time(plan.scale));
        let later: Duration = scenarios[index + 1..].iter().map(|next| next.time(plan.scale)).sum();
        let tell = |what: &str| progress(what, later + all.saturating_sub(start.elapsed()));
        let context = Context { plan, present: &present, stop, progress: &tell };
        match (scenario.measure)(&context, &mut run.items) {
            Ok(()) => {}
            Err(SuiteError::Stopped) => {
                run.was_stopped = true;
                break;
            }
            Err(error) => {
                run.failures.insert(scenario.name.to_owned(), error.to_string());
            }
        }
    }
    run.took_s = began.elapsed().as_secs_f64();
    run
}
