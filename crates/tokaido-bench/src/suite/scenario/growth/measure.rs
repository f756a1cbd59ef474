//! Fills the stores step by step, measures at each step, and draws curves over the number of records.

use std::{fs, path::Path, time::Duration};

use tempfile::TempDir;

use super::subject::{File, Growing, Store, Subject};
use crate::{
    net::Latency,
    statistics::Summary,
    suite::{
        contest::{Entrant, Name, Rounds, Sample, Title, contest, draw},
        dictionary::Dictionary,
        error::SuiteError,
        peer::Peer,
        plan::{Context, Kinds, Scale},
        room,
        run::{Axis, Curve, Item, Problem, Row, Unit},
        servers::{self, Durability},
    },
    units,
};

const NAME: &str = "growth";

/// The libraries whose files are compared with our store, and their settings.
const LIBRARIES: [(&str, &str); 2] = [
    ("lmdb", "in process, WRITEMAP, a sync each second"),
    ("rocksdb", "in process, its defaults, a sync each second"),
];

const NOTE: &str = "Records of 16 and 64 bytes, which were put in an order that is none. All sync each second what is set now. Servers have 50 connections, a \
                    pipeline of 16 and random keys; files are used in process, where each set is a transaction. Values are \
                    one letter many times over: RocksDB's defaults compress them.";

const NOTE_SCAN: &str = "100,000 records, or all if there are fewer. Servers are asked by SCAN, COUNT 1000, for keys alone; files give keys with \
                         their values, in order.";

const NOTE_OPEN: &str = "A server has ended by itself, and is started again until it answers a GET; Redis reads all of its data. A file is closed, and \
                         opened until a record is there. The files are in the page cache.";

const NOTE_MEMORY: &str = "What the process holds for itself, behind the loads. The page cache is not counted: the system takes it back when it needs to.";

const NOTE_DISK: &str = "All files, in whole blocks, behind the loads; RocksDB's are compressed.";

const NOTE_SUSTAINED: &str = "Sets of random keys without a pause, in a closed loop, for so long that there are checkpoints, and merges. A server's times are from the \
                              sending of a set to its answer. Redis is told at the beginning to write its log anew.";

const NOTE_WRITTEN: &str = "Bytes that the disk wrote during these sets, and behind them until nothing was kept back, divided by those of the keys and values that \
                            were set. Merges that were still to come are not in it.";

/// Disk space that a record may take in each store, including temporary files, in bytes.
const DISK_PER_RECORD: u64 = 300;

/// Bytes of memory that a record may take in an in-memory server, including copies made while it writes.
const MEMORY_PER_RECORD: u64 = 300;

/// From this many records on, stores are opened only once.
const OPENED_ONCE: u64 = 10_000_000;

pub(in super::super) fn measure(
    context: &Context<'_>,
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    let sizes: &[u64] = match context.scale() {
        Scale::Quick => &[10_000, 100_000],
        Scale::Default => &[100_000, 1_000_000, 10_000_000],
        Scale::Long => &[100_000, 1_000_000, 10_000_000, 100_000_000],
    };
    let count_max = sizes[sizes.len() - 1];
    let directory = TempDir::new().map_err(SuiteError::system("cannot make a directory"))?;
    let libraries: Vec<_> = LIBRARIES
        .iter()
        .filter_map(|(name, settings)| Some((*name, *settings, context.kinds(Peer::named(name)?)?)))
        .collect();
    let subjects = subjects(context, &libraries, directory.path(), count_max)?;
    let mut growth = Growth::default();
    let ended = sizes.iter().try_for_each(|&count| {
        let (subjects, directory) = (&subjects[..], directory.path());
        let mut step = Step { context, subjects, directory, count, items: Vec::new() };
        let ended = step.fill().and_then(|()| step.measure());
        growth.add(count, step.items, ended.is_ok());
        ended
    });
    growth.draw(items);
    ended
}

