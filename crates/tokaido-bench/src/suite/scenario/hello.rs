//! Hello world over HTTP, with 100 connections.

use std::{slice, time::Duration};

use super::{
    super::{
        contest::{Entrant, Name, Title, contest},
        error::SuiteError,
        plan::{Context, Scale},
        request,
        run::{Item, Unit},
        server::Cores,
        servers::{self, Started},
    },
    load,
};
use crate::{
    machine::Machine,
    net::{Kind, Load, Mix, Protocol, protocol},
};

const NAME: &str = "hello";

const CONNECTIONS: usize = 100;

/// Maximum number of requests of a sample, as in the articles.
const REQUESTS: u64 = 100_000;

const NOTE: &str = "100 connections, one thread of the generator, which asks for a text of 13 bytes. On one core, every server is bound \
                    to the last core of the machine; on all of them it has as many workers as there are cores, and shares them with the \
                    generator.";

/// The path for which nginx creates a virtual machine per request.
const ANEW: &str = "/bench/ngx/hello_anew";

/// The minimum duration of a sample if the server creates a virtual machine per request: such a
/// request takes milliseconds, and 100 of them are in flight.
const TIME_MIN: Duration = Duration::from_millis(600);

/// A server, and the path to request.
pub(super) type Asked = (Started, &'static str);

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let cores = Machine::look().cores;
    for (on, workers) in [(Cores::One, 1), (Cores::All, cores)] {
        let is_same = on == Cores::All && cores == 1;
        if is_same || (on == Cores::All && context.scale() == Scale::Quick) {
            continue;
        }
        let mut asked = start(context, on, workers)?;
        answer(&mut asked)?;
        for reconnect in [false, true] {
            let entrants: Vec<Entrant<'_>> =
                asked.iter().map(|asked| entrant(context, asked, reconnect)).collect();
            let connections =
                if reconnect { "a connection for each request" } else { "connections kept" };
            let on = match on {
                Cores::One => "one core".to_owned(),
                Cores::All => format!("all {workers} cores"),
            };
            let name = format!("hello world, {connections}, {on}");
            let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE };
            contest(context, &title, context.scale().rounds(), entrants, items)?;
        }
    }
    Ok(())
}

/// The indexes of our handlers of these dialects.
const NGX: usize = 1;
const MOD_LUA: usize = 2;

fn start(context: &Context<'_>, cores: Cores, workers: usize) -> Result<Vec<Asked>, SuiteError> {
    let mut asked: Vec<Asked> = Vec::new();
    let ours = [
        ("a Lua route, VM kept", "/bench/hello"),
        ("ngx.say, VM kept", "/bench/ngx/hello"),
        ("handle(r) of mod_lua, VM kept", "/bench/mod_lua/hello"),
    ];
    for (settings, path) in ours {
        asked.push((servers::tokaido(context, cores, workers, settings, &[])?, path));
    }
    let of_nginx = [
        ("ngx.say, VM kept", "/bench/ngx/hello", NGX),
        ("ngx.say, a VM for each request", ANEW, NGX),
        ("static", "/bench/static", 0),
    ];
    for (settings, path, beside) in of_nginx {
        let name = Name::peer("nginx", settings).beside(beside);
        let started = servers::nginx(context, cores, workers, name)?;
        asked.extend(started.map(|started| (started, path)));
    }
    let of_apache = [
        ("mod_lua, a VM for each request", "/bench/mod_lua/hello"),
        ("mod_lua, VM kept by LuaScope", "/bench/mod_lua_kept/hello"),
    ];
    for (settings, path) in of_apache {
        let name = Name::peer("apache", settings).beside(MOD_LUA);
        let started = servers::apache(context, cores, name)?;
        asked.extend(started.map(|started| (started, path)));
    }
    Ok(asked)
}

/// Waits until each one answers: a server may listen some time before it does.
pub(super) fn answer(asked: &mut [Asked]) -> Result<(), SuiteError> {
    asked.iter_mut().try_for_each(|(started, path)| {
        load::prepare(slice::from_mut(started), |_, port| request::http(port, path).map(drop))
    })
}

/// With 100 connections, which are kept, or serve one request each.
pub(super) fn entrant<'a>(
    context: &'a Context<'_>,
    (started, path): &Asked,
    reconnect: bool,
) -> Entrant<'a> {
    load::rate(context, started, |port| {
        let load = load::load(context, port, Protocol::Http, &Mix::only(Kind::Get));
        let options = protocol::Options { path: (*path).to_owned(), ..load.options };
        let requests = Some(REQUESTS);
        let time = if *path == ANEW { load.time.max(TIME_MIN) } else { load.time };
        Load { connections: CONNECTIONS, reconnect, requests, options, time, ..load }
    })
}
