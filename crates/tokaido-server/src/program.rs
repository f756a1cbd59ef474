//! The program that a server runs: one generation of its procedures, swapped as a whole.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokaido_script::{
    Hook, Language, Limits, LoadError, Lua, Procedure, ProcedureId, Runtime, RuntimeError,
    Settings, Sources, TyrantCommons, TyrantSettings,
};
use tokaido_store::Store;
use tokio::sync::watch;

use crate::{
    call_statistics::CallStatistics,
    config::Config,
    http::{RouteError, Router},
    loading::Loading,
};

/// One generation of procedures, with the names and routes by which they are found. An id belongs
/// to its program and means nothing in another.
#[derive(Debug, Default)]
pub struct Program {
    generation: u64,
    sources: Sources,
    procedures: Vec<Procedure>,
    statistics: Vec<CallStatistics>,
    names: HashMap<Vec<u8>, ProcedureId>,
    router: Router,
    /// Calls that take no longer are short, and may hold up a worker's other connections.
    short_call_max: Duration,
}

impl Program {
    /// A program of procedures that are called by name only.
    #[must_use]
    pub fn of(procedures: Vec<Procedure>) -> Self {
        let ids = (0..procedures.len()).map(ProcedureId::from_index);
        let mut names = HashMap::new();
        // Only the server itself calls hooks.
        for (procedure, id) in procedures.iter().zip(ids).filter(|(p, _)| p.hook.is_none()) {
            names.entry(procedure.name.clone().into_bytes()).or_insert(id);
        }
        let statistics = procedures.iter().map(|_| CallStatistics::default()).collect();
        Self { generation: 1, procedures, statistics, names, ..Self::default() }
    }

    /// The program's number among those that the server has had; the first is 1.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The procedures, by [`ProcedureId::index`].
    #[must_use]
    pub fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    pub(crate) fn get(&self, id: ProcedureId) -> &Procedure {
        &self.procedures[id.index()]
    }

    /// The procedure of that name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<ProcedureId> {
        self.names.get(name).copied()
    }

    /// The procedures that the server calls by itself for this hook.
    pub(crate) fn hooks(&self, hook: Hook) -> impl Iterator<Item = ProcedureId> {
        let is_meant = move |(_, procedure): &(usize, &Procedure)| procedure.hook == Some(hook);
        let meant = self.procedures.iter().enumerate().filter(is_meant);
        meant.map(|(place, _)| ProcedureId::from_index(place))
    }

    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    /// Whether a worker may run it itself.
    pub(crate) fn runs_inline(&self, id: ProcedureId) -> bool {
        self.statistics[id.index()].is_short()
    }

    /// Makes a call, and notes how long it took.
    pub(crate) fn timed<T>(&self, id: ProcedureId, call: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = call();
        let took = started.elapsed();
        self.statistics[id.index()].called(took, took <= self.short_call_max);
        result
    }

    /// Goes on with a call that waited, and adds the time that it takes.
    pub(crate) fn timed_again<T>(&self, id: ProcedureId, go_on: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = go_on();
        self.statistics[id.index()].took(started.elapsed());
        result
    }

    /// Counts a call without a result. If `is_refusal`, the procedure refused deliberately.
    pub(crate) fn count_failure(&self, id: ProcedureId, is_refusal: bool) {
        self.statistics[id.index()].failed(is_refusal);
    }

    /// The procedures with their statistics.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = (&Procedure, &CallStatistics)> {
        self.procedures.iter().zip(&self.statistics)
    }

    /// Makes this program the successor of `before`.
    fn follow(&mut self, before: &Self) {
        self.generation = before.generation + 1;
        for (procedure, statistics) in self.procedures.iter().zip(&mut self.statistics) {
            let is_same = |old: &ProcedureId| before.get(*old).name == procedure.name;
            let old = match procedure.hook {
                None => before.find(procedure.name.as_bytes()),
                Some(hook) => before.hooks(hook).find(is_same),
            };
            if let Some(old) = old {
                *statistics = before.statistics[old.index()].after();
            }
        }
    }
}

/// The program that serves now.
#[derive(Debug)]
pub(crate) struct CurrentProgram {
    /// The generation of the program, so that checking for a newer one only reads a number.
    generation: AtomicU64,
    program: Mutex<Arc<Program>>,
    /// The outcome of the last reading of the files.
    loading: Mutex<Arc<Loading>>,
    /// The same number, for tasks that wait until there is another one.
    newest: watch::Sender<u64>,
}

impl CurrentProgram {
    pub(crate) fn new(program: Arc<Program>) -> Self {
        let generation = AtomicU64::new(program.generation);
        let newest = watch::Sender::new(program.generation);
        Self { generation, program: Mutex::new(program), loading: Mutex::default(), newest }
    }

    /// Gives the generation of each program that replaces another.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self) -> Arc<Program> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn loading(&self) -> Arc<Loading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the outcome of reading the files.
    pub(crate) fn set_loading(&self, loading: Loading) {
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(loading);
    }

    /// Replaces the program. Each thread switches to it before its next request.
    pub(crate) fn replace(&self, mut program: Program) -> Arc<Program> {
        let mut current = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.follow(&current);
        self.generation.store(program.generation, Ordering::Release);
        *current = Arc::new(program);
        let program = current.clone();
        // Whoever is notified takes this lock.
        drop(current);
        self.newest.send_modify(|newest| *newest = program.generation.max(*newest));
        program
    }
}

