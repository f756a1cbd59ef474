//! Loop patterns over a dictionary, in the Lua of each server: how fast a procedure accesses records.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use tempfile::TempDir;

use super::super::{
    contest::{Entrant, Name, Rounds, Sample, Take, Title, contest},
    error::SuiteError,
    library::kyoto_patterns::Patterns,
    plan::Context,
    program,
    request::{self, last_number, unexpected},
    run::{Item, Problem, Unit},
    scripts,
    server::Cores,
    servers::{self, Durability, Started},
};

const NAME: &str = "patterns";

const NOTE: &str = "One call that does all of it: of a server the time of its request, of a program what it measures itself once the same \
                    loops have run with fewer keys. Nothing is synced. All have to come to the same sum. Ours is one transaction, and so is \
                    Tarantool's; Redis and nginx keep what a script has done that fails. Redis and nginx have no order, so both of their \
                    scans are alike, and nginx has no cursor: it looks for any one key in its place.";

/// A pattern, and what it does.
const PATTERNS: [(&str, &str); 6] = [
    ("order", "order: set, get and remove all keys, in order"),
    ("random", "random: set, get and remove keys in no order"),
    ("etc", "etc: order, and add, append and scan both ways"),
    ("both", "both: etc, in no order"),
    ("wicked1", "wicked x1: any of eleven operations on any key"),
    ("wicked4", "wicked x4: the same, four times as many"),
];

/// Runs a pattern with this many keys in an empty dictionary; returns its sum and its seconds.
type Run<'a> = Box<dyn Fn(&str, u64) -> Result<(f64, f64), SuiteError> + 'a>;

/// A participant, and the server that must run meanwhile.
struct Way<'a> {
    name: Name,
    run: Result<Run<'a>, Problem>,
    _server: Option<Started>,
}

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let directory = TempDir::new().map_err(SuiteError::system("cannot make a directory"))?;
    let keys = context.scale().pick(5_000, 100_000, 100_000);
    let table = write(directory.path(), "patterns_table.lua", &scripts::patterns_program("table"))?;
    let mut ways = ours(context, &table)?;
    ways.extend(in_servers(context)?);
    ways.extend(tarantool(context, directory.path())?);
    ways.extend(tables(context, &table));
    ways.extend(kyoto_cabinet(context, directory.path())?);
    for (pattern, what) in PATTERNS {
        // The sum that the first one computed.
        let agreed = RefCell::new(None);
        let entrants = ways.iter().map(|way| entrant(way, pattern, keys, &agreed)).collect();
        let name = format!("{what}; {keys} keys");
        let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE };
        contest(context, &title, Rounds::warm(context.scale().pick(3, 5, 9)), entrants, items)?;
    }
    Ok(())
}

fn entrant<'a>(
    way: &'a Way<'_>,
    pattern: &'a str,
    keys: u64,
    agreed: &'a RefCell<Option<f64>>,
) -> Entrant<'a> {
    let take = way.run.as_ref().map_err(Clone::clone).map(|run| {
        let take = move || {
            let (sum, seconds) = run(pattern, keys)?;
            let agreed = *agreed.borrow_mut().get_or_insert(sum);
            match sum == agreed {
                true => Ok(Sample::of(seconds)),
                false => Err(unexpected(pattern, &format!("{sum}, where others have {agreed}"))),
            }
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: way.name.clone(), take }
}

/// Empties the dictionary, and then times the pattern.
fn timed(
    clear: impl Fn() -> Result<String, SuiteError>,
    run: impl Fn() -> Result<String, SuiteError>,
) -> Result<(f64, f64), SuiteError> {
    clear()?;
    let began = Instant::now();
    let answer = run()?;
    Ok((last_number("a pattern", &answer)?, began.elapsed().as_secs_f64()))
}

/// The indexes of our rows.
const EVAL: usize = 1;
const KYOTO_TYCOON: usize = 2;
const TABLE: usize = 3;

/// Settings of those that have only a table in place of a dictionary.
const OF_TABLE: &str = "a table of Lua, no store";

fn ours<'a>(context: &'a Context<'_>, table: &Path) -> Result<Vec<Way<'a>>, SuiteError> {
    let start = |settings| servers::tokaido(context, Cores::All, 1, settings, &["--sync", "os"]);
    let table = table.to_owned();
    let run = of_program(move || {
        let mut command = Command::new(&context.plan.tokaido);
        command.arg("run").arg(&table);
        command
    });
    Ok(vec![
        of_server(start("a procedure")?, |port, pattern, keys| {
            let call = ["FCALL", "patterns.run", "0", pattern, &keys.to_string()];
            timed(|| flush(port), || request::redis(port, &call))
        }),
        of_server(start("EVAL")?, eval),
        of_server(start("the dialect of Kyoto Tycoon")?, |port, pattern, keys| {
            kyoto_tycoon(&format!("127.0.0.1:{port}"), pattern, keys)
        }),
        Way { name: Name::ours(OF_TABLE), run: Ok(run), _server: None },
    ])
}

fn flush(port: u16) -> Result<String, SuiteError> {
    request::redis(port, &["FLUSHALL"])
}

fn eval(port: u16, pattern: &str, keys: u64) -> Result<(f64, f64), SuiteError> {
    let call = ["EVAL", &scripts::patterns("redis"), "0", pattern, &keys.to_string()];
    timed(|| flush(port), || request::redis(port, &call))
}

fn in_servers<'a>(context: &Context<'_>) -> Result<Vec<Way<'a>>, SuiteError> {
    let mut ways = Vec::new();
    if let Some(redis) = servers::redis(context, "redis", Durability::None)? {
        let name = Name::peer("redis", "EVAL").beside(EVAL);
        ways.push(of_server(Started { name, ..redis }, eval));
    }
    let name = Name::peer("nginx", "a shared dictionary");
    if let Some(nginx) = servers::nginx(context, Cores::All, 1, name)? {
        ways.push(of_server(nginx, |port, pattern, keys| {
            let ask = |what: &str| request::http(port, &format!("/bench/ngx/patterns?{what}"));
            timed(|| ask("clear"), || ask(&format!("{pattern},{keys}")))
        }));
    }
    if let Some(address) = &context.plan.kyoto_tycoon {
        let name = Name::peer("kyototycoon", address).beside(KYOTO_TYCOON);
        let address = address.clone();
        let run: Run<'_> = Box::new(move |pattern, keys| kyoto_tycoon(&address, pattern, keys));
        ways.push(Way { name, run: Ok(run), _server: None });
    }
    Ok(ways)
}

