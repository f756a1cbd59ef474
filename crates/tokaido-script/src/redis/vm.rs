//! The virtual machine for scripts that clients send.

use std::{collections::HashMap, ffi::c_int};

use mlua::{Table, chunk::ChunkMode};

use crate::{
    CallError, Dialect, Interrupt, Limits, RuntimeError, Scope, Value, failure::Failure,
    limits::REDIS_CHUNKS_MAX, load, state::LuaState, vm::cannot_start,
};

/// A script, by the name that it is known by: the SHA-1 of its text, in hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct RedisScript<'s> {
    /// The name.
    pub name: &'s str,
    /// Lua, perhaps after a line that begins with `#!`.
    pub text: &'s [u8],
}

/// What a script is called with.
#[derive(Clone, Copy, Debug)]
pub struct RedisCall<'c> {
    /// The script.
    pub script: RedisScript<'c>,
    /// What is in `KEYS`.
    pub keys: &'c [&'c [u8]],
    /// What is in `ARGV`.
    pub arguments: &'c [&'c [u8]],
}

/// A Lua virtual machine for Redis scripts. It belongs to one thread.
///
/// Scripts are code that clients send. They get nothing but allow-listed functions, see no other
/// script, change no table that another one sees, and are bounded in time and memory.
pub struct RedisVm {
    state: LuaState,
    limits: Limits,
    interrupt: Interrupt,
    version: (u8, u8, u8),
    /// Compiled scripts, by name.
    chunks: HashMap<Box<str>, c_int>,
    /// Whether the last script that ran has one line, as Lua was told.
    has_one_line: bool,
}

const WHY_NO_STORE: &str = "scripts of Redis have no store but by redis.call";

/// What Lua calls a script in its messages.
const CHUNK_NAME: &str = "user_script";

impl RedisVm {
    /// Starts a VM. Scripts are told that the server has that version of Redis.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn new(limits: Limits, version: (u8, u8, u8)) -> Result<Self, RuntimeError> {
        let interrupt = Interrupt::default();
        let state = start(&Dialect::REDIS, limits, &interrupt, version)?;
        let chunks = HashMap::new();
        Ok(Self { state, limits, interrupt, version, chunks, has_one_line: false })
    }

    /// What stops the scripts of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Compiles a script, and keeps it for its calls.
    ///
    /// # Errors
    /// What is wrong with it, as `user_script:1: …`.
    pub fn compile(&mut self, script: RedisScript<'_>) -> Result<(), String> {
        self.chunk(script).map(|_| ())
    }

    /// Drops all compiled scripts.
    pub fn forget(&mut self) {
        for (_, chunk) in self.chunks.drain() {
            self.state.drop_chunk(chunk);
        }
    }

    fn chunk(&mut self, script: RedisScript<'_>) -> Result<c_int, String> {
        if let Some(&chunk) = self.chunks.get(script.name) {
            return Ok(chunk);
        }
        let (compiled, is_stopped) = self.state.timed(|lua, core| {
            lua.load(&load::source_text(script.text)[..])
                .set_name(format!("@{CHUNK_NAME}"))
                .set_mode(ChunkMode::Text)
                .set_environment(core.get::<Table>("redis_environment")?)
                .into_function()
        });
        let chunk = compiled.and_then(|chunk| self.state.keep_chunk(chunk));
        let chunk = chunk.map_err(|error| match error {
            _ if is_stopped => "it takes longer than the time limit".to_owned(),
            mlua::Error::SyntaxError { message, .. } => message,
            error => error.to_string(),
        })?;
        if self.chunks.len() == REDIS_CHUNKS_MAX {
            self.forget();
        }
        self.chunks.insert(script.name.into(), chunk);
        Ok(chunk)
    }

    /// Runs a script in a transaction, and gives its first result; a result that cannot be converted is
    /// nil. On `Err` the transaction must be rolled back.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::Raised`] has the message as Redis clients get it, and what the
    /// script wrote before it may be committed nevertheless.
    pub fn call(&mut self, call: RedisCall<'_>, scope: Scope<'_>) -> Result<Value, CallError> {
        let RedisCall { script, keys, arguments } = call;
        let chunk = self.chunk(script).map_err(|message| {
            raised(format!("ERR Error compiling script (new function): {message}"))
        })?;
        let has_one_line = self.tell_lines(script.text);
        self.state.forget_seed();
        let context = self.state.context();
        context.procedure.clear();
        context.procedure.push_str(script.name);
        // SAFETY: the caller lends the scope for the call; `end` takes it back before it returns.
        unsafe { context.begin(scope) };
        let result = self.state.run_redis(chunk, keys, arguments);
        let poison = self.state.context().end();
        match (result, poison) {
            (Ok(value), None) => Ok(value),
            (Err(failure), None) => Err(self.error(script, has_one_line, failure)),
            (result, Some(message)) => {
                if matches!(result, Err(Failure::Memory)) {
                    self.replace_state();
                }
                Err(CallError::HalfDone { message })
            }
        }
    }

    /// Tells Lua whether the script has a single line, which then is the line of everything.
    fn tell_lines(&mut self, text: &[u8]) -> bool {
        let has_one_line = !text.trim_ascii_end().contains(&b'\n');
        if has_one_line != self.has_one_line {
            self.has_one_line = has_one_line;
            let position = if has_one_line { format!("{CHUNK_NAME}:1: ") } else { String::new() };
            if let Err(error) = self.state.core().set("position_of_tail_calls", position) {
                tracing::warn!(%error, "a script's errors may name a wrong line");
            }
        }
        has_one_line
    }

    fn error(
        &mut self,
        script: RedisScript<'_>,
        has_one_line: bool,
        failure: Failure,
    ) -> CallError {
        if matches!(failure, Failure::Memory) {
            self.replace_state();
        }
        let line = has_one_line.then_some(1);
        call_error(failure, (script.name, CHUNK_NAME, line), "the script's result", &self.limits)
    }

    /// Replaces the state, which may be in an untested condition after refused memory; that is cheap.
    fn replace_state(&mut self) {
        match start(&Dialect::REDIS, self.limits, &self.interrupt, self.version) {
            Ok(state) => {
                self.chunks.clear();
                self.has_one_line = false;
                self.state = state;
            }
            Err(error) => {
                tracing::error!("cannot replace a VM after its memory limit: {error}");
            }
        }
    }
}

