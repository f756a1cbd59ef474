//! A list of companies in key-value files: written, read, opened for one record; and the same over the network.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use tempfile::TempDir;

use super::{
    super::{
        companies::{self, Rows},
        contest::{Entrant, Name, Rounds, Sample, Take, Title, contest},
        dictionary::Dictionary,
        error::SuiteError,
        peer::{PEERS, Peer},
        plan::{Context, Kinds, Scale},
        room,
        run::{Item, Problem, Unit},
        servers::{self, Durability, Started},
    },
    load,
};
use crate::net::{Keys, Kind as Operation, Load, Mix, Protocol, Values};

const NAME: &str = "dictionary";

const NOTE: &str = "In this process, by each library's own interface, tuned as its manual recommends. Nothing is synced. What is read is \
                    compared with what was written.";

const NOTE_SIZE: &str = "What the files take on the disk, in whole blocks.";

const NOTE_NETWORK: &str =
    "One connection to a server, which asks for all keys of the list again and again.";

/// Distance between the rows that are looked up.
const STEP: usize = 7_919;

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let rows = match &context.plan.list {
        Some(path) => companies::read(path)?,
        None => companies::look_alike(),
    };
    let directory = TempDir::new().map_err(SuiteError::system("cannot make a directory"))?;
    in_process(context, &rows, directory.path(), items)?;
    over_the_network(context, &rows, directory.path(), items)
}

/// A kind of file, and the path of its file.
struct Subject<'a> {
    name: Name,
    kind: Result<&'a dyn Dictionary, Problem>,
    directory: PathBuf,
}

impl Subject<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("list")
    }

    /// A sample: the time of one turn.
    fn entrant<'b>(
        &'b self,
        turns: usize,
        turn: impl Fn(&dyn Dictionary, &Path, usize) -> Result<(), String> + 'b,
    ) -> Entrant<'b> {
        let take = self.kind.clone().map(|kind| {
            let path = self.path();
            let take = move || {
                let began = Instant::now();
                for number in 0..turns {
                    turn(kind, &path, number).map_err(SuiteError::Library)?;
                }
                Ok(Sample::of(began.elapsed().as_secs_f64() / turns as f64))
            };
            Box::new(take) as Take<'b>
        });
        Entrant { name: self.name.clone(), take }
    }
}

fn in_process(
    context: &Context<'_>,
    rows: &Rows,
    directory: &Path,
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    let libraries = libraries(context);
    let subjects = subjects(context, &libraries, directory)?;
    let count = rows.len();
    let passes = context.scale().pick(10, 100, 100);
    let rounds = context.scale().rounds();
    let mut run = |name: &str, entrants| {
        let title = Title { scenario: NAME, name, unit: Unit::Seconds, note: NOTE };
        contest(context, &title, rounds, entrants, items)
    };
    let write = |subject| Subject::entrant(subject, passes, |kind, path, _| kind.write(path, rows));
    run(&format!("write {count} records, {passes} times"), subjects.iter().map(write).collect())?;
    let read = |subject| Subject::entrant(subject, passes, |kind, path, _| read(kind, path, rows));
    run(&format!("read {count} records, {passes} times"), subjects.iter().map(read).collect())?;
    let openings: &[usize] = if context.scale() == Scale::Quick { &[100] } else { &[100, 10_000] };
    for &times in openings {
        let get = |subject| {
            Subject::entrant(subject, times, |kind, path, number| get(kind, path, rows, number))
        };
        run(&format!("open and get one, {times} times"), subjects.iter().map(get).collect())?;
    }
    let sizes = subjects.iter().map(|subject| {
        let failed = || SuiteError::system("cannot look at the files");
        let size = move || Ok(Sample::of(room::used(&subject.directory).map_err(failed())? as f64));
        let take = subject.kind.clone().map(|_| Box::new(size) as Take<'_>);
        Entrant { name: subject.name.clone(), take }
    });
    let title =
        Title { scenario: NAME, name: "size of the file", unit: Unit::Bytes, note: NOTE_SIZE };
    contest(context, &title, Rounds::only(1), sizes.collect(), items)
}

/// The kinds of files of each library that takes part; none for a missing one.
type Libraries = Vec<(&'static str, Result<Kinds, Problem>)>;

fn libraries(context: &Context<'_>) -> Libraries {
    let kinds = |peer: &Peer| {
        let mut kinds = context.kinds(peer)?;
        if let Ok(kinds) = &mut kinds {
            kinds.retain(|kind| kind.is_opened_often());
        }
        Some((peer.name, kinds))
    };
    PEERS.iter().filter_map(kinds).collect()
}

fn subjects<'a>(
    context: &Context<'_>,
    libraries: &'a Libraries,
    directory: &Path,
) -> Result<Vec<Subject<'a>>, SuiteError> {
    let ours = context.plan.dictionaries;
    let beside = |kind: &dyn Dictionary| {
        ours.iter().position(|own| own.is_constant() == kind.is_constant()).unwrap_or(0)
    };
    let mut subjects = Vec::new();
    let mut add = |name: Name, kind| {
        let directory = directory.join(subjects.len().to_string());
        fs::create_dir(&directory).map_err(SuiteError::system("cannot make a directory"))?;
        subjects.push(Subject { name, kind, directory });
        Ok::<(), SuiteError>(())
    };
    for kind in ours {
        add(Name::ours(kind.settings()), Ok(*kind))?;
    }
    for (name, kinds) in libraries {
        match kinds {
            Err(problem) => add(Name::peer(name, "").beside(1), Err(problem.clone()))?,
            Ok(kinds) => {
                for kind in kinds {
                    let name = Name::peer(name, kind.settings()).beside(beside(&**kind));
                    add(name, Ok(&**kind))?;
                }
            }
        }
    }
    Ok(subjects)
}

