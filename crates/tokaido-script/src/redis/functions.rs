//! The virtual machine for libraries of functions, which FUNCTION LOAD loads and FCALL calls.

use std::{collections::HashMap, ffi::c_int, time::Duration};

use mlua::{Function, Table, chunk::ChunkMode};

use super::vm::{call_error, raised, start};
use crate::{
    CallError, Dialect, Interrupt, Limits, RuntimeError, Scope, Value, failure::Failure, load,
    state::LuaState,
};

/// What Lua calls a library in its messages.
const CHUNK_NAME: &str = "user_function";

/// A function's flags, by the names that Redis has for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionFlags(u8);

impl FunctionFlags {
    const NAMES: [&'static str; 5] =
        ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

    /// The flags from a byte that [`bits`](Self::bits) gave.
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & ((1 << Self::NAMES.len()) - 1))
    }

    /// The flags as a byte.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the function only reads.
    #[must_use]
    pub fn no_writes(self) -> bool {
        self.0 & 1 != 0
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let is_set = move |place: usize| self.0 & 1 << place != 0;
        Self::NAMES.into_iter().enumerate().filter(move |(place, _)| is_set(*place)).map(|(_, n)| n)
    }
}

/// A function as its library registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredFunction {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// Its author's description.
    pub description: Option<Vec<u8>>,
    /// Its flags.
    pub flags: FunctionFlags,
}

/// Why the code of a library cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It is not valid Lua.
    #[error("Error compiling function: {0}")]
    Compile(String),
    /// Running it failed; the message begins with a code.
    #[error("Error registering functions: {0}")]
    Register(String),
    /// It registered nothing.
    #[error("No functions registered")]
    Empty,
}

/// What a function is called with.
#[derive(Clone, Copy, Debug)]
pub struct FunctionCall<'c> {
    /// The [id](FunctionVm::load) of its library.
    pub library: &'c str,
    /// Its name.
    pub name: &'c str,
    /// Its first argument.
    pub keys: &'c [&'c [u8]],
    /// Its second argument.
    pub arguments: &'c [&'c [u8]],
}

/// A Lua virtual machine for libraries of functions. It belongs to one thread.
///
/// Libraries are code that clients send. They find what scripts of a [`RedisVm`](crate::RedisVm) find, under the
/// same limits. While a library is loaded it finds only `redis`, and of that only what registers functions and
/// writes to the log. A library's local variables stay as long as the library does.
pub struct FunctionVm {
    state: LuaState,
    limits: Limits,
    interrupt: Interrupt,
    version: (u8, u8, u8),
    /// The functions of each loaded library.
    libraries: HashMap<Box<str>, HashMap<Box<str>, Known>>,
    /// The line of the last function called, as Lua was told.
    line: Option<usize>,
}

/// A function of a loaded library.
#[derive(Clone, Copy, Debug)]
struct Known {
    reference: c_int,
    /// The line that contains the whole function, if there is one.
    line: Option<usize>,
}

impl FunctionVm {
    /// Maximum time that loading a library may take.
    pub const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

    /// Maximum total length of the names and descriptions of a library's functions, in bytes.
    pub const TEXT_LEN_MAX: usize = 1 << 20;

