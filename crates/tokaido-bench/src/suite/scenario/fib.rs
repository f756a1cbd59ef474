//! fib(n) by recursion, in servers and in plain interpreters: the work, and the overhead.

use std::{
    cell::RefCell,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::super::{
    contest::{Entrant, Name, Rounds, Sample, Take, Title, contest},
    error::SuiteError,
    plan::{Context, Scale},
    program,
    request::{self, unexpected},
    run::{Item, Problem, Unit},
    scripts,
    server::Cores,
    servers::{self, Durability, Started},
};

const NAME: &str = "fib";

const NOTE: &str = "What the program that runs the function measures itself, by a look at its clock before and behind the call.";

const NOTE_AROUND: &str = "The time that a user waits, less the work: the start of a program, or a request to a server that runs already. \
                           Both are of the same runs as the work. \
                           The clock of a server counts all its threads, so what is left may be nothing.";

/// Runs the function once, and returns what was printed or answered.
type Ask = Box<dyn Fn() -> Result<String, SuiteError>>;

/// A participant: its name, how to ask it, and the server that must run meanwhile.
struct Way {
    name: Name,
    ask: Result<Ask, Problem>,
    _server: Option<Started>,
}

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let n: u64 = if context.scale() == Scale::Quick { 27 } else { 37 };
    let directory =
        TempDir::new().map_err(SuiteError::system("cannot make a directory for scripts"))?;
    scripts::write(directory.path())?;
    let mut ways = ours(context, &directory, n)?;
    ways.extend(in_servers(context, n)?);
    ways.extend(in_programs(context, &directory, n));
    let around: Vec<RefCell<Vec<f64>>> = ways.iter().map(|_| RefCell::default()).collect();
    let entrants: Vec<Entrant<'_>> =
        ways.iter().zip(&around).map(|(way, around)| entrant(way, n, around)).collect();
    let name = format!("fib({n}), the work");
    let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE };
    // Some of them take seconds.
    let rounds = Rounds::only(context.scale().pick(3, 3, 7));
    let before = items.len();
    let ended = contest(context, &title, rounds, entrants, items);
    if let Some(work) = items.get(before) {
        let mut item = Item { name: format!("fib({n}), around the work"), ..work.clone() };
        item.note = NOTE_AROUND.to_owned();
        for (row, around) in item.rows.iter_mut().zip(&around) {
            let samples = around.borrow().iter().copied().take(row.samples.len()).collect();
            row.samples = samples;
        }
        items.push(item);
    }
    ended
}

fn entrant<'a>(way: &'a Way, n: u64, around: &'a RefCell<Vec<f64>>) -> Entrant<'a> {
    let take = way.ask.as_ref().map_err(Clone::clone).map(|ask| {
        let take = move || {
            let began = Instant::now();
            let answer = ask()?;
            let (result, work) = result_and_seconds(&answer)?;
            if result != fib(n) {
                return Err(unexpected(&format!("fib({n})"), &answer));
            }
            let rest = began.elapsed().saturating_sub(Duration::from_secs_f64(work));
            around.borrow_mut().push(rest.as_secs_f64());
            Ok(Sample::of(work))
        };
        Box::new(take) as Take<'a>
    });
    Entrant { name: way.name.clone(), take }
}

/// The expected result.
fn fib(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Extracts two numbers from other text.
fn result_and_seconds(answer: &str) -> Result<(u64, f64), SuiteError> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || ".-e".contains(letter);
    let words = answer.split(|letter: char| !is_of_number(letter));
    let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [result, seconds] if seconds >= 0.0 => Ok((result as u64, seconds)),
        _ => Err(unexpected("fib", answer)),
    }
}

/// The indexes of our rows.
const HANDLER: usize = 1;
const RUN_LUA: usize = 2;
const RUN_RUBY: usize = 3;