/// What the caller is told about a failed script or function. `chunk` is Lua's name for its text, `line`
/// the line that contains all of it, if there is one: in a tail call Lua does not know the position.
pub(super) fn call_error(
    failure: Failure,
    (name, chunk, line): (&str, &str, Option<usize>),
    result: &str,
    limits: &Limits,
) -> CallError {
    let name = name.to_owned();
    match failure {
        Failure::Raised { message, traceback: place } => {
            let place = match line {
                Some(line) if place.is_empty() => format!("@{chunk}:{line}"),
                _ => place,
            };
            let at = if place.is_empty() { String::new() } else { format!(", on {place}.") };
            raised(format!("{message} script: {name}{at}"))
        }
        Failure::Refused { message, .. } => raised(message),
        Failure::Memory => CallError::MemoryLimit { name, limit_bytes: limits.memory_bytes },
        Failure::Time => {
            let limit_ms = u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX);
            CallError::TimeLimit { name, limit_ms }
        }
        Failure::Interrupted => CallError::Interrupted,
        Failure::Result(why) => raised(format!("ERR {}", why.short_message(result))),
    }
}

pub(super) fn raised(message: String) -> CallError {
    CallError::Raised { message, traceback: String::new() }
}

pub(super) fn start(
    dialect: &'static Dialect,
    limits: Limits,
    interrupt: &Interrupt,
    (major, minor, patch): (u8, u8, u8),
) -> Result<LuaState, RuntimeError> {
    let store = Err(WHY_NO_STORE.into());
    let state = LuaState::new(dialect, &store, limits, interrupt.clone())?;
    let number = u32::from_be_bytes([0, major, minor, patch]);
    let text = format!("{major}.{minor}.{patch}");
    let set = state.core().get::<mlua::Function>("set_version");
    set.and_then(|set| set.call::<()>((text, number))).map_err(|error| cannot_start(&error))?;
    Ok(state)
}
