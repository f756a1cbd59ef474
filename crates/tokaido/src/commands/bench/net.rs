//! `tokaido bench net`: puts a server under load.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration as Time,
};

use tokaido_bench::{
    machine::Machine,
    net::{
        self, Address, CSV_HEAD, Ceiling, Command, Interval, KEYS_MAX, Keys, Load, Mix, Outcome,
        Pace, Protocol, Report, Values, protocol,
    },
    units,
};
use tokaido_script::Interrupt;
use tokaido_server::PORT_DEFAULT;

use crate::{
    duration::Duration,
    error::{EXIT_INTERRUPTED, Error},
    interrupt::{self, Running},
    progress::Status,
};

/// Maximum number of connections: close to the number of ports for them.
const CONNECTIONS_MAX: u64 = 50_000;

/// Maximum number of requests in flight on a connection.
const PIPELINE_MAX: u64 = 100_000;

/// Maximum number of threads.
const THREADS_MAX: u64 = 256;

/// Longer than any load that ends by its number of requests.
const NO_END: Time = Time::from_secs(365 * 86_400);

/// How often to check for Ctrl-C.
const LOOK: Time = Time::from_millis(50);

/// Put a server under load, and measure it
///
/// ADDRESS is HOST:PORT, or unix:PATH for a UNIX socket, of any server that speaks the protocol.
///
/// Without --rate, each connection sends its next requests when the last ones are answered: a closed loop, which shows
/// how many requests a server can handle. A server that stalls gets no requests then, so stalls are hardly visible. With
/// --rate, requests are due at even intervals, whatever the server does, and their times count from when they were due.
///
/// The report also shows the processor time of the generator itself, and of the server, if it is a process on this
/// machine. If the generator was the limit, the report says so, and that nothing is known of the server beyond that.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido bench net --fill --mix get=9,set=1
  tokaido bench net --rate 20000 --key-order zipf
  tokaido bench net --command 'ZADD board {random} {key}'
  tokaido bench net --protocol memcached --pipeline 16 127.0.0.1:11211

Exit status: 0 on success, 1 on failure, 2 for a wrong command line, 3 if the server cannot be reached,
130 if Ctrl-C ended it; the results until then are printed."
)]
pub(crate) struct NetArgs {
    /// Server [default: 127.0.0.1:7653]
    #[arg(value_name = "ADDRESS")]
    address: Option<Address>,
    /// resp2, resp3, memcached, memcached-meta, memcached-binary, http, kyototycoon or tokyotyrant
    #[arg(long, value_name = "NAME", default_value = "resp2")]
    protocol: Protocol,
    /// Total number of connections
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: u64,
    /// Number of requests that a connection sends before it waits for their answers
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=PIPELINE_MAX))]
    pipeline: u64,
    /// Number of threads that share the connections; each uses up to one core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    threads: u64,
    /// Use a new connection, which the server closes, for each request; for http, without a pipeline
    #[arg(long)]
    reconnect: bool,
    /// Send this number of requests per second, whatever the server does
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Measure for this time, such as 500ms, 30s or 15m
    #[arg(long, value_name = "TIME", default_value = "10s")]
    time: Duration,
    /// Measure this number of requests instead of a period of time
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "time", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Send requests for this time before measuring
    #[arg(long, value_name = "TIME", default_value = "1s")]
    warm_up: Duration,
    /// Operations and their proportions, out of get, set, delete and increment
    #[arg(long, value_name = "MIX", default_value = "get=1")]
    mix: Mix,
    /// Redis command to send instead, such as 'ZADD board {random} {key}': words separated by spaces, in which {key}, {value}
    /// and {random}, a number below the number of keys, are replaced
    #[arg(long, value_name = "WORDS", conflicts_with = "mix")]
    command: Option<Command>,
    /// Number of keys, which are key:000000000000 and so on
    #[arg(short, long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    keys: u64,
    /// Order of the keys: uniform, zipf or zipf:EXPONENT, sequential, shuffled; or file:PATH, whose lines are the keys
    #[arg(long, value_name = "ORDER", default_value = "uniform")]
    key_order: Keys,
    /// Values: their LENGTH in bytes, MIN-MAX, zipf:MIN-MAX, or file:PATH, whose lines are the values
    #[arg(short = 'd', long, value_name = "VALUES", default_value = "64")]
    values: Values,
    /// Set every key once before the measurement
    #[arg(long)]
    fill: bool,
    /// Seed for random numbers; the same seed produces the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Path of a record over HTTP
    #[arg(long, value_name = "PATH", default_value = "/v1/db/main/{key}")]
    path: String,
    /// Password of the server, for the Redis protocol and HTTP
    #[arg(long, value_name = "PASSWORD", env = "TOKAIDO_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Print one JSON object for each second, and one for the whole run
    #[arg(long)]
    json: bool,
    /// Print one line of CSV for each second
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Do not measure beforehand what the generator itself can do at most
    #[arg(long)]
    no_ceiling: bool,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.001);
    rate.filter(|rate| *rate <= 1e9)
        .ok_or_else(|| "a rate is a number of requests a second".to_owned())
}

