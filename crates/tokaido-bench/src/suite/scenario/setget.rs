//! Keys set and read through client libraries of several languages, and in process: whose time it is.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::super::{
    contest::{Entrant, Name, Rounds, Sample, Take, Title, contest},
    cores::OneCore,
    dictionary::Dictionary,
    error::SuiteError,
    library::FoundClient,
    peer::Peer,
    plan::{Context, Kinds},
    run::{Item, Problem, Split, Unit},
    scripts,
    servers::{self, Durability, Started},
    worker::{Program, Spent, Work, Worker},
};
use crate::net::{self, Protocol, Usage};

const NAME: &str = "setget";

const NOTE_WHOLE: &str = "What one waits for a program that is started, connects, sets 1,000 keys one by one, gets them, and ends. Its processor \
                          time is what `time` would say; a client in C and a store are called by the bench itself, so that only their start is \
                          that of a connection or a file. Client and server share one core, so that the figure is the time of both, and not how \
                          fast a sleeping core wakes.";

const NOTE_TURNS: &str = "One connection, one key after the other; client and server share one core. Keys of 16 bytes have 64 bytes each; what is read is compared. The clients run already, \
                          have collected their garbage, and time themselves. They do it in turns; the figure and the times are what all of it takes at the pace of a turn. Each set of our store is a transaction, and nothing of \
                          the stores is synced.";

/// The library whose files are compared with our store.
const LIBRARY: &str = "tokyocabinet";

/// Number of keys for a program that is started anew.
const FEW: u64 = 1_000;

/// Number of keys that the figures of running programs refer to.
const MANY: u64 = 100_000;

/// The clients, and the protocol of each.
const CLIENTS: [(&str, Protocol); 7] = [
    ("redis-py", Protocol::Resp2),
    ("redis-rb", Protocol::Resp2),
    ("hiredis", Protocol::Resp2),
    ("pymemcache", Protocol::Memcached),
    ("pylibmc", Protocol::Memcached),
    ("dalli", Protocol::Memcached),
    ("libmemcached", Protocol::Memcached),
];

/// Makes a worker that is ready to work.
type Make<'a> = Box<dyn Fn() -> Result<Box<dyn Worker>, String> + 'a>;

/// A participant that sets and gets, and the server that it uses, if any.
struct Way<'a> {
    name: Name,
    make: Result<Make<'a>, Problem>,
    port: Option<u16>,
}

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let _one = OneCore::keep().map_err(SuiteError::system("cannot keep to one core"))?;
    let directory = TempDir::new().map_err(SuiteError::system("cannot make a directory"))?;
    scripts::write(directory.path())?;
    let ours = [
        (servers::tokaido_of(context, Durability::None)?, Protocol::Resp2),
        (servers::tokaido_cache(context)?, Protocol::Memcached),
    ];
    let mut theirs = Vec::new();
    let redis = servers::redis(context, "redis", Durability::None)?;
    theirs.extend(redis.map(|started| (started, Protocol::Resp2)));
    theirs.extend(servers::memcached(context)?.map(|started| (started, Protocol::Memcached)));
    let clients = clients(context);
    let library = Peer::named(LIBRARY).and_then(|library| context.kinds(library));
    let mut ways = Vec::new();
    for (server, protocol) in &ours {
        ways.extend(of_server(&clients, server, *protocol, directory.path(), None));
    }
    let stores = ways.len();
    for kind in context.plan.dictionaries.iter().filter(|kind| !kind.is_constant()) {
        ways.push(in_process(*kind, Name::ours(kind.settings()), &directory.path().join("ours")));
    }
    for (server, protocol) in &theirs {
        let peers = of_server(&clients, server, *protocol, directory.path(), Some(&ways));
        ways.extend(peers);
    }
    ways.extend(of_library(&library, directory.path(), stores));
    whole(context, &ways, items)?;
    turns(context, &ways, items)
}

/// A client that takes part, or why it cannot.
enum Found {
    /// The interpreter, and the script of its language.
    Program {
        interpreter: PathBuf,
        script: &'static str,
    },
    Library(FoundClient),
}

type Clients = Vec<(&'static str, Protocol, Result<Found, Problem>)>;

/// The installed clients, and the missing ones.
fn clients(context: &Context<'_>) -> Clients {
    let found = CLIENTS.iter().filter_map(|&(name, protocol)| {
        let found = context.find(name)?.cloned().and_then(|presence| {
            let finder = Peer::named(name).and_then(Peer::client_finder);
            let script = match name {
                "redis-rb" | "dalli" => "setget.rb",
                _ => "setget.py",
            };
            match finder {
                None => Ok(Found::Program { interpreter: presence.path, script }),
                Some(find) => find().map(Found::Library).ok_or(Problem::Missing(None)),
            }
        });
        Some((name, protocol, found))
    });
    found.collect()
}

/// The clients of a server; if these are peers, each is compared with the same client of `ours`.
fn of_server<'a>(
    clients: &'a Clients,
    server: &'a Started,
    protocol: Protocol,
    scripts: &'a Path,
    ours: Option<&[Way<'_>]>,
) -> Vec<Way<'a>> {
    let of_kind = clients.iter().filter(|(_, of, _)| *of == protocol);
    let way = |(client, _, found): &'a (&'static str, Protocol, Result<Found, Problem>)| {
        let settings = (*client).to_owned();
        let name = match ours {
            None => Name::ours(&settings),
            Some(ours) => {
                let beside = ours.iter().position(|way| way.name.settings == settings);
                Name::peer(&server.name.subject, &settings).beside(beside.unwrap_or(0))
            }
        };
        let make = found.as_ref().map_err(Clone::clone).and_then(|found| {
            let port = server.port()?;
            Ok(Box::new(move || connect(found, client, scripts, port)) as Make<'a>)
        });
        Way { name, make, port: server.port().ok() }
    };
    of_kind.map(way).collect()
}

