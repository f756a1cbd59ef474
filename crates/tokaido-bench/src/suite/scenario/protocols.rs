//! GET and SET by each protocol of one server: what a protocol costs.

use super::{
    super::{
        contest::{Entrant, Name, Title, contest},
        error::SuiteError,
        plan::Context,
        run::{Item, Unit},
        servers::{self, Durability},
    },
    load,
};
use crate::net::{Kind, Load, Mix, Protocol};

const NAME: &str = "protocols";

const NOTE: &str = "One server with one thread, by each of the protocols of its port: 50 connections, one thread of the generator, 100,000 \
                    keys of 16 bytes with 64 bytes each. memcached's protocols write to a cache, the others to a store that is not \
                    synced. What a request took of the server's processor time tells more where the generator was the limit.";

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let mut started = [servers::tokaido_of(context, Durability::None)?];
    let load = |port, protocol, kind| load::load(context, port, protocol, &Mix::only(kind));
    // The store and the cache.
    let filling = [Protocol::Resp2, Protocol::Memcached];
    load::prepare(&mut started, |_, port| {
        filling
            .into_iter()
            .try_for_each(|protocol| load::fill(context, &load(port, protocol, Kind::Set)))
    })?;
    let [server] = started;
    for kind in [Kind::Get, Kind::Set] {
        // A quick run has no time for both.
        let pipelines: &[usize] = context.scale().pick(&[16][..], &[1, 16], &[1, 16]);
        for &pipeline in pipelines {
            let entrants = Protocol::ALL.map(|protocol| {
                let of = |port| Load { pipeline, ..load(port, protocol, kind) };
                let name = Name::ours(protocol.name());
                Entrant { name, ..load::rate(context, &server, of) }
            });
            let name = format!("{kind}, pipeline {pipeline}");
            let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE };
            contest(context, &title, context.scale().rounds(), entrants.into(), items)?;
        }
    }
    Ok(())
}
