//! A growing store: a server, or a file that is open in this process.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    net::{Keys, Kind, Latency, Load, Mix, Protocol},
    random::{Random, Shuffle},
    suite::{
        contest::{Entrant, Name, Sample, Take},
        dictionary::{Dictionary, OpenDictionary},
        error::SuiteError,
        plan::Context,
        request::{self, Redis, Reply},
        room,
        run::Problem,
        scenario::load,
        server::Server,
        servers::Started,
        worker::{VALUE, key},
    },
};

/// How often files are synced: as often as the servers do it.
const SYNC: Option<Duration> = Some(Duration::from_secs(1));

/// Requests in flight on each connection of a load.
const PIPELINE: usize = 16;

/// Records per transaction when a file is filled.
const FILL_BATCH: usize = 1_000;

/// Reads or writes of a file between two checks of the clock.
const STEPS: u64 = 64;

/// Number of records that a sample reads in order.
const SCAN_LEN: u64 = 100_000;

/// Records requested per SCAN.
const SCAN_COUNT: &str = "1000";

/// The longest that a server may take to read its data.
const OPEN_TIME_MAX: Duration = Duration::from_secs(1_800);

/// How often to check whether it is ready.
const LOOK: Duration = Duration::from_millis(1);

/// A store and its name; the problem, if it no longer takes part.
pub(super) struct Subject<'a> {
    pub(super) name: Name,
    store: RefCell<Result<Store<'a>, Problem>>,
    pub(super) is_server: bool,
}

/// The growing store.
pub(super) enum Store<'a> {
    Server(Box<Growing>),
    File(File<'a>),
}

impl<'a> Subject<'a> {
    pub(super) fn of_server(started: Started) -> Self {
        let growing = |server| {
            let cursor = "0".to_owned();
            Store::Server(Box::new(Growing { server, cursor, count: 0, sustained: None }))
        };
        let store = RefCell::new(started.server.map(growing));
        Self { name: started.name, store, is_server: true }
    }

    pub(super) fn of_file(name: Name, file: Result<File<'a>, Problem>) -> Self {
        Self { name, store: RefCell::new(file.map(Store::File)), is_server: false }
    }