    /// Starts a VM. Functions are told that the server has that version of Redis.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn new(limits: Limits, version: (u8, u8, u8)) -> Result<Self, RuntimeError> {
        let interrupt = Interrupt::default();
        let state = start(&Dialect::REDIS_FUNCTIONS, limits, &interrupt, version)?;
        Ok(Self { state, limits, interrupt, version, libraries: HashMap::new(), line: None })
    }

    /// What stops the functions of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Whether the library of that id is loaded.
    #[must_use]
    pub fn has(&self, library: &str) -> bool {
        self.libraries.contains_key(library)
    }

    /// Drops the libraries whose ids `keep` rejects.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let state = &self.state;
        self.libraries.retain(|id, functions| {
            let is_kept = keep(id);
            if !is_kept {
                functions.values().for_each(|known| state.drop_chunk(known.reference));
            }
            is_kept
        });
    }

    /// Loads a library under an id that no other text has, and gives its functions in the order in which it
    /// registered them. `code` may begin with a line `#!…`, which counts in messages.
    ///
    /// # Errors
    /// See [`LibraryError`].
    pub fn load(&mut self, id: &str, code: &[u8]) -> Result<Vec<RegisteredFunction>, LibraryError> {
        self.retain(|other| other != id);
        let chunk = self.compile(code)?;
        self.state.forget_seed();
        let run = self.run(chunk);
        self.state.drop_chunk(chunk);
        let registered = match run {
            Ok(registered) => registered,
            Err(failure) => {
                if matches!(failure, Failure::Memory) {
                    self.replace_state();
                }
                return Err(LibraryError::Register(self.message(failure)));
            }
        };
        let register = |error: mlua::Error| LibraryError::Register(format!("ERR {error}"));
        let functions = self.keep(&registered).map_err(register)?;
        if functions.is_empty() {
            return Err(LibraryError::Empty);
        }
        let text_len = |function: &RegisteredFunction| {
            function.name.len() + function.description.as_ref().map_or(0, Vec::len)
        };
        let (mut known, mut listed, mut len) = (HashMap::new(), Vec::new(), 0);
        for (function, at) in functions {
            len += text_len(&function);
            known.insert(function.name.as_str().into(), at);
            listed.push(function);
        }
        self.libraries.insert(id.into(), known);
        if len > Self::TEXT_LEN_MAX {
            self.retain(|other| other != id);
            return Err(LibraryError::Register(format!(
                "ERR the names and descriptions of a library's functions have at most {} bytes",
                Self::TEXT_LEN_MAX
            )));
        }
        Ok(listed)
    }

    fn compile(&mut self, code: &[u8]) -> Result<c_int, LibraryError> {
        let (compiled, is_stopped) = self.state.timed(|lua, core| {
            lua.load(&load::source_text(code)[..])
                .set_name(format!("@{CHUNK_NAME}"))
                .set_mode(ChunkMode::Text)
                .set_environment(core.get::<Table>("redis_environment")?)
                .into_function()
        });
        compiled.and_then(|chunk| self.state.keep_chunk(chunk)).map_err(|error| {
            LibraryError::Compile(match error {
                _ if is_stopped => "it takes longer than the time limit".to_owned(),
                mlua::Error::SyntaxError { message, .. } => message,
                error => error.to_string(),
            })
        })
    }

    /// Runs a library's code; gives the list of what it registered. It runs without a transaction.
    fn run(&mut self, chunk: c_int) -> Result<Table, Failure> {
        let raised = |error: mlua::Error| Failure::Raised {
            message: format!("ERR {error}"),
            traceback: String::new(),
        };
        let begin = |core: &Table| core.get::<Function>("begin_loading")?.call::<()>(());
        begin(self.state.core()).map_err(raised)?;
        let context = self.state.context();
        context.procedure.clear();
        context.procedure.push_str("a library that is loaded");
        let time = self.limits.time.min(Self::LOAD_TIME_MAX);
        let run = self.state.run_library(chunk, time);
        let end = |core: &Table| core.get::<Function>("end_loading")?.call::<Table>(());
        let registered = end(self.state.core()).map_err(|_| Failure::Memory)?;
        run.map(|()| registered)
    }

    /// Why loading failed, as Redis words it.
    fn message(&self, failure: Failure) -> String {
        match failure {
            Failure::Raised { message, .. } | Failure::Refused { message, .. } => message,
            Failure::Memory => {
                format!("ERR it needs more memory than {} bytes", self.limits.memory_bytes)
            }
            Failure::Time => "ERR FUNCTION LOAD timeout".to_owned(),
            Failure::Interrupted => "ERR FUNCTION LOAD was stopped".to_owned(),
            Failure::Result(why) => {
                format!("ERR {}", why.short_message("what the library returns"))
            }
        }
    }

    /// Keeps what was registered.
    fn keep(&self, registered: &Table) -> mlua::Result<Vec<(RegisteredFunction, Known)>> {
        let mut functions = Vec::new();
        for entry in registered.sequence_values::<Table>() {
            let entry = entry?;
            let name = entry.get::<mlua::LuaString>("function_name")?.to_string_lossy();
            let description = entry.get::<Option<mlua::LuaString>>("description")?;
            let description = description.map(|text| text.as_bytes().to_vec());
            let mut flags = FunctionFlags::default();
            if let Some(given) = entry.get::<Option<Table>>("flags")? {
                for (place, flag) in FunctionFlags::NAMES.iter().enumerate() {
                    let is_set = given.get::<Option<bool>>(*flag)?.unwrap_or_default();
                    flags.0 |= u8::from(is_set) << place;
                }
            }
            let callback: Function = entry.get("callback")?;
            let info = callback.info();
            let line = info.line_defined.filter(|_| info.line_defined == info.last_line_defined);
            let known = Known { reference: self.state.keep_chunk(callback)?, line };
            functions.push((RegisteredFunction { name, description, flags }, known));
        }
        Ok(functions)
    }

    /// Calls a function of a [loaded](Self::load) library in a transaction, and gives its first result; a
    /// result that cannot be converted is nil. On `Err` the transaction must be rolled back, as after
    /// [`RedisVm::call`](crate::RedisVm::call).
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::Raised`] has the message as Redis clients get it.
    pub fn call(&mut self, call: FunctionCall<'_>, scope: Scope<'_>) -> Result<Value, CallError> {
        let FunctionCall { library, name, keys, arguments } = call;
        let function = self.libraries.get(library).and_then(|functions| functions.get(name));
        let Some(&Known { reference, line }) = function else {
            return Err(raised("ERR Function not found".to_owned()));
        };
        self.tell_line(line);
        self.state.forget_seed();
        let context = self.state.context();
        context.procedure.clear();
        context.procedure.push_str(name);
        // SAFETY: the caller lends the scope for the call; `end` takes it back before it returns.
        unsafe { context.begin(scope) };
        let result = self.state.run_function(reference, keys, arguments);
        let poison = self.state.context().end();
        match (result, poison) {
            (Ok(value), None) => Ok(value),
            (Err(failure), None) => Err(self.error(name, failure)),
            (result, Some(message)) => {
                if matches!(result, Err(Failure::Memory)) {
                    self.replace_state();
                }
                Err(CallError::HalfDone { message })
            }
        }
    }

    /// Tells Lua the line that contains a whole function, if there is one.
    fn tell_line(&mut self, line: Option<usize>) {
        if line == self.line {
            return;
        }
        self.line = line;
        let position = line.map(|line| format!("{CHUNK_NAME}:{line}: ")).unwrap_or_default();
        if let Err(error) = self.state.core().set("position_of_tail_calls", position) {
            tracing::warn!(%error, "a function's errors may name a wrong line");
        }
    }

    fn error(&mut self, name: &str, failure: Failure) -> CallError {
        if matches!(failure, Failure::Memory) {
            self.replace_state();
        }
        call_error(failure, (name, CHUNK_NAME, self.line), "the function's result", &self.limits)
    }

    /// Replaces the state. After a refused allocation it may be in an untested condition. Libraries are loaded
    /// again when they are needed.
    fn replace_state(&mut self) {
        match start(&Dialect::REDIS_FUNCTIONS, self.limits, &self.interrupt, self.version) {
            Ok(state) => {
                self.libraries.clear();
                self.line = None;
                self.state = state;
            }
            Err(error) => {
                tracing::error!("cannot replace a VM after its memory limit: {error}");
            }
        }
    }
}