fn connect(
    found: &Found,
    client: &str,
    scripts: &Path,
    port: u16,
) -> Result<Box<dyn Worker>, String> {
    match found {
        Found::Library(found) => (found.connect)(port),
        Found::Program { interpreter, script } => {
            let program = Program::start(interpreter, &scripts.join(script), client, port)?;
            Ok(Box::new(program))
        }
    }
}

/// A kind of file, in this process.
fn in_process<'a>(kind: &'a dyn Dictionary, name: Name, path: &Path) -> Way<'a> {
    let path = path.to_owned();
    let make = move || {
        let opened = kind.keep_open(&path, MANY, None).ok_or("it cannot be kept open")??;
        Ok(Box::new(opened) as Box<dyn Worker>)
    };
    Way { name, make: Ok(Box::new(make) as Make<'a>), port: None }
}

fn of_library<'a>(
    kinds: &'a Option<Result<Kinds, Problem>>,
    directory: &Path,
    beside: usize,
) -> Vec<Way<'a>> {
    let name = |settings: &str| Name::peer(LIBRARY, settings).beside(beside);
    match kinds {
        None => Vec::new(),
        Some(Err(problem)) => {
            vec![Way { name: name("in process"), make: Err(problem.clone()), port: None }]
        }
        Some(Ok(kinds)) => {
            let way = |index: usize, kind: &'a dyn Dictionary| {
                let path = directory.join(format!("theirs{index}"));
                in_process(kind, name(kind.settings()), &path)
            };
            kinds.iter().enumerate().map(|(index, kind)| way(index, &**kind)).collect()
        }
    }
}

/// The processor time of the server at a port so far.
fn of_port(port: Option<u16>) -> Usage {
    port.map_or_else(Usage::default, |port| Usage::of(&net::of_port(port)))
}

/// A sample of the client's and the server's times, scaled by `times`.
fn sample(spent: &Spent, server: &Usage, times: f64) -> Sample {
    let seconds = |time: std::time::Duration| time.as_secs_f64() * times;
    let split = Split {
        client_user: seconds(spent.user),
        client_system: seconds(spent.system),
        server_user: seconds(server.user),
        server_system: seconds(server.system),
    };
    Sample { split: Some(split), ..Sample::of(seconds(spent.real)) }
}

/// Programs from start to exit.
fn whole(context: &Context<'_>, ways: &[Way<'_>], items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let entrants = ways.iter().map(|way| {
        let take = way.make.as_ref().map_err(Clone::clone).map(|make| {
            let take = move || {
                let before = of_port(way.port);
                let spent = Spent::with_programs(|| {
                    let mut worker = make()?;
                    Work::ALL.iter().try_for_each(|&work| worker.turn(work, FEW).map(drop))
                });
                let spent = spent.map_err(SuiteError::Library)?;
                Ok(sample(&spent, &of_port(way.port).since(&before), 1.0))
            };
            Box::new(take) as Take<'_>
        });
        Entrant { name: way.name.clone(), take }
    });
    let name = "a program that sets and gets 1,000 keys, from its start to its end";
    let title = Title { scenario: NAME, name, unit: Unit::Seconds, note: NOTE_WHOLE };
    let rounds = Rounds::only(context.scale().pick(2, 5, 9));
    contest(context, &title, rounds, entrants.collect(), items)
}

/// Workers that are running already.
fn turns(context: &Context<'_>, ways: &[Way<'_>], items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let len = context.scale().pick(500, MANY / 5, MANY);
    let rounds = Rounds::only(context.scale().pick(3, 5, 9));
    // Each is made when it is first needed, and lives until both kinds of work are measured.
    let workers: Vec<RefCell<Option<Box<dyn Worker>>>> =
        ways.iter().map(|_| RefCell::default()).collect();
    for work in Work::ALL {
        let entrants = ways.iter().zip(&workers).map(|(way, worker)| {
            let take = way.make.as_ref().map_err(Clone::clone).map(|make| {
                let take = move || {
                    let mut worker = worker.borrow_mut();
                    turn(&mut worker, make, way.port, work, len).map_err(SuiteError::Library)
                };
                Box::new(take) as Take<'_>
            });
            Entrant { name: way.name.clone(), take }
        });
        let name = format!("100,000 keys {}", if work == Work::Set { "set" } else { "got" });
        let title = Title { scenario: NAME, name: &name, unit: Unit::Seconds, note: NOTE_TURNS };
        contest(context, &title, rounds, entrants.collect(), items)?;
    }
    Ok(())
}

fn turn(
    worker: &mut Option<Box<dyn Worker>>,
    make: &Make<'_>,
    port: Option<u16>,
    work: Work,
    len: u64,
) -> Result<Sample, String> {
    let worker = match worker {
        Some(worker) => worker,
        None => {
            let made = worker.insert(make()?);
            // Afterwards all keys exist, and the code is warm.
            made.turn(Work::Set, len)?;
            made
        }
    };
    let before = of_port(port);
    let spent = worker.turn(work, len)?;
    Ok(sample(&spent, &of_port(port).since(&before), MANY as f64 / len as f64))
}