pub(super) fn net(args: &NetArgs) -> Result<ExitCode, Error> {
    let load = load(args)?;
    interrupt::catch([Interrupt::default()])?;
    let _running = Running::begin();
    let (stop, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                stop.store(interrupt::was_raised(), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        });
        let measured = measure(args, &load, &stop);
        is_over.store(true, Ordering::Relaxed);
        measured
    });
    let (outcome, ceiling) = measured?;
    let report = Report { load, outcome, ceiling, machine: Machine::look() };
    let mut out = io::stdout().lock();
    let written = match (args.json, args.csv) {
        (true, _) => writeln!(out, "{}", report.json()),
        (false, true) => Ok(()),
        (false, false) => write!(out, "{report}"),
    };
    written.and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(if interrupt::was_raised() { EXIT_INTERRUPTED.into() } else { ExitCode::SUCCESS })
}

fn load(args: &NetArgs) -> Result<Load, Error> {
    let address = match &args.address {
        Some(address) => address.clone(),
        None => {
            let parsed = format!("127.0.0.1:{PORT_DEFAULT}").parse();
            parsed.map_err(|error: net::AddressError| Error::Usage(error.to_string()))?
        }
    };
    // A password in the environment is not meant for every server.
    let password = args.password.clone().filter(|_| args.protocol.has_password());
    let options = protocol::Options {
        password,
        path: args.path.clone(),
        host: address.to_string(),
        close: false,
    };
    Ok(Load {
        address,
        protocol: args.protocol,
        options,
        connections: args.connections as usize,
        pipeline: args.pipeline as usize,
        threads: args.threads.min(args.connections) as usize,
        reconnect: args.reconnect,
        pace: args.rate.map_or(Pace::Closed, Pace::Rate),
        time: args.requests.map_or(args.time.time(), |_| NO_END),
        requests: args.requests,
        warm_up: args.warm_up.time(),
        keys: args.key_order.clone(),
        keys_count: args.keys,
        values: args.values.clone(),
        mix: args.mix.clone(),
        command: args.command.clone(),
        seed: args.seed,
    })
}

fn measure(
    args: &NetArgs,
    load: &Load,
    stop: &AtomicBool,
) -> Result<(Outcome, Option<Ceiling>), Error> {
    let status = Status::new();
    if args.fill {
        status.show("setting every key");
        let filled = net::run(&load.filling()?, stop, &mut |_| {})?;
        if let Some(refusal) = filled.tally.refusal {
            return Err(Error::Refused { message: refusal });
        }
    }
    // The generator's own server does not close connections.
    let ceiling = match args.no_ceiling || args.reconnect {
        true => None,
        false => {
            status.show("measuring the generator itself");
            Some(net::measure_ceiling(load, stop)?)
        }
    };
    let mut lines = Lines { args, status: &status, failed: None };
    lines.line(|| CSV_HEAD.to_owned(), args.csv);
    let outcome = net::run(load, stop, &mut |interval| lines.interval(interval));
    match lines.failed {
        Some(error) => Err(Error::Stdout(error)),
        None => Ok((outcome?, ceiling)),
    }
}

/// Where the results of each second are printed.
struct Lines<'a> {
    args: &'a NetArgs,
    status: &'a Status,
    failed: Option<io::Error>,
}

impl Lines<'_> {
    fn interval(&mut self, interval: &Interval) {
        let tally = &interval.tally;
        let slow = units::time(tally.response.quantile(0.99) as f64);
        let requests = units::thousands(tally.requests());
        let what = if interval.counts { "" } else { ", warm-up" };
        self.status.show(&format!("{requests}/s, 99 % within {slow}{what}"));
        self.line(|| net::interval_json(interval).to_string(), self.args.json);
        self.line(|| net::interval_csv(interval), self.args.csv);
    }

    fn line(&mut self, text: impl FnOnce() -> String, is_wanted: bool) {
        if is_wanted && self.failed.is_none() {
            let mut out = io::stdout().lock();
            self.failed = writeln!(out, "{}", text()).and_then(|()| out.flush()).err();
        }
    }
}