/// A digest of all lengths and one byte of each value.
fn digest(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + u64::from(value.first().copied().unwrap_or(0))
}

fn read(kind: &dyn Dictionary, path: &Path, rows: &Rows) -> Result<(), String> {
    let (mut count, mut sum) = (0, 0);
    kind.read_all(path, &mut |key, value| {
        count += 1;
        sum += digest(key, value);
    })?;
    let expected = rows.iter().map(|(key, value)| digest(key, value)).sum::<u64>();
    match (count, sum) == (rows.len(), expected) {
        true => Ok(()),
        false => Err(format!("it read {count} records that are not those that were written")),
    }
}

fn get(kind: &dyn Dictionary, path: &Path, rows: &Rows, number: usize) -> Result<(), String> {
    let (key, expected) = &rows[number * STEP % rows.len()];
    let mut is_same = false;
    kind.get(path, key, &mut |value| is_same = value == expected)?;
    if is_same { Ok(()) } else { Err("it read another value than was written".to_owned()) }
}

fn over_the_network(
    context: &Context<'_>,
    rows: &Rows,
    directory: &Path,
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    let (keys, values) = (directory.join("keys"), directory.join("values"));
    write_lines(&keys, rows.iter().map(|(key, _)| key))?;
    write_lines(&values, rows.iter().map(|(_, value)| value))?;
    let mut asked: Vec<(Started, Protocol)> = vec![
        (servers::tokaido_of(context, Durability::None)?, Protocol::Resp2),
        (servers::tokaido_cache(context)?, Protocol::Memcached),
    ];
    let redis = servers::redis(context, "redis", Durability::None)?;
    asked.extend(redis.map(|started| (started, Protocol::Resp2)));
    // Compared with our cache, which is the second row.
    let memcached = servers::memcached(context)?;
    asked.extend(memcached.map(|started| (started.beside(1), Protocol::Memcached)));
    for operation in [Operation::Set, Operation::Get] {
        for pipeline in [1, 100] {
            let entrant = |(started, protocol): &(Started, Protocol)| {
                load::rate(context, started, |port| Load {
                    connections: 1,
                    pipeline,
                    keys: Keys::File(keys.clone()),
                    values: Values::File(values.clone()),
                    ..load::load(context, port, *protocol, &Mix::only(operation))
                })
            };
            let entrants = asked.iter().map(entrant).collect();
            let operation = operation.name();
            let name = format!("{operation} over the network, {}", of_pipeline(pipeline));
            let title =
                Title { scenario: NAME, name: &name, unit: Unit::PerSecond, note: NOTE_NETWORK };
            contest(context, &title, context.scale().rounds(), entrants, items)?;
        }
    }
    Ok(())
}

fn of_pipeline(pipeline: usize) -> String {
    match pipeline {
        1 => "one by one".to_owned(),
        pipeline => format!("a pipeline of {pipeline}"),
    }
}

fn write_lines<'a>(
    path: &Path,
    lines: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<(), SuiteError> {
    let text: Vec<u8> = lines.flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    fs::write(path, text).map_err(SuiteError::system("cannot write the list"))
}
