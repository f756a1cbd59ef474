//! Idle connections: the server's memory for each, and how they affect the active ones.

use std::{thread, time::Duration};

use super::{
    super::{
        contest::{Entrant, Name, Rounds, Sample, Take, Title, contest},
        error::SuiteError,
        plan::Context,
        room,
        run::{Item, Unit},
        servers::{self, Durability, Started},
    },
    load,
};
use crate::net::{Idle, Kind, Load, Mix, Protocol};

const NAME: &str = "connections";

const NOTE_MEMORY: &str = "What the process holds for itself, more with so many connections than before, for each of them. Each has set a record \
                           and got it, and has waited for 0.7 seconds. The first ones of a server are opened, and closed, before that. \
                           What a server has set aside for connections from the start is not seen.";

const NOTE_CROWD: &str = "50 connections that work, with a pipeline of 16, beside so many that have set and got a record, and wait; and the same \
                          without those. Every server has one thread that serves clients.";

/// How long connections are idle before the memory is measured: longer than our servers keep a buffer for one.
const REST: Duration = Duration::from_millis(700);

/// Requests in flight on each active connection.
const PIPELINE: usize = 16;

/// A server, and the protocol to use with it.
type Asked = (Started, Protocol);

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    room::allow_files().map_err(SuiteError::system("cannot have more files open"))?;
    memory(context, items)?;
    crowd(context, items)
}

fn idle(
    context: &Context<'_>,
    port: u16,
    protocol: Protocol,
    connections: usize,
) -> Result<Idle, SuiteError> {
    let load = load::load(context, port, protocol, &Mix::only(Kind::Get));
    Ok(Idle::open(&Load { connections, ..load })?)
}

fn memory(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let count = context.scale().pick(200, 2_000, 2_000);
    let mut asked: Vec<Asked> = Vec::new();
    // A quick run has no time for all of them.
    let few = [Protocol::Resp2, Protocol::Memcached, Protocol::Http];
    let protocols = context.scale().pick(&few[..], &Protocol::ALL, &Protocol::ALL);
    for &protocol in protocols {
        let mut ours = servers::tokaido_of(context, Durability::None)?;
        ours.name = Name::ours(protocol.name());
        asked.push((ours, protocol));
    }
    let place = |wanted| protocols.iter().position(|protocol| *protocol == wanted);
    let beside = |mut started: Started, protocol: Protocol| {
        started.name = Name::peer(&started.name.subject, protocol.name());
        started.name.beside = place(protocol).unwrap_or_default();
        (started, protocol)
    };
    let redis = servers::redis(context, "redis", Durability::None)?;
    asked.extend(redis.map(|started| beside(started, Protocol::Resp2)));
    let memcached = servers::memcached(context)?;
    asked.extend(memcached.map(|started| beside(started, Protocol::Memcached)));
    let entrants = asked.iter().map(|(started, protocol)| {
        let take = started.port().map(|port| {
            let take = move || {
                drop(idle(context, port, *protocol, 1)?);
                thread::sleep(REST);
                let before = load::memory(port)?;
                let idle = idle(context, port, *protocol, count)?;
                thread::sleep(REST);
                context.check()?;
                let more = load::memory(port)?.saturating_sub(before);
                Ok(Sample::of(more as f64 / idle.count() as f64))
            };
            Box::new(take) as Take<'_>
        });
        Entrant { name: started.name.clone(), take }
    });
    let entrants = entrants.collect();
    let name = format!("memory of a connection, of {count} that wait");
    let title = Title { scenario: NAME, name: &name, unit: Unit::Bytes, note: NOTE_MEMORY };
    // Only one round: memory freed by closed connections says nothing about new ones.
    contest(context, &title, Rounds::only(1), entrants, items)
}

fn crowd(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let count = context.scale().pick(500, 5_000, 5_000);
    let mut started = Vec::new();
    // With idle connections, and without.
    let settings = [format!("{count} wait beside"), "none wait".to_owned()];
    for (place, settings) in settings.iter().enumerate() {
        let mut ours = servers::tokaido_of(context, Durability::None)?;
        ours.name = Name::ours(settings);
        started.insert(place, ours);
        if let Some(mut redis) = servers::redis(context, "redis", Durability::None)? {
            redis.name = Name::peer("redis", settings).beside(place);
            started.push(redis);
        }
    }
    let mut crowds = Vec::new();
    load::prepare(&mut started, |one, port| {
        load::fill(context, &load::load(context, port, Protocol::Resp2, &Mix::only(Kind::Set)))?;
        if one.name.settings == settings[0] {
            crowds.push(idle(context, port, Protocol::Resp2, count)?);
        }
        Ok(())
    })?;
    for kind in [Kind::Get, Kind::Set] {
        let entrants = started.iter().map(|one| {
            load::rate(context, one, |port| Load {
                pipeline: PIPELINE,
                ..load::load(context, port, Protocol::Resp2, &Mix::only(kind))
            })
        });
        let name = format!("{kind}, beside {count} connections that wait");
        let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE_CROWD };
        contest(context, &title, context.scale().rounds(), entrants.collect(), items)?;
    }
    Ok(())
}
