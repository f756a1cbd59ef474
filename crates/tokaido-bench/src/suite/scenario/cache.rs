//! Caches of a limited size: how many accesses miss, and the memory per record.

use super::{
    super::{
        contest::{Entrant, Rounds, Sample, Take, Title, contest},
        error::SuiteError,
        plan::Context,
        run::{Item, Unit},
        servers::{self, Durability, Started},
    },
    load,
};
use crate::{
    net::{self, Keys, Kind, Load, LookAside, Mix, Protocol},
    random::{Random, Zipf, scatter},
    units,
};

const NAME: &str = "cache";

const NOTE_MEMORY: &str = "What the process holds for itself, more with so many records of 16 and 64 bytes than before, for each of them. Nothing is \
                           evicted, and nothing on disk.";

const NOTE_MISSES: &str = "A client gets a key, and sets what it does not find: a record of 16 and 64 bytes. All servers have the same number of bytes, so \
                           that one which holds more records in them misses less. The figure is what was missed of 100 accesses in the second half of them.";

/// Approximate size of a record in a cache, for which traces are made.
const RECORD_LEN: u64 = 150;

/// Keys of a trace per record that fits, unless the trace says otherwise.
const KEYS_PER_RECORD: u64 = 10;

/// Number of keys requested at once.
const BATCH: usize = 16;

/// A server, and the protocol to use with it.
type Asked = (Started, Protocol);

/// A sequence of keys.
struct Trace {
    name: &'static str,
    /// Makes a generator of keys, for a cache with room for that many records.
    make: fn(u64) -> Box<dyn FnMut() -> u64>,
}

const TRACES: [Trace; 4] = [
    Trace { name: "Zipf 0.9", make: |room| zipf(room, 0.9) },
    Trace { name: "Zipf 1.0", make: |room| zipf(room, 1.0) },
    Trace { name: "Zipf 1.0 with scans of keys that come once", make: with_scans },
    Trace { name: "a loop over some 1.5 times as many keys as there is room for", make: looped },
];

fn zipf(room: u64, exponent: f64) -> Box<dyn FnMut() -> u64> {
    let keys = room * KEYS_PER_RECORD;
    let (zipf, mut random) = (Zipf::new(keys, exponent), Random::new(1));
    Box::new(move || scatter(zipf.draw(&mut random)) % keys)
}

/// After as many draws as there is room for, half as many keys that occur only once.
fn with_scans(room: u64) -> Box<dyn FnMut() -> u64> {
    let mut draw = zipf(room, 1.0);
    let (mut place, mut next) = (0, room * KEYS_PER_RECORD);
    Box::new(move || {
        place = (place + 1) % (room + room / 2);
        if place < room {
            return draw();
        }
        next += 1;
        next
    })
}

fn looped(room: u64) -> Box<dyn FnMut() -> u64> {
    let (keys, mut next) = (room + room / 2, 0);
    Box::new(move || {
        next = (next + 1) % keys;
        next
    })
}

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    memory(context, items)?;
    let mib = context.scale().pick(4, 8, 64);
    let room = (mib << 20) / RECORD_LEN;
    let accesses = context.scale().pick(30_000, 600_000, 6_000_000);
    let traces = context.scale().pick(&TRACES[..2], &TRACES, &TRACES);
    for trace in traces {
        let asked = bounded(context, mib)?;
        let entrants = asked.iter().map(|asked| misses(context, asked, trace, room, accesses));
        let accesses = units::thousands(accesses);
        let name =
            format!("misses in 100 accesses, {mib} MiB, {accesses} accesses, {}", trace.name);
        let title = Title { scenario: NAME, name: &name, unit: Unit::Times, note: NOTE_MISSES };
        contest(context, &title, Rounds::only(1), entrants.collect(), items)?;
    }
    Ok(())
}

/// Servers with this much memory for records.
fn bounded(context: &Context<'_>, mib: u64) -> Result<Vec<Asked>, SuiteError> {
    let mut asked = vec![(servers::tokaido_cache_of(context, mib)?, Protocol::Memcached)];
    let memcached = servers::memcached_of(context, mib)?;
    asked.extend(memcached.map(|started| (started, Protocol::Memcached)));
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let redis = servers::redis_cache(context, mib, policy)?;
        asked.extend(redis.map(|started| (started, Protocol::Resp2)));
    }
    Ok(asked)
}

fn misses<'a>(
    context: &'a Context<'_>,
    (started, protocol): &Asked,
    trace: &'a Trace,
    room: u64,
    accesses: u64,
) -> Entrant<'a> {
    let protocol = *protocol;
    let take = started.port().map(|port| {
        let take = move || {
            let load = load::load(context, port, protocol, &Mix::only(Kind::Get));
            let mut client = LookAside::open(&load)?;
            let mut next = (trace.make)(room);
            let mut keys = vec![Vec::new(); BATCH];
            let batches = accesses / BATCH as u64;
            let mut misses = 0;
            for batch in 0..batches {
                context.check()?;
                for key in &mut keys {
                    key.clear();
                    net::generate_key(next(), key);
                }
                let missed = client.look(&keys)?;
                misses += if batch < batches / 2 { 0 } else { missed };
            }
            let counted = (batches - batches / 2) * BATCH as u64;
            Ok(Sample::of(100.0 * misses as f64 / counted as f64))
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}

fn memory(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let records = context.scale().pick(100_000, 1_000_000, 1_000_000);
    let mut asked = vec![(servers::tokaido_cache(context)?, Protocol::Memcached)];
    let memcached = servers::memcached(context)?;
    asked.extend(memcached.map(|started| (started, Protocol::Memcached)));
    let redis = servers::redis(context, "redis", Durability::None)?;
    asked.extend(redis.map(|started| (started, Protocol::Resp2)));
    let entrants = asked.iter().map(|(started, protocol)| {
        let take = started.port().map(|port| {
            let take = move || {
                let load = load::load(context, port, *protocol, &Mix::only(Kind::Set));
                let before = load::memory(port)?;
                let all = Load { keys: Keys::Shuffled, keys_count: records, ..load };
                load::fill(context, &all)?;
                let more = load::memory(port)?.saturating_sub(before);
                Ok(Sample::of(more as f64 / records as f64))
            };
            Box::new(take) as Take<'_>
        });
        Entrant { name: started.name.clone(), take }
    });
    let name = format!("memory of a record, of {}", units::thousands(records));
    let title = Title { scenario: NAME, name: &name, unit: Unit::Bytes, note: NOTE_MEMORY };
    contest(context, &title, Rounds::only(1), entrants.collect(), items)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn traces_have_as_many_keys_as_they_say() {
        let keys = |trace: &Trace, count: usize| {
            let mut next = (trace.make)(100);
            (0..count).map(|_| next()).collect::<Vec<_>>()
        };
        let of_loop: BTreeSet<u64> = keys(&TRACES[3], 1_000).into_iter().collect();
        assert_eq!(of_loop.len(), 150);
        assert!(keys(&TRACES[0], 10_000).into_iter().all(|key| key < 1_000));
        let once = keys(&TRACES[2], 1_500).into_iter().filter(|key| *key >= 1_000);
        let once: Vec<u64> = once.collect();
        assert_eq!(BTreeSet::from_iter(once.iter()).len(), once.len());
        assert!(once.len().abs_diff(500) <= 50, "{}", once.len());
    }
}