fn ours(context: &Context<'_>, directory: &TempDir, n: u64) -> Result<Vec<Way>, SuiteError> {
    let procedure = servers::tokaido(context, Cores::All, 1, "a procedure in Lua", &[])?;
    let of_ngx = servers::tokaido(context, Cores::All, 1, "a handler of ngx", &[])?;
    let number = n.to_string();
    let program = |file: &str| {
        [context.plan.tokaido.clone(), "run".into(), directory.path().join(file)].to_vec()
    };
    Ok(vec![
        of_server(procedure, move |port| {
            request::redis(port, &["FCALL", "bench.timed_fib", "0", &number])
        }),
        of_server(of_ngx, move |port| request::http(port, &format!("/bench/ngx/fib_inside?n={n}"))),
        of_program(Name::ours("tokaido run, Lua"), program("fib.lua"), n),
        of_program(Name::ours("tokaido run, Ruby"), program("fib.rb"), n),
    ])
}

fn in_servers(context: &Context<'_>, n: u64) -> Result<Vec<Way>, SuiteError> {
    let mut ways = Vec::new();
    let name = Name::peer("nginx", "a Lua handler").beside(HANDLER);
    if let Some(nginx) = servers::nginx(context, Cores::All, 1, name)? {
        let path = format!("/bench/ngx/fib_inside?n={n}");
        ways.push(of_server(nginx, move |port| request::http(port, &path)));
    }
    let name = Name::peer("apache", "mod_lua").beside(HANDLER);
    if let Some(apache) = servers::apache(context, Cores::All, name)? {
        let path = format!("/bench/mod_lua/fib?n={n}");
        ways.push(of_server(apache, move |port| request::http(port, &path)));
    }
    if let Some(mut redis) = servers::redis(context, "redis", Durability::None)? {
        redis.name = Name::peer("redis", "EVAL");
        let number = n.to_string();
        ways.push(of_server(redis, move |port| {
            request::redis(port, &["EVAL", scripts::text("redis-fib.lua"), "0", &number])
        }));
    }
    Ok(ways)
}

fn of_server(started: Started, ask: impl Fn(u16) -> Result<String, SuiteError> + 'static) -> Way {
    let name = started.name.clone();
    let ask = started.port().map(|port| Box::new(move || ask(port)) as Ask);
    Way { name, ask, _server: Some(started) }
}

/// Runs a program, the first of `arguments`, with `n` after the others.
fn of_program(name: Name, arguments: Vec<PathBuf>, n: u64) -> Way {
    let ask = move || {
        let (program, arguments) = arguments.split_first().expect("there is a program");
        program::output(Command::new(program).args(arguments).arg(n.to_string()))
    };
    Way { name, ask: Ok(Box::new(ask) as Ask), _server: None }
}

fn in_programs(context: &Context<'_>, directory: &TempDir, n: u64) -> Vec<Way> {
    let programs = [
        ("luajit", "fib.lua", RUN_LUA),
        ("lua5.1", "fib.lua", RUN_LUA),
        ("tarantool", "fib.lua", RUN_LUA),
        ("python3", "fib.py", RUN_LUA),
        ("ruby", "fib.rb", RUN_RUBY),
        ("mruby", "fib.rb", RUN_RUBY),
    ];
    let way = |(peer, file, beside): (&str, &str, usize)| {
        let name = Name::peer(peer, "a program").beside(beside);
        Some(match context.find(peer)? {
            Err(problem) => Way { name, ask: Err(problem), _server: None },
            Ok(presence) => {
                let arguments = vec![presence.path.clone(), directory.path().join(file)];
                of_program(name, arguments, n)
            }
        })
    };
    programs.into_iter().filter_map(way).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_a_result_and_a_time() {
        assert_eq!(result_and_seconds("196418\t0.0015\n").unwrap(), (196_418, 0.0015));
        assert_eq!(result_and_seconds("\"196418 1.5e-05\"").unwrap(), (196_418, 1.5e-5));
        assert!(result_and_seconds("error: 7").is_err());
        assert_eq!((fib(27), fib(37)), (196_418, 24_157_817));
    }
}