    /// Does something with the store; if that fails, the store no longer takes part.
    pub(super) fn act(
        &self,
        act: impl FnOnce(&mut Store<'a>) -> Result<(), SuiteError>,
    ) -> Result<(), SuiteError> {
        let mut store = self.store.borrow_mut();
        let Ok(there) = &mut *store else { return Ok(()) };
        match act(there) {
            Err(SuiteError::Stopped) => Err(SuiteError::Stopped),
            Err(error) => {
                *store = Err(Problem::Failed(error.to_string()));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// A participant with `take` as its sample.
    pub(super) fn entrant<'s>(
        &'s self,
        take: impl Fn(&mut Store<'a>) -> Result<Sample, SuiteError> + 's,
    ) -> Entrant<'s> {
        let problem = self.store.borrow().as_ref().err().cloned();
        let take = move || match &mut *self.store.borrow_mut() {
            Ok(store) => take(store),
            Err(problem) => Err(SuiteError::Library(format!("{problem:?}"))),
        };
        let take = problem.map_or(Ok(Box::new(take) as Take<'s>), Err);
        Entrant { name: self.name.clone(), take }
    }
}

impl Store<'_> {
    /// The store as a server, if it is one.
    pub(super) fn server(&mut self) -> Result<&mut Growing, SuiteError> {
        match self {
            Self::Server(server) => Ok(server),
            Self::File(_) => Err(SuiteError::Library("only a server has that".to_owned())),
        }
    }

    /// Sets for a longer time, and returns the rate. The other results are kept until the next time.
    pub(super) fn sustain(
        &mut self,
        context: &Context<'_>,
        time: Duration,
    ) -> Result<Sample, SuiteError> {
        let directory = self.directory().to_owned();
        let before = room::written(&directory);
        let (sets, sample, latency) = match self {
            Self::Server(server) => server.sustain(context, time)?,
            Self::File(file) => file.sustain(context, time).map_err(SuiteError::Library)?,
        };
        let written = room::written(&directory).zip(before).map(|(after, before)| after - before);
        let set = sets as f64 * (key(0).len() + VALUE.len()) as f64;
        let written = written.map(|bytes| bytes as f64 / set);
        *self.sustained_mut() = Some(Sustained { latency, written });
        Ok(sample)
    }

    fn sustained_mut(&mut self) -> &mut Option<Sustained> {
        match self {
            Self::Server(server) => &mut server.sustained,
            Self::File(file) => &mut file.sustained,
        }
    }

    /// The other results of [`sustain`](Self::sustain).
    pub(super) fn sustained(&mut self) -> Result<&Sustained, SuiteError> {
        let none = || SuiteError::Library("it was not set for long".to_owned());
        self.sustained_mut().as_ref().ok_or_else(none)
    }

    /// Fills it up to `count` records.
    pub(super) fn fill(&mut self, context: &Context<'_>, count: u64) -> Result<(), SuiteError> {
        match self {
            Self::Server(server) => server.fill(context, count),
            Self::File(file) => file.fill(context, count).map_err(SuiteError::Library),
        }
    }

    /// Gets per second.
    pub(super) fn get(&mut self, context: &Context<'_>) -> Result<Sample, SuiteError> {
        match self {
            Self::Server(server) => server.rate(context, Kind::Get),
            Self::File(file) => file.get(context).map_err(SuiteError::Library),
        }
    }

    /// Sets per second.
    pub(super) fn set(&mut self, context: &Context<'_>) -> Result<Sample, SuiteError> {
        match self {
            Self::Server(server) => server.rate(context, Kind::Set),
            Self::File(file) => file.set(context).map_err(SuiteError::Library),
        }
    }

    /// Records per second, read in order.
    pub(super) fn scan(&mut self) -> Result<Sample, SuiteError> {
        match self {
            Self::Server(server) => server.scan(),
            Self::File(file) => file.scan().map_err(SuiteError::Library),
        }
    }

    /// The time from opening until it returns a record.
    pub(super) fn open(&mut self, context: &Context<'_>) -> Result<Sample, SuiteError> {
        match self {
            Self::Server(server) => server.open(context),
            Self::File(file) => file.open().map_err(SuiteError::Library),
        }
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Server(server) => server.server.directory(),
            Self::File(file) => &file.directory,
        }
    }

    /// Bytes on disk.
    pub(super) fn disk(&self) -> Result<Sample, SuiteError> {
        let used =
            room::used(self.directory()).map_err(SuiteError::system("cannot look at the files"))?;
        Ok(Sample::of(used as f64))
    }
}

/// A server that speaks the Redis protocol.
pub(super) struct Growing {
    server: Server,
    /// The cursor of the next SCAN.
    cursor: String,
    count: u64,
    sustained: Option<Sustained>,
}

/// The results of a longer time of sets.
pub(super) struct Sustained {
    /// From sending a set to its answer.
    pub(super) latency: Latency,
    /// Bytes that the disk wrote per byte that was set, if known.
    written: Option<f64>,
}

impl Sustained {
    pub(super) fn written(&self) -> Result<f64, SuiteError> {
        let unknown = "what the disk has written is not known";
        self.written.ok_or_else(|| SuiteError::Library(unknown.to_owned()))
    }
}

impl Growing {
    fn load(&self, context: &Context<'_>, kind: Kind) -> Load {
        Load {
            pipeline: PIPELINE,
            keys_count: self.count,
            ..load::load(context, self.server.port(), Protocol::Resp2, &Mix::only(kind))
        }
    }

    fn fill(&mut self, context: &Context<'_>, count: u64) -> Result<(), SuiteError> {
        self.count = count;
        let load = Load { keys: Keys::Shuffled, ..self.load(context, Kind::Set) };
        load::fill(context, &load)
    }

    fn rate(&self, context: &Context<'_>, kind: Kind) -> Result<Sample, SuiteError> {
        Ok(load::send(&self.load(context, kind), context.stop)?.1)
    }

    fn sustain(
        &self,
        context: &Context<'_>,
        time: Duration,
    ) -> Result<(u64, Sample, Latency), SuiteError> {
        // Redis rewrites its log only when told to; a server that does this by itself may refuse.
        let _ = request::redis(self.server.port(), &["BGREWRITEAOF"]);
        let load = Load { time, ..self.load(context, Kind::Set) };
        let (outcome, sample) = load::send(&load, context.stop)?;
        Ok((outcome.tally.requests(), sample, outcome.tally.response))
    }

    fn scan(&mut self) -> Result<Sample, SuiteError> {
        let mut connection = Redis::connect(self.server.port())?;
        let (mut seen, began) = (0, Instant::now());
        while seen < SCAN_LEN.min(self.count) {
            let command = ["SCAN", &self.cursor, "COUNT", SCAN_COUNT];
            match connection.command(&command)? {
                Reply::Items(items) => match &items[..] {
                    [Reply::Text(cursor), Reply::Items(keys)] => {
                        self.cursor.clone_from(cursor);
                        seen += keys.len() as u64;
                    }
                    _ => return Err(request::unexpected("SCAN", "an array of another form")),
                },
                Reply::Text(text) => return Err(request::unexpected("SCAN", &text)),
            }
        }
        Ok(Sample::of(seen as f64 / began.elapsed().as_secs_f64()))
    }

    fn open(&mut self, context: &Context<'_>) -> Result<Sample, SuiteError> {
        // A restart invalidates the SCAN cursor.
        "0".clone_into(&mut self.cursor);
        let began = self.server.restart(context)?;
        let key = key(self.count / 2);
        let key = String::from_utf8_lossy(&key);
        loop {
            let answer = request::redis(self.server.port(), &["GET", &key]);
            match answer {
                Ok(text) if text.len() == VALUE.len() => break,
                // The answer may say that it is still reading its data, or be permanent.
                Ok(_) | Err(_) if began.elapsed() < OPEN_TIME_MAX => thread::sleep(LOOK),
                Ok(text) => return Err(request::unexpected("GET", &text)),
                Err(error) => return Err(error),
            }
            context.check()?;
            self.server.check()?;
        }
        Ok(Sample::of(began.elapsed().as_secs_f64()))
    }

    /// Its memory in bytes.
    pub(super) fn memory(&self) -> Result<Sample, SuiteError> {
        Ok(Sample::of(load::memory(self.server.port())? as f64))
    }
}

/// A file that is open in this process.
pub(super) struct File<'a> {
    kind: &'a dyn Dictionary,
    directory: PathBuf,
    /// The number of records up to which it may grow.
    count_max: u64,
    /// `None` between closing and opening.
    open: Option<Box<dyn OpenDictionary>>,
    count: u64,
    random: Random,
    sustained: Option<Sustained>,
}

impl<'a> File<'a> {
    /// Opens one in an empty directory; `None` if its kind is not measured like this.
    pub(super) fn new(
        kind: &'a dyn Dictionary,
        directory: PathBuf,
        count_max: u64,
    ) -> Option<Result<Self, Problem>> {
        let open = kind.keep_open(&directory.join("store"), count_max, SYNC)?;
        let random = Random::new(1);
        let file = |open| Self {
            kind,
            directory,
            count_max,
            open: Some(open),
            count: 0,
            random,
            sustained: None,
        };
        Some(open.map(file).map_err(Problem::Failed))
    }

    fn opened(&mut self) -> Result<&mut Box<dyn OpenDictionary>, String> {
        self.open.as_mut().ok_or_else(|| "it could not be opened again".to_owned())
    }

    fn fill(&mut self, context: &Context<'_>, count: u64) -> Result<(), String> {
        let (shuffle, old) = (Shuffle::new(count), self.count);
        self.count = count;
        // Syncing the records takes long and is not measured here.
        self.open_again(None)?;
        let open = self.opened()?;
        let mut batch = Vec::with_capacity(FILL_BATCH);
        for place in 0..count {
            let number = shuffle.at(place);
            if number >= old {
                batch.push(key(number));
            }
            if batch.len() == FILL_BATCH || place + 1 == count {
                let rows: Vec<_> = batch.iter().map(|key| (&key[..], VALUE)).collect();
                open.put(&rows)?;
                batch.clear();
                if context.check().is_err() {
                    break;
                }
            }
        }
        self.open_again(SYNC)
    }

    fn open_again(&mut self, sync: Option<Duration>) -> Result<(), String> {
        self.open = None;
        let open = self.kind.keep_open(&self.directory.join("store"), self.count_max, sync);
        self.open = Some(open.ok_or("it cannot be kept open")??);
        Ok(())
    }

    fn get(&mut self, context: &Context<'_>) -> Result<Sample, String> {
        let time = context.scale().sample();
        self.rate(context, time, |open, key| open.get(key, &mut |_| {})).map(|(_, sample)| sample)
    }

    fn set(&mut self, context: &Context<'_>) -> Result<Sample, String> {
        let time = context.scale().sample();
        self.rate(context, time, |open, key| open.put(&[(key, VALUE)])).map(|(_, sample)| sample)
    }

    fn sustain(
        &mut self,
        context: &Context<'_>,
        time: Duration,
    ) -> Result<(u64, Sample, Latency), String> {
        let mut latency = Latency::default();
        let (sets, sample) = self.rate(context, time, |open, key| {
            let began = Instant::now();
            open.put(&[(key, VALUE)])?;
            latency.record(began.elapsed().as_nanos() as u64);
            Ok(())
        })?;
        Ok((sets, sample, latency))
    }

    /// Calls `step` with random keys for `time`; also returns how often.
    fn rate(
        &mut self,
        context: &Context<'_>,
        time: Duration,
        mut step: impl FnMut(&mut dyn OpenDictionary, &[u8]) -> Result<(), String>,
    ) -> Result<(u64, Sample), String> {
        let (mut random, count) = (self.random.clone(), self.count);
        let open = self.opened()?;
        let (mut done, began) = (0, Instant::now());
        while began.elapsed() < time && context.check().is_ok() {
            for _ in 0..STEPS {
                step(&mut **open, &key(random.below(count)))?;
            }
            done += STEPS;
        }
        let sample = Sample::of(done as f64 / began.elapsed().as_secs_f64());
        self.random = random;
        Ok((done, sample))
    }

    fn scan(&mut self) -> Result<Sample, String> {
        let len = SCAN_LEN.min(self.count);
        let from = key(self.random.below(self.count - len + 1));
        let (mut seen, mut sum) = (0_u64, 0_usize);
        let began = Instant::now();
        self.opened()?.scan(&from, len, &mut |key, value| {
            seen += 1;
            sum += key.len() + value.len();
        })?;
        let took = began.elapsed();
        let is_whole = seen == len && sum == len as usize * (from.len() + VALUE.len());
        if is_whole {
            Ok(Sample::of(seen as f64 / took.as_secs_f64()))
        } else {
            Err(format!("it read {seen} records in order, of {len}"))
        }
    }

    fn open(&mut self) -> Result<Sample, String> {
        // Closing does not count.
        self.open = None;
        let key = key(self.count / 2);
        let began = Instant::now();
        self.open_again(SYNC)?;
        self.opened()?.get(&key, &mut |_| {})?;
        Ok(Sample::of(began.elapsed().as_secs_f64()))
    }
}