/// Calls a server that speaks the Kyoto Tycoon protocol and runs our script.
fn kyoto_tycoon(address: &str, pattern: &str, keys: u64) -> Result<(f64, f64), SuiteError> {
    let call = format!("name\tpatterns\n_pattern\t{pattern}\n_keys\t{keys}\n");
    timed(
        || request::post(address, "/rpc/clear", ""),
        || request::post(address, "/rpc/play_script", &call),
    )
}

fn of_server<'a>(
    started: Started,
    run: impl Fn(u16, &str, u64) -> Result<(f64, f64), SuiteError> + 'a,
) -> Way<'a> {
    let name = started.name.clone();
    let run = started
        .port()
        .map(|port| Box::new(move |pattern: &str, keys| run(port, pattern, keys)) as Run<'a>);
    Way { name, run, _server: Some(started) }
}

/// A program that prints its sum and its seconds.
fn of_program<'a>(command: impl Fn() -> Command + 'a) -> Run<'a> {
    Box::new(move |pattern, keys| {
        let answer = program::output(command().args([pattern, &keys.to_string()]))?;
        let mut numbers = answer.split_whitespace().filter_map(|word| word.parse().ok());
        numbers.next().zip(numbers.next()).ok_or_else(|| unexpected(pattern, &answer))
    })
}

fn tarantool<'a>(
    context: &'a Context<'_>,
    directory: &'a Path,
) -> Result<Option<Way<'a>>, SuiteError> {
    let name = Name::peer("tarantool", "memtx, a tree, no log");
    let presence = match context.find("tarantool") {
        None => return Ok(None),
        Some(Err(problem)) => return Ok(Some(Way { name, run: Err(problem), _server: None })),
        Some(Ok(presence)) => presence,
    };
    let script =
        write(directory, "patterns_tarantool.lua", &scripts::patterns_program("tarantool"))?;
    let run = of_program(move || {
        let mut command = Command::new(&presence.path);
        // It leaves a file in its working directory.
        command.arg(&script).current_dir(directory);
        command
    });
    Ok(Some(Way { name, run: Ok(run), _server: None }))
}

fn tables<'a>(context: &'a Context<'_>, table: &Path) -> Vec<Way<'a>> {
    let mut ways = Vec::new();
    for peer in ["luajit", "lua5.1"] {
        let name = Name::peer(peer, OF_TABLE).beside(TABLE);
        let run = match context.find(peer) {
            None => continue,
            Some(Err(problem)) => Err(problem),
            Some(Ok(presence)) => {
                let table = table.to_owned();
                Ok(of_program(move || {
                    let mut command = Command::new(&presence.path);
                    command.arg(&table);
                    command
                }))
            }
        };
        ways.push(Way { name, run, _server: None });
    }
    ways
}

fn write(directory: &Path, name: &str, text: &str) -> Result<PathBuf, SuiteError> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(SuiteError::system("cannot write a script"))?;
    Ok(path)
}

fn kyoto_cabinet<'a>(
    context: &Context<'_>,
    directory: &Path,
) -> Result<Option<Way<'a>>, SuiteError> {
    let name = Name::peer("kyotocabinet", "a tree, by its C interface");
    let run: Result<Run<'a>, Problem> = match context.find("kyotocabinet") {
        None => return Ok(None),
        Some(Err(problem)) => Err(problem),
        Some(Ok(_)) => {
            let opened = Patterns::open(&directory.join("patterns.kct"));
            let opened = RefCell::new(opened.map_err(SuiteError::Library)?);
            Ok(Box::new(move |pattern, keys| {
                let mut patterns = opened.borrow_mut();
                patterns.clear().map_err(SuiteError::Library)?;
                let began = Instant::now();
                let sum = patterns.run(pattern, keys).map_err(SuiteError::Library)?;
                Ok((sum as f64, began.elapsed().as_secs_f64()))
            }))
        }
    };
    Ok(Some(Way { name, run, _server: None }))
}
