//! Fills the stores step by step, measures at each step, and draws curves over the number of records.

use std::{cell::Cell, fs, path::Path};

use tempfile::TempDir;

use super::subject::{File, Growing, Store, Subject};
use crate::{
    net::Usage,
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
        worker::{VALUE, key},
    },
    units,
};

const NAME: &str = "growth";

const NOTE: &str = "Records of 16 and 64 bytes, which were put in an order that is none. All sync each second what is set now. Servers have 50 connections, a \
                    pipeline of 16 and random keys; files are used in process, where each set is a transaction.";

const NOTE_SCAN: &str = "100,000 records, or all if there are fewer. Servers are asked by SCAN, COUNT 1000, for keys alone; files give keys with \
                         their values, in order.";

const NOTE_OPEN: &str = "A server has ended by itself, and is started again until it answers a GET; Redis reads all of its data. A file is closed, and \
                         opened until a record is there. The files are in the page cache.";

const NOTE_MEMORY: &str = "What the process holds for itself, behind the loads. The page cache is not counted: the system takes it back when it needs to.";

const NOTE_DISK: &str = "All files, in whole blocks, behind the loads.";

const NOTE_CHECKPOINT: &str = "Sets of random keys in a closed loop, as fast as they are answered; the longest time from the sending of one to its answer. So many \
                               are sent that Tokaido makes a checkpoint by itself. Redis is told to write its log anew at the beginning.";

const NOTE_WRITTEN: &str = "Bytes that the system wrote to disk for a process, divided by those of the keys and values that were set: with servers while \
                            a checkpoint ran, with files over all their sets.";

/// Bytes that a record may take on the disk in all stores together, with what they write beside.
const DISK_PER_RECORD: u64 = 1_200;

/// Bytes that a record may take in a server that keeps it in memory, with what is copied while it is written.
const MEMORY_PER_RECORD: u64 = 300;

/// From so many records on, stores are opened once, and not several times.
const OPENED_ONCE: u64 = 10_000_000;

/// So many times as much is set as makes a checkpoint.
const CHECKPOINTS: f64 = 1.5;

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
    let lmdb = Peer::named("lmdb").and_then(|lmdb| context.kinds(lmdb));
    let subjects = subjects(context, &lmdb, directory.path(), count_max)?;
    let mut growth = Growth::default();
    let ended = sizes.iter().try_for_each(|&count| {
        let mut step = Step { context, subjects: &subjects, count, items: Vec::new() };
        let ended = step.fill(directory.path()).and_then(|()| step.measure());
        growth.add(count, step.items, ended.is_ok());
        ended
    });
    growth.draw(items);
    ended
}

/// Between two checkpoints: for a quick run there is no time for as much as there is by default.
fn memtable_mib(scale: Scale) -> u64 {
    scale.pick(4, 64, 64)
}

fn subjects<'a>(
    context: &'a Context<'_>,
    lmdb: &'a Option<Result<Kinds, Problem>>,
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
    let name = Name::peer("lmdb", "in process, WRITEMAP, a sync each second").beside(1);
    match lmdb {
        None => {}
        Some(Err(problem)) => subjects.push(Subject::of_file(name, Err(problem.clone()))),
        Some(Ok(kinds)) => {
            for kind in kinds {
                subjects.extend(file(&**kind, name.clone())?);
            }
        }
    }
    Ok(subjects)
}

/// All that is measured at one number of records.
struct Step<'a> {
    context: &'a Context<'a>,
    subjects: &'a [Subject<'a>],
    count: u64,
    items: Vec<Item>,
}

impl Step<'_> {
    fn fill(&self, directory: &Path) -> Result<(), SuiteError> {
        let left = room::on_disk(directory)
            .map_err(SuiteError::system("cannot tell how much room the disk has"))?;
        let needed = self.count * DISK_PER_RECORD;
        if left < needed {
            let directory = directory.display().to_string();
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
        Ok(())
    }

    fn measure(&mut self) -> Result<(), SuiteError> {
        let context = self.context;
        let rounds = Rounds::warm(context.scale().pick(2, 3, 5));
        self.all("GET", Unit::PerSecond, NOTE, rounds, &|store| store.get(context))?;
        let before = Usage::of_this_program().written;
        self.all("SET", Unit::PerSecond, NOTE, rounds, &|store| store.set(context))?;
        let written = Usage::of_this_program().written.zip(before);
        let written = written.map_or(0, |(after, before)| after - before);
        self.all(
            "records read one after the other",
            Unit::PerSecond,
            NOTE_SCAN,
            rounds,
            &|store| store.scan(),
        )?;
        self.checkpoint(written)?;
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

    /// The longest set while a checkpoint runs, and what is written for a byte; `written` is what this process had written
    /// while its files were set.
    fn checkpoint(&mut self, written: u64) -> Result<(), SuiteError> {
        let context = self.context;
        let record_len = (key(0).len() + VALUE.len()) as f64;
        let memtable_len = (memtable_mib(context.scale()) << 20) as f64;
        let sets = (CHECKPOINTS * memtable_len / record_len) as u64;
        let what = "the longest SET while a checkpoint runs";
        self.of_servers(what, Unit::Seconds, NOTE_CHECKPOINT, &|server| {
            server.longest_set(context, sets)
        })?;
        // Only our store has threads that write, so what was written by none that called is its own.
        let by_callers = Cell::new(0);
        self.subjects.iter().try_for_each(|subject| {
            subject.act(|store| {
                if let Store::File(file) = store {
                    by_callers.set(by_callers.get() + file.written.bytes);
                }
                Ok(())
            })
        })?;
        let in_background = written.saturating_sub(by_callers.into_inner());
        let entrants = self.subjects.iter().map(|subject| {
            let is_ours = subject.name.is_ours;
            subject.entrant(move |store| {
                let mut written = store.take_written();
                written.bytes += match store {
                    Store::File(_) if is_ours => in_background,
                    _ => 0,
                };
                written.for_a_byte(record_len).map(Sample::of)
            })
        });
        let name = self.title("bytes written to disk for a byte that is set");
        let title = Title { scenario: NAME, name: &name, unit: Unit::Times, note: NOTE_WRITTEN };
        contest(context, &title, Rounds::only(1), entrants.collect(), &mut self.items)
    }
}

/// What came of the steps.
#[derive(Default)]
struct Growth {
    /// Of the last step that is whole.
    items: Vec<Item>,
    /// Of all of them: a curve for each row of each item.
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
