//! Redis commands on lists, sets, hashes, sorted sets, streams and scripts, beside Redis.

use std::time::{Duration, Instant};

use super::{
    super::{
        contest::{Entrant, Rounds, Sample, Take, Title, contest},
        error::SuiteError,
        plan::{Context, Scale},
        request,
        run::{Item, Unit},
        servers::{self, Durability, Started},
    },
    load,
};
use crate::net::{Command, Keys, Kind, Load, Mix, Protocol};

const NAME: &str = "commands";

const NOTE: &str = "50 connections, a pipeline of 16, one thread of the generator; every server has one thread that serves clients. Elements, \
                    members and fields have 16 bytes, and values 64. Each sample begins with an empty server, which is filled with 100,000 \
                    elements first where that is needed (10,000 in a quick run), and is as many requests.";

const NOTE_DELETE: &str =
    "From the sending of DEL to its answer, of a sorted set that has so many members.";

/// Requests in flight on each connection.
const PIPELINE: usize = 16;

/// The same while a server is filled.
const FILL_PIPELINE: usize = 100;

/// A sample ends with its requests, or after this time.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The durabilities to measure.
const DURABILITIES: [Durability; 2] = [Durability::Interval, Durability::Always];

/// A command, and one that fills the server first, with every key once.
struct Measured {
    name: &'static str,
    command: &'static str,
    filling: Option<&'static str>,
}

const fn alone(name: &'static str, command: &'static str) -> Measured {
    Measured { name, command, filling: None }
}

const fn behind(filling: &'static str, name: &'static str, command: &'static str) -> Measured {
    Measured { name, command, filling: Some(filling) }
}

const PUSH: &str = "RPUSH list {key}";
const ADD: &str = "SADD set {key}";
const SET_FIELD: &str = "HSET hash {key} {value}";
const SCORE: &str = "ZADD sorted {random} {key}";

/// [`SCRIPT`] is called by its name, which is the SHA-1 of its text.
const SCRIPT: &str = "redis.call('set', KEYS[1], ARGV[1]) redis.call('get', KEYS[1]) return \
                      redis.call('incr', KEYS[2])";
const CALL: &str = "EVALSHA 990d59787a247bce49201f39cad483e4870594ba 2 {key} n:{key} {value}";

const COMMANDS: [Measured; 16] = [
    alone("INCR", "INCR n:{key}"),
    behind(
        "SET {key} {value}",
        "MGET of a key ten times",
        "MGET {key} {key} {key} {key} {key} {key} {key} {key} {key} {key}",
    ),
    alone("LPUSH", "LPUSH list {key}"),
    behind(PUSH, "RPOP", "RPOP list"),
    behind(PUSH, "LRANGE of 100", "LRANGE list 0 99"),
    alone("SADD", ADD),
    behind(ADD, "SPOP", "SPOP set"),
    behind(ADD, "SISMEMBER", "SISMEMBER set {key}"),
    alone("HSET", SET_FIELD),
    behind(SET_FIELD, "HGET", "HGET hash {key}"),
    alone("ZADD", SCORE),
    behind(SCORE, "ZSCORE", "ZSCORE sorted {key}"),
    behind(SCORE, "ZRANK", "ZRANK sorted {key}"),
    behind(SCORE, "ZRANGEBYSCORE of 10", "ZRANGEBYSCORE sorted {random} +inf LIMIT 0 10"),
    alone("XADD", "XADD stream * field {value}"),
    alone("EVALSHA: set, get, incr", CALL),
];

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let rounds = Rounds::warm(context.scale().pick(2, 5, 15));
    // A quick run has no time for both.
    let durabilities = context.scale().pick(&DURABILITIES[..1], &DURABILITIES, &DURABILITIES);
    for &durability in durabilities {
        let mut started = vec![servers::tokaido_of(context, durability)?];
        started.extend(servers::redis(context, "redis", durability)?);
        load::prepare(&mut started, |_, port| {
            request::redis(port, &["SCRIPT", "LOAD", SCRIPT]).map(drop)
        })?;
        for measured in &COMMANDS {
            let entrants = started.iter().map(|one| entrant(context, one, measured)).collect();
            let name = format!("{}, {}", measured.name, durability.name());
            let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE };
            contest(context, &title, rounds, entrants, items)?;
        }
        let members = context.scale().pick(10_000, 100_000, 1_000_000);
        let entrants = started.iter().map(|one| deletion(context, one, members)).collect();
        let name = format!("DEL of a sorted set of {members} members, {}", durability.name());
        let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE_DELETE };
        contest(context, &title, rounds, entrants, items)?;
    }
    Ok(())
}

/// Number of elements in a server, and of requests in a sample.
fn elements(scale: Scale) -> u64 {
    scale.pick(10_000, load::KEYS, load::KEYS)
}

fn load(context: &Context<'_>, port: u16, command: &str) -> Load {
    let command: Command = command.parse().expect("what is listed above are commands");
    Load {
        pipeline: PIPELINE,
        command: Some(command),
        keys_count: elements(context.scale()),
        requests: Some(elements(context.scale())),
        time: TIME_MAX,
        ..load::load(context, port, Protocol::Resp2, &Mix::only(Kind::Get))
    }
}

/// Empties the server, and sends a command with each of `keys` keys.
fn fill(context: &Context<'_>, port: u16, command: &str, keys: u64) -> Result<(), SuiteError> {
    let load = load(context, port, command);
    let load = Load {
        pipeline: FILL_PIPELINE,
        keys: Keys::Shuffled,
        keys_count: keys,
        requests: Some(keys),
        warm_up: Duration::ZERO,
        ..load
    };
    empty(port)?;
    load::send(&load, context.stop).map(drop)
}

fn empty(port: u16) -> Result<(), SuiteError> {
    request::redis(port, &["FLUSHALL"]).map(drop)
}

fn entrant<'a>(
    context: &'a Context<'_>,
    started: &Started,
    measured: &'static Measured,
) -> Entrant<'a> {
    let take = started.port().map(|port| {
        let load = load(context, port, measured.command);
        let take = move || {
            match measured.filling {
                Some(filling) => fill(context, port, filling, elements(context.scale()))?,
                None => empty(port)?,
            }
            Ok(load::send(&load, context.stop)?.1)
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}

/// The time it takes to delete a sorted set.
fn deletion<'a>(context: &'a Context<'_>, started: &Started, members: u64) -> Entrant<'a> {
    let take = started.port().map(|port| {
        let take = move || {
            fill(context, port, SCORE, members)?;
            let mut connection = request::Redis::connect(port)?;
            let began = Instant::now();
            connection.command(&["DEL", "sorted"])?;
            Ok(Sample::of(began.elapsed().as_secs_f64()))
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_are_commands() {
        for measured in &COMMANDS {
            let texts = measured.filling.into_iter().chain([measured.command]);
            texts.for_each(|text| assert!(text.parse::<Command>().is_ok(), "{text}"));
        }
    }
}
