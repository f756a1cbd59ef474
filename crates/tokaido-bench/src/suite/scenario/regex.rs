//! The time of a search with `ngx.re.find`, measured properly and in misleading ways.

use super::{
    super::{
        contest::{Name, Title, contest},
        error::SuiteError,
        plan::Context,
        request,
        run::{Item, Unit},
        server::Cores,
        servers,
    },
    timed,
};

const NAME: &str = "regex";

const NOTE: &str = "ngx.re.find(\"hello, world.\", [[\\w+\\.]], …) in a loop that is warm, after a full collection of garbage, by the time \
                    of the processor that the handler reads itself. A search is what the loop takes, divided by its turns.";

const NOTE_NAIVE: &str = "The same search, once, between two looks at ngx.now, whose grain is a millisecond: what one gets by the obvious \
                          way is the grain of the clock or nothing, and not the time of a search.";

/// What is measured: its name, the handler's name for it, and the number of loop iterations at each scale.
struct Measured {
    name: &'static str,
    way: &'static str,
    turns: [u64; 3],
}

const MEASURED: [Measured; 3] = [
    Measured {
        name: "ngx.re.find with \"jo\"",
        way: "jo",
        turns: [1_000_000, 10_000_000, 10_000_000],
    },
    Measured {
        name: "ngx.re.find without options",
        way: "without_options",
        turns: [100_000, 1_000_000, 1_000_000],
    },
    Measured {
        name: "string.find with a pattern of Lua",
        way: "string_find",
        turns: [300_000, 3_000_000, 3_000_000],
    },
];

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let mut started = vec![servers::tokaido(context, Cores::All, 1, "a handler of ngx", &[])?];
    let name = Name::peer("nginx", "a Lua handler");
    started.extend(servers::nginx(context, Cores::All, 1, name)?);
    let rounds = context.scale().rounds();
    for Measured { name, way, turns: [quick, default, long] } in MEASURED {
        let turns = context.scale().pick(quick, default, long);
        let path = format!("/bench/ngx/re?way={way}&count={turns}");
        let ask = |port| request::http(port, &path);
        let entrants = started.iter().map(|one| timed::turn(one, turns as f64, ask)).collect();
        let title = Title { scenario: NAME, name, unit: Unit::Seconds, note: NOTE };
        contest(context, &title, rounds, entrants, items)?;
    }
    let ask = |port| request::http(port, "/bench/ngx/re?way=naive");
    let entrants = started.iter().map(|one| timed::turn(one, 1.0, ask)).collect();
    let name = "ngx.re.find with \"jo\", the naive way";
    let title = Title { scenario: NAME, name, unit: Unit::Seconds, note: NOTE_NAIVE };
    contest(context, &title, rounds, entrants, items)
}
