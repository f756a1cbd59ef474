//! What a procedure file exports.

use std::path::PathBuf;

/// How a procedure runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On a snapshot, on any core: `tokaido.read`.
    Read,
    /// In the writer, one at a time: `tokaido.write`.
    Write,
}

/// When a server calls a procedure by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// After the server has started, and after a reload.
    Begin,
    /// Before the server stops, and before a reload replaces the program.
    End,
}

/// The index of a procedure in [`crate::Runtime::procedures`]: the same in every runtime of the same
/// sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcedureId(u32);

/// One exported function.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// `module.field`, such as `hits.count`.
    pub name: String,
    /// How it runs.
    pub mode: Mode,
    /// The HTTP route it answers; `None` if it is called by name.
    pub route: Option<Route>,
    /// When the server itself calls it; nobody else can call it then.
    pub hook: Option<Hook>,
    /// The file that defines it.
    pub path: PathBuf,
    /// The line where its function begins.
    pub line: u32,
    /// It runs on the worker that has the request from its first call on, since in its dialect each worker keeps
    /// something between requests.
    pub is_of_worker: bool,
}

impl Procedure {
    /// The message for callers by name if it answers a route.
    #[must_use]
    pub fn answers(&self, route: &Route) -> String {
        format!("{} answers {} {}; call it over HTTP", self.name, route.method, route.pattern)
    }

    /// The message for a name or route that it declares, too, after `first` has.
    #[must_use]
    pub fn declared_twice(&self, what: &str, first: &Self) -> String {
        format!(
            "{} declares {what}, which {} at {}:{} has declared before and keeps; change one of them",
            self.name,
            first.name,
            first.path.display(),
            first.line
        )
    }
}

/// An HTTP route, as in `tokaido.http("GET /hits/:page", …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST`, … or [`ANY_METHOD`](Self::ANY_METHOD).
    pub method: String,
    /// The path; `:name` takes one segment, `*name` at the end takes the rest.
    pub pattern: String,
}

impl Route {
    /// Stands for every method that has no route of its own on the same path.
    pub const ANY_METHOD: &'static str = "*";
}

impl ProcedureId {
    /// The procedure at that index.
    ///
    /// # Panics
    /// If there cannot be that many.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a program has fewer procedures"))
    }

    /// The index in [`crate::Runtime::procedures`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