/// MiB of writes between two checkpoints: a quick run has no time for the default.
fn memtable_mib(scale: Scale) -> u64 {
    scale.pick(4, 64, 64)
}

fn subjects<'a>(
    context: &'a Context<'_>,
    libraries: &'a [(&str, &str, Result<Kinds, Problem>)],
    directory: &Path,
    count_max: u64,
) -> Result<Vec<Subject<'a>>, SuiteError> {
    let file = |kind: &'a dyn Dictionary, name: Name| {
        let directory = directory.join(&name.subject);
        fs::create_dir(&directory).map_err(SuiteError::system("cannot make a directory"))?;
        let file = File::new(kind, directory, count_max);
        Ok::<_, SuiteError>(file.map(|file| Subject::of_file(name, file)))
    };
    let ours = servers::tokaido_growing(context, memtable_mib(context.scale()))?;
    let mut subjects = vec![Subject::of_server(ours)];
    let stores = context.plan.dictionaries.iter().filter(|kind| !kind.is_constant());
    for kind in stores {
        subjects.extend(file(*kind, Name::ours("a store in process, a sync each second"))?);
    }
    let redis = servers::redis(context, "redis", Durability::Interval)?;
    subjects.extend(redis.map(Subject::of_server));
    for (name, settings, kinds) in libraries {
        let name = Name::peer(name, settings).beside(1);
        match kinds {
            Err(problem) => subjects.push(Subject::of_file(name, Err(problem.clone()))),
            Ok(kinds) => {
                for kind in kinds {
                    subjects.extend(file(&**kind, name.clone())?);
                }
            }
        }
    }
    Ok(subjects)
}

/// All measurements at one number of records.
struct Step<'a> {
    context: &'a Context<'a>,
    subjects: &'a [Subject<'a>],
    /// The directory of the files.
    directory: &'a Path,
    count: u64,
    items: Vec<Item>,
}

