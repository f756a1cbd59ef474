//! Loads from the generator, as samples of a contest.

use std::{cell::RefCell, sync::atomic::AtomicBool, time::Duration};

use super::super::{
    contest::{Entrant, Sample, Take},
    error::SuiteError,
    plan::Context,
    run::{Problem, Split},
    servers::Started,
};
use crate::{
    machine,
    net::{
        self, Address, Keys, Latency, Load, Mix, Outcome, Pace, Protocol, Usage, Values, Verdict,
        protocol,
    },
};

/// How long a load runs before anything counts, so that every connection has been used once.
const WARM_UP: Duration = Duration::from_millis(20);

/// If a load gets no answer in its time, it is repeated for this many times as long, up to [`SILENCE_MAX`].
const LONGER: u32 = 4;
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Number of keys that servers hold before the load.
pub(super) const KEYS: u64 = 100_000;

/// The path of one of our records over HTTP.
const PATH: &str = "/v1/db/main/{key}";

/// Length of a value in bytes.
const VALUE_LEN: &str = "64";

/// A load on a server of this machine: 50 connections, a closed loop, random keys out of [`KEYS`], one thread.
pub(super) fn load(context: &Context<'_>, port: u16, protocol: Protocol, mix: &Mix) -> Load {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let name = address.to_string();
    let options = protocol::Options {
        host: name.clone(),
        path: PATH.to_owned(),
        ..protocol::Options::default()
    };
    Load {
        address: Address::Tcp { name, address },
        protocol,
        options,
        connections: 50,
        pipeline: 1,
        threads: 1,
        reconnect: false,
        pace: Pace::Closed,
        time: context.scale().sample(),
        requests: None,
        warm_up: WARM_UP,
        keys: Keys::Uniform,
        keys_count: KEYS,
        values: VALUE_LEN.parse::<Values>().expect("a length is a value"),
        mix: mix.clone(),
        command: None,
        seed: 1,
    }
}

/// Sets every key once.
pub(super) fn fill(context: &Context<'_>, load: &Load) -> Result<(), SuiteError> {
    /// Requests in flight meanwhile, on each connection.
    const PIPELINE: usize = 100;
    let load = Load { pipeline: PIPELINE, ..load.filling()? };
    let outcome = net::run(&load, context.stop, &mut |_| {})?;
    context.check()?;
    refused(&outcome)
}

fn refused(outcome: &Outcome) -> Result<(), SuiteError> {
    match &outcome.tally.refusal {
        Some(refusal) => Err(SuiteError::Refused(refusal.clone())),
        None => Ok(()),
    }
}

/// Runs a load, and returns the results. If nothing is answered in its time, it is repeated for longer.
pub(super) fn send(load: &Load, stop: &AtomicBool) -> Result<(Outcome, Sample), SuiteError> {
    let outcome = net::run(load, stop, &mut |_| {})?;
    refused(&outcome)?;
    let requests = outcome.tally.requests();
    if requests == 0 || outcome.rate == 0.0 {
        let longer = Load { time: load.time.saturating_mul(LONGER), ..load.clone() };
        return match longer.time <= SILENCE_MAX {
            true => send(&longer, stop),
            false => Err(SuiteError::Silent(load.time)),
        };
    }
    let cost = outcome.server.map(|usage| usage.processor().as_secs_f64() / requests as f64);
    let sample = Sample {
        figure: outcome.rate,
        cost: cost.filter(|cost| *cost > 0.0),
        split: outcome.server.map(|server| split(&outcome.client, &server)),
        is_bound: Verdict::of(load, &outcome) == Verdict::Generator,
    };
    Ok((outcome, sample))
}

fn split(client: &Usage, server: &Usage) -> Split {
    Split {
        client_user: client.user.as_secs_f64(),
        client_system: client.system.as_secs_f64(),
        server_user: server.user.as_secs_f64(),
        server_system: server.system.as_secs_f64(),
    }
}

/// Memory of the server at a port, in bytes.
pub(super) fn memory(port: u16) -> Result<u64, SuiteError> {
    let processes = net::of_port(port);
    let memory: Option<u64> = processes.iter().map(|process| machine::memory(*process)).sum();
    let unknown = || SuiteError::Library("the memory of the server is not known".to_owned());
    memory.filter(|_| !processes.is_empty()).ok_or_else(unknown)
}

/// Requests per second of a started server.
pub(super) fn rate<'a>(
    context: &'a Context<'_>,
    started: &Started,
    load: impl FnOnce(u16) -> Load,
) -> Entrant<'a> {
    let take = started.port().map(|port| {
        let load = load(port);
        let take = move || Ok(send(&load, context.stop)?.1);
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}

/// The time within which 99 of 100 requests are answered, at a given rate; all times are added to `latency`.
pub(super) fn latency<'a>(
    context: &'a Context<'_>,
    started: &Started,
    load: impl FnOnce(u16) -> Load,
    latency: &'a RefCell<Latency>,
) -> Entrant<'a> {
    let take = started.port().map(|port| {
        let load = load(port);
        let take = move || {
            let (outcome, sample) = send(&load, context.stop)?;
            latency.borrow_mut().add(&outcome.tally.response);
            let figure = outcome.tally.response.quantile(0.99) as f64 / 1e9;
            Ok(Sample { figure, ..sample })
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}

/// Prepares each server; one that cannot be prepared does not take part.
pub(super) fn prepare(
    started: &mut [Started],
    mut prepare: impl FnMut(&Started, u16) -> Result<(), SuiteError>,
) -> Result<(), SuiteError> {
    for one in started {
        let Ok(port) = one.port() else { continue };
        match prepare(one, port) {
            Ok(()) => {}
            Err(SuiteError::Stopped) => return Err(SuiteError::Stopped),
            Err(error) => one.server = Err(Problem::Failed(error.to_string())),
        }
    }
    Ok(())
}
