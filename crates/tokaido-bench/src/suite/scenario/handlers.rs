//! Handlers and procedures in other systems' dialects: shared dictionaries, Ruby, echoed bodies.

use super::{
    super::{
        contest::{Name, Title, contest},
        error::SuiteError,
        plan::Context,
        request,
        run::{Item, Unit},
        server::Cores,
        servers::{self, Durability, Started},
    },
    hello, load, timed,
};
use crate::net::{Kind, Load, Mix, Protocol, Values, protocol};

const NAME: &str = "handlers";

const NOTE_SHARED: &str = "A loop over 1,000 keys with numbers, which is warm, in a handler of ngx, by the time of the processor that it reads itself. The \
                           figure is that of a turn. Ours is a cache whose records every protocol sees.";

const NOTE_GET: &str = "A loop that gets one record of 64 bytes in one call, timed by itself. The figure is that of a turn.";

const NOTE_HELLO: &str = "100 connections that are kept, one thread of the generator, which asks for a text of 13 bytes; every server has one worker.";

const NOTE_ECHO: &str = "A body is read and sent back by ngx.print; connections are kept, and every server has one worker.";

/// Iterations of a loop over a shared dictionary.
const SHARED_TURNS: f64 = 1e6;

/// The same as the Ruby and Lua procedures.
const EVAL_GETS: &str = "redis.call('set', 'a', string.rep('x', 64)) \
                         local function now() local time = redis.call('TIME') return time[1] + time[2] / 1000000 end \
                         local start = now() for _ = 1, tonumber(ARGV[1]) do redis.call('get', 'a') end \
                         return string.format('%.6f', now() - start)";

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    shared(context, items)?;
    gets(context, items)?;
    hello(context, items)?;
    echo(context, items)
}

fn ours(context: &Context<'_>, settings: &str) -> Result<Started, SuiteError> {
    servers::tokaido(context, Cores::All, 1, settings, &["--sync", "os"])
}

/// Both answer with ngx handlers.
fn ours_and_nginx(context: &Context<'_>, settings: &str) -> Result<Vec<Started>, SuiteError> {
    let mut started = vec![ours(context, settings)?];
    started.extend(servers::nginx(context, Cores::All, 1, Name::peer("nginx", settings))?);
    load::prepare(&mut started, |_, port| request::http(port, "/bench/ngx/hello").map(drop))?;
    Ok(started)
}

fn shared(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let started = ours_and_nginx(context, "a Lua handler")?;
    for operation in ["get", "set", "incr"] {
        let ask = |port| request::http(port, &format!("/bench/ngx/dict?{operation}"));
        let entrants = started.iter().map(|one| timed::turn(one, SHARED_TURNS, ask)).collect();
        let name = format!("{operation} of ngx.shared");
        let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE_SHARED };
        contest(context, &title, context.scale().rounds(), entrants, items)?;
    }
    Ok(())
}

fn gets(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let turns: u64 = context.scale().pick(100_000, 1_000_000, 10_000_000);
    let count = turns.to_string();
    let [lua, ruby] = ["a procedure in Lua", "a procedure in Ruby"].map(|name| ours(context, name));
    let mut started = vec![(lua?, "bench.timed_gets"), (ruby?, "bench_ruby.timed_gets")];
    if let Some(mut redis) = servers::redis(context, "redis", Durability::None)? {
        redis.name = Name::peer("redis", "EVAL");
        started.push((redis, ""));
    }
    let entrants = started.iter().map(|(one, procedure)| {
        let count = &count;
        timed::turn(one, turns as f64, move |port| match *procedure {
            "" => request::redis(port, &["EVAL", EVAL_GETS, "0", count]),
            procedure => request::redis(port, &["FCALL", procedure, "0", count]),
        })
    });
    let title =
        Title { scenario: NAME, name: "get in a call", unit: Unit::Seconds, note: NOTE_GET };
    contest(context, &title, context.scale().rounds(), entrants.collect(), items)
}

fn hello(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let mut asked: Vec<hello::Asked> = vec![
        (ours(context, "a Ruby route")?, "/bench/ruby/hello"),
        (ours(context, "Apache.rputs of mod_mruby")?, "/bench/mod_mruby/hello"),
        (ours(context, "a Lua route")?, "/bench/hello"),
    ];
    let name = Name::peer("nginx", "ngx.say");
    let nginx = servers::nginx(context, Cores::All, 1, name)?;
    asked.extend(nginx.map(|started| (started, "/bench/ngx/hello")));
    hello::answer(&mut asked)?;
    let entrants = asked.iter().map(|asked| hello::entrant(context, asked, false));
    let name = "hello world from Ruby";
    let title = Title { scenario: NAME, name, unit: Unit::PerSecond, note: NOTE_HELLO };
    contest(context, &title, context.scale().rounds(), entrants.collect(), items)
}

fn echo(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let started = ours_and_nginx(context, "a Lua handler")?;
    for (size, len, connections) in [("1 KiB", 1 << 10, 100), ("1 MiB", 1 << 20, 10)] {
        let entrants = started.iter().map(|one| {
            load::rate(context, one, |port| {
                let load = load::load(context, port, Protocol::Http, &Mix::only(Kind::Set));
                let path = "/bench/ngx/echo".to_owned();
                let options = protocol::Options { path, ..load.options };
                Load { connections, values: Values::Fixed(len), options, ..load }
            })
        });
        let name = format!("a body of {size}, echoed");
        let title = Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE_ECHO };
        contest(context, &title, context.scale().rounds(), entrants.collect(), items)?;
    }
    Ok(())
}