/// Makes programs from sources, and runtimes for programs.
pub(crate) struct Loader {
    pub(crate) languages: Vec<Arc<dyn Language>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Limits,
    pub(crate) short_call_max: Duration,
}

/// The languages that procedures may be written in.
pub(crate) fn languages(config: &Config) -> Vec<Arc<dyn Language>> {
    let tyrant = TyrantSettings {
        database: config.tyrant.database.clone(),
        commons: Arc::new(TyrantCommons::new(config.limits.tyrant_stash_bytes_max)),
    };
    let settings = Settings {
        kyoto_databases: config.kyoto.databases.clone(),
        tyrant,
        document_root: config.mod_lua.document_root.clone(),
        body_bytes_max: config.limits.http_body_bytes_max,
        ..Settings::default()
    };
    let lua = Arc::new(Lua { settings: Arc::new(settings), ..Lua::default() });
    [vec![lua as _], languages_beside_lua(config.mod_mruby.document_root.as_deref())].concat()
}

/// The languages besides Lua. mod_mruby scripts may look at files below `document_root`.
#[must_use]
#[cfg_attr(not(feature = "ruby"), expect(unused_variables, reason = "there are none"))]
pub fn languages_beside_lua(document_root: Option<&Path>) -> Vec<Arc<dyn Language>> {
    #[cfg(feature = "ruby")]
    return vec![Arc::new(tokaido_ruby::Ruby {
        document_root: document_root.map(Path::to_path_buf),
    })];
    #[cfg(not(feature = "ruby"))]
    return Vec::new();
}

impl Loader {
    #[cfg(test)]
    pub(crate) fn of_lua(store: &Arc<dyn Store>) -> Self {
        let (languages, store) = (languages(&Config::default()), store.clone());
        Self {
            languages,
            store,
            limits: Limits::default(),
            short_call_max: Duration::from_millis(1),
        }
    }

    /// The extensions of procedure files.
    pub(crate) fn extensions(&self) -> Vec<&'static str> {
        self.languages.iter().map(|language| language.extension()).collect()
    }

    /// Loads a program. Errors in its files are returned; the rest serves.
    pub(crate) fn load(&self, sources: Sources) -> Result<(Program, Vec<LoadError>), RuntimeError> {
        let (runtime, mut errors) = self.start(&sources)?;
        let mut program = Program::of(runtime.procedures().to_vec());
        program.short_call_max = self.short_call_max;
        program.sources = sources;
        for (place, procedure) in program.procedures.iter().enumerate() {
            let id = ProcedureId::from_index(place);
            // Within a language this was checked when it was loaded.
            if let Some(first) =
                program.find(procedure.name.as_bytes()).filter(|&first| first != id)
            {
                let message = procedure.declared_twice(&procedure.name, program.get(first));
                errors.push(LoadError::of_procedure(procedure, message));
            }
            let Some(route) = &procedure.route else { continue };
            let message = match program.router.add(route, id) {
                Ok(()) => continue,
                Err(RouteError::Taken(first)) => {
                    let what = format!("{} {}", route.method, route.pattern);
                    procedure.declared_twice(&what, program.get(first))
                }
                Err(error) => format!("{}: {error}", procedure.name),
            };
            errors.push(LoadError::of_procedure(procedure, message));
        }
        Ok((program, errors))
    }

    /// A runtime of the program for another thread.
    pub(crate) fn runtime(&self, program: &Program) -> Result<Box<dyn Runtime>, RuntimeError> {
        let (runtime, _errors) = self.start(&program.sources)?;
        let same = |(a, b): (&Procedure, &Procedure)| {
            (&a.name, a.mode, &a.route, a.hook) == (&b.name, b.mode, &b.route, b.hook)
        };
        let (loaded, expected) = (runtime.procedures(), program.procedures());
        if loaded.len() == expected.len() && loaded.iter().zip(expected).all(same) {
            return Ok(runtime);
        }
        Err(RuntimeError {
            language: "a program",
            message: "its files do not give the same procedures each time they are loaded; what \
                      they return must not depend on the time or on chance"
                .to_owned(),
        })
    }

    fn start(&self, sources: &Sources) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        tokaido_script::start(&self.languages, &self.store, sources, self.limits)
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::atomic::Ordering::Relaxed};

    use tokaido_script::Mode;

    use super::*;

    fn procedure(name: &str, hook: Option<Hook>) -> Procedure {
        let (name, path) = (name.to_owned(), PathBuf::from("tea.lua"));
        let (mode, route, line, is_of_worker) = (Mode::Write, None, 1, false);
        Procedure { name, mode, route, hook, path, line, is_of_worker }
    }

    #[test]
    fn what_was_counted_goes_on_after_a_reload() {
        let begin = procedure("tea._begin", Some(Hook::Begin));
        let end = procedure("tea._begin", Some(Hook::End));
        let current = Program::of(vec![begin.clone(), procedure("tea.pour", None), end.clone()]);
        for (times, index) in [(2, 0), (3, 1), (5, 2)] {
            for _ in 0..times {
                current.timed(ProcedureId::from_index(index), || ());
            }
            current.timed_again(ProcedureId::from_index(index), || ());
        }
        let mut next =
            Program::of(vec![end, procedure("tea.cup", None), procedure("tea.pour", None), begin]);
        next.follow(&current);
        let calls = next.statistics().map(|(_, statistics)| statistics.calls.load(Relaxed));
        assert_eq!(calls.collect::<Vec<_>>(), [5, 0, 3, 2]);
    }
}