impl Step<'_> {
    fn fill(&self) -> Result<(), SuiteError> {
        let left = room::on_disk(self.directory)
            .map_err(SuiteError::system("cannot tell how much room the disk has"))?;
        let needed = self.count * DISK_PER_RECORD * self.subjects.len() as u64;
        if left < needed {
            let directory = self.directory.display().to_string();
            return Err(SuiteError::Room { records: self.count, needed, left, directory });
        }
        for subject in self.subjects {
            let count = units::thousands(self.count);
            (self.context.progress)(&format!(
                "{NAME}: {count} records into {}",
                subject.name.subject
            ));
            let is_in_memory = subject.is_server && !subject.name.is_ours;
            let memory = self.count * MEMORY_PER_RECORD;
            let fits = !is_in_memory || room::in_memory().is_none_or(|left| left >= memory);
            subject.act(|store| match fits {
                true => store.fill(self.context, self.count),
                false => {
                    Err(SuiteError::Library(format!("{count} records do not fit into memory")))
                }
            })?;
            self.context.check()?;
        }
        // Otherwise the system would write back its buffers while other subjects are measured.
        room::sync(self.directory).map(drop).map_err(SuiteError::system("cannot sync the files"))
    }

    fn measure(&mut self) -> Result<(), SuiteError> {
        let context = self.context;
        let rounds = Rounds::warm(context.scale().pick(2, 3, 5));
        self.all("GET", Unit::PerSecond, NOTE, rounds, &|store| store.get(context))?;
        self.all("SET", Unit::PerSecond, NOTE, rounds, &|store| store.set(context))?;
        self.all(
            "records read one after the other",
            Unit::PerSecond,
            NOTE_SCAN,
            rounds,
            &|store| store.scan(),
        )?;
        self.sustained()?;
        self.of_servers("memory", Unit::Bytes, NOTE_MEMORY, &|server| server.memory())?;
        let once = Rounds::only(1);
        self.all("size of the files", Unit::Bytes, NOTE_DISK, once, &|store| store.disk())?;
        // Redis takes long.
        let rounds = Rounds::only(if self.count < OPENED_ONCE { 3 } else { 1 });
        self.all("opening", Unit::Seconds, NOTE_OPEN, rounds, &|store| store.open(context))
    }

    fn title(&self, what: &str) -> String {
        format!("{what}, {} records", units::thousands(self.count))
    }

    fn all(
        &mut self,
        what: &str,
        unit: Unit,
        note: &str,
        rounds: Rounds,
        take: &dyn Fn(&mut Store<'_>) -> Result<Sample, SuiteError>,
    ) -> Result<(), SuiteError> {
        let entrants = self.subjects.iter().map(|subject| subject.entrant(take));
        let name = self.title(what);
        let title = Title { scenario: NAME, name: &name, unit, note };
        contest(self.context, &title, rounds, entrants.collect(), &mut self.items)
    }

    fn of_servers(
        &mut self,
        what: &str,
        unit: Unit,
        note: &str,
        take: &dyn Fn(&mut Growing) -> Result<Sample, SuiteError>,
    ) -> Result<(), SuiteError> {
        let servers = self.subjects.iter().filter(|subject| subject.is_server);
        let entrants = servers.map(|subject| subject.entrant(|store| take(store.server()?)));
        let entrants: Vec<Entrant<'_>> = entrants.collect();
        let name = self.title(what);
        let title = Title { scenario: NAME, name: &name, unit, note };
        contest(self.context, &title, Rounds::only(1), entrants, &mut self.items)
    }

    /// Sets for a longer time: the rate, how long single sets take, and the bytes written per byte set.
    fn sustained(&mut self) -> Result<(), SuiteError> {
        let context = self.context;
        let seconds = context.scale().pick(1, 10, 300);
        let what = |what: &str| format!("SET for {seconds} s: {what}");
        let once = Rounds::only(1);
        self.all(&what("rate"), Unit::PerSecond, NOTE_SUSTAINED, once, &|store| {
            store.sustain(context, Duration::from_secs(seconds))
        })?;
        let of_latency = |figure: fn(&Latency) -> u64| {
            move |store: &mut Store<'_>| {
                Ok(Sample::of(figure(&store.sustained()?.latency) as f64 / 1e9))
            }
        };
        let within = of_latency(|latency| latency.quantile(0.999));
        let name = what("the time within which 999 of 1,000 end");
        self.all(&name, Unit::Seconds, NOTE_SUSTAINED, once, &within)?;
        let longest = of_latency(Latency::max);
        self.all(&what("the longest"), Unit::Seconds, NOTE_SUSTAINED, once, &longest)?;
        if room::written(self.directory).is_none() {
            return Ok(());
        }
        let name = what("bytes written to disk for a byte");
        let written = |store: &mut Store<'_>| store.sustained()?.written().map(Sample::of);
        self.all(&name, Unit::Times, NOTE_WRITTEN, once, &written)
    }
}

/// The results of the steps.
#[derive(Default)]
struct Growth {
    /// The items of the last complete step.
    items: Vec<Item>,
    /// The curves over all steps, one for each row of each item.
    curves: Vec<Vec<Curve>>,
}

impl Growth {
    fn add(&mut self, count: u64, items: Vec<Item>, is_whole: bool) {
        if !is_whole && !self.items.is_empty() {
            return;
        }
        let none = |item: &Item| vec![Curve::new(); item.rows.len()];
        if self.curves.len() < items.len() {
            self.curves.extend(items[self.curves.len()..].iter().map(none));
        }
        for (item, curves) in items.iter().zip(&mut self.curves) {
            for (row, curve) in item.rows.iter().zip(curves) {
                let median = |row: &Row| Some(Summary::of(&row.samples)?.median);
                curve.extend(median(row).map(|median| (count as f64, median)));
            }
        }
        self.items = items;
    }

    fn draw(self, items: &mut Vec<Item>) {
        for (item, curves) in self.items.into_iter().zip(self.curves) {
            items.push(item);
            draw(items, Axis::Records, curves);
        }
    }
}
