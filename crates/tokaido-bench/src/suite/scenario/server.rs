//! GET and SET over 50 connections, by pipeline and durability, and latency at a rate.

use std::cell::RefCell;

use super::{
    super::{
        contest::{Entrant, Title, contest, draw},
        error::SuiteError,
        plan::{Context, Scale},
        run::{Axis, Curve, Item, Unit},
        servers::{self, Durability, Started},
    },
    load,
};
use crate::{
    net::{Kind, Latency, Load, Mix, Pace, Protocol},
    statistics::Summary,
    units,
};

const NAME: &str = "server";

const NOTE: &str = "50 connections, one thread of the generator, 100,000 keys of 16 bytes with 64 bytes each. Every server has one \
                    thread that serves clients. What a request took of the server's processor time \
                    tells more where the generator was the limit.";

const NOTE_LATENCY: &str = "Requests are due at even distances, and their time counts from when they were due, so that a stall shows in \
                            all that had to wait for it. All servers get the same rate: the stated part of what the slowest of them \
                            did in a closed loop. The figure is the time within which 99 of 100 were answered.";

/// The fractions of the closed loop's rate at which latency is measured.
const LOADS: [f64; 2] = [0.5, 0.8];

/// The quantiles that are drawn.
const QUANTILES: [f64; 12] =
    [0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999];

/// A server, and the protocol to use with it.
type Asked = (Started, Protocol);

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    for durability in Durability::ALL {
        let mut asked = start(context, durability)?;
        for (started, protocol) in &mut asked {
            let protocol = *protocol;
            load::prepare(std::slice::from_mut(started), |_, port| {
                load::fill(context, &load::load(context, port, protocol, &Mix::only(Kind::Set)))
            })?;
        }
        // Reads do not depend on when the records were written to disk.
        let kinds: &[Kind] = match durability {
            Durability::None => &[Kind::Get, Kind::Set],
            _ => &[Kind::Set],
        };
        for &kind in kinds {
            rates(context, durability, kind, &asked, items)?;
        }
        match durability {
            Durability::None => latencies(context, durability, Kind::Get, &asked, items)?,
            Durability::Always => latencies(context, durability, Kind::Set, &asked, items)?,
            Durability::Interval => {}
        }
    }
    Ok(())
}

fn start(context: &Context<'_>, durability: Durability) -> Result<Vec<Asked>, SuiteError> {
    let mut asked = vec![(servers::tokaido_of(context, durability)?, Protocol::Resp2)];
    if durability == Durability::None {
        asked.push((servers::tokaido_cache(context)?, Protocol::Memcached));
    }
    for peer in ["redis", "valkey", "keydb"] {
        let started = servers::redis(context, peer, durability)?;
        asked.extend(started.map(|started| (started, Protocol::Resp2)));
    }
    if durability == Durability::None {
        let started = servers::dragonfly(context)?;
        asked.extend(started.map(|started| (started, Protocol::Resp2)));
        // Compared with our cache, which is the second row.
        let started = servers::memcached(context)?;
        asked.extend(started.map(|started| (started.beside(1), Protocol::Memcached)));
    }
    Ok(asked)
}

fn title(durability: Durability, kind: Kind, pipeline: usize) -> String {
    let kind = kind.name().to_uppercase();
    let what = match kind.as_str() {
        "GET" => kind,
        _ => format!("{kind}, {}", durability.name()),
    };
    match pipeline {
        1 => what,
        pipeline => format!("{what}, pipeline {pipeline}"),
    }
}

fn rates(
    context: &Context<'_>,
    durability: Durability,
    kind: Kind,
    asked: &[Asked],
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    let pipelines: &[usize] =
        if context.scale() == Scale::Quick { &[1, 16] } else { &[1, 16, 100] };
    for &pipeline in pipelines {
        let entrants: Vec<Entrant<'_>> = asked
            .iter()
            .map(|(started, protocol)| {
                load::rate(context, started, |port| Load {
                    pipeline,
                    ..load::load(context, port, *protocol, &Mix::only(kind))
                })
            })
            .collect();
        let name = title(durability, kind, pipeline);
        let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE };
        contest(context, &title, context.scale().rounds(), entrants, items)?;
    }
    Ok(())
}

fn latencies(
    context: &Context<'_>,
    durability: Durability,
    kind: Kind,
    asked: &[Asked],
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    let Some(peak) = lowest_rate(items, &title(durability, kind, 1)) else { return Ok(()) };
    for part in LOADS {
        let latencies: Vec<RefCell<Latency>> = asked.iter().map(|_| RefCell::default()).collect();
        let entrants: Vec<Entrant<'_>> = asked
            .iter()
            .zip(&latencies)
            .map(|((started, protocol), latency)| {
                let load = |port| Load {
                    pace: Pace::Rate(peak * part),
                    ..load::load(context, port, *protocol, &Mix::only(kind))
                };
                load::latency(context, started, load, latency)
            })
            .collect();
        let rate = units::thousands((peak * part) as u64);
        let name = format!(
            "{}: latency at {rate}/s, {:.0} % of the slowest one's peak",
            title(durability, kind, 1),
            part * 100.0
        );
        let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE_LATENCY };
        let before = items.len();
        let ended = contest(context, &title, context.scale().rounds(), entrants, items);
        if items.len() > before {
            draw(items, Axis::Quantile, latencies.iter().map(|one| curve(&one.borrow())).collect());
        }
        ended?;
    }
    Ok(())
}

fn curve(latency: &Latency) -> Curve {
    // A quantile is known only if at least one request lies above it.
    let is_known = |quantile: &f64| latency.count() as f64 * (1.0 - quantile) >= 1.0;
    let known = QUANTILES.into_iter().filter(is_known);
    known.map(|quantile| (quantile, latency.quantile(quantile) as f64 / 1e9)).collect()
}

/// The lowest median of the item of this name.
fn lowest_rate(items: &[Item], name: &str) -> Option<f64> {
    let item = items.iter().rev().find(|item| item.scenario == NAME && item.name == name)?;
    let medians = item.rows.iter().filter(|row| row.problem.is_none());
    let medians = medians.filter_map(|row| Some(Summary::of(&row.samples)?.median));
    medians.min_by(f64::total_cmp)
}
