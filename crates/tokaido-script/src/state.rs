//! One Lua state with the prelude in it, and protected calls into it.

use std::{ffi::c_int, ops::RangeInclusive, time::Duration};

use mlua::{Function, LightUserData, Lua, LuaOptions, StdLib, Table, ffi};

use crate::{
    Dialect, Interrupt, Limits, RuntimeError, Value,
    bridge::{
        Context,
        context::{Entering, LuaSide, StoreOrReason, Target},
        functions::SharedFunction,
        random,
        texts::Texts,
        timers::Timers,
    },
    convert::{Converter, Style},
    failure::{Failure, failure_of},
    memory::{self, MemoryGuard},
    prelude, redis,
    vm::cannot_start,
    watchdog::{Stop, StopTarget, Watched},
};

/// Owns the context, whose address Lua has.
struct ContextOwner(*mut Context);

impl Drop for ContextOwner {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the VM, which knows the address, has been closed.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Registry references to what Rust calls.
#[derive(Clone, Copy)]
struct References {
    context: c_int,
    on_error: c_int,
    enter: c_int,
    dispatch: c_int,
    /// Resumes a handler that waits; in dialects whose handlers can wait.
    wake: c_int,
    /// Runs the function of a timer; in dialects that have timers.
    fire: c_int,
}

/// A Lua state. The fields are dropped in order: the context last, since Lua knows its address.
pub(crate) struct LuaState {
    dialect: &'static Dialect,
    watched: Watched,
    lua: Lua,
    memory: Box<MemoryGuard>,
    context: ContextOwner,
    raw: *mut ffi::lua_State,
    references: References,
    core: Table,
    limits: Limits,
}

impl Drop for LuaState {
    fn drop(&mut self) {
        // SAFETY: this is the guard's state, and it is closed after this.
        unsafe { self.memory.remove() };
    }
}

impl LuaState {
    pub(crate) fn new(
        dialect: &'static Dialect,
        store: &StoreOrReason,
        limits: Limits,
        interrupt: Interrupt,
    ) -> Result<Self, RuntimeError> {
        Self::build(dialect, store, limits, interrupt).map_err(|error| cannot_start(&error))
    }

    fn build(
        dialect: &'static Dialect,
        store: &StoreOrReason,
        limits: Limits,
        interrupt: Interrupt,
    ) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE
            | StdLib::STRING
            | StdLib::MATH
            | StdLib::BIT
            | StdLib::OS
            | StdLib::JIT
            | StdLib::FFI
            | StdLib::DEBUG;
        // SAFETY: the unsafe libraries are for the prelude; it takes them out of the globals
        // before any other code runs.
        let lua = unsafe { Lua::unsafe_new_with(libraries, LuaOptions::default()) };
        let context = ContextOwner(Box::into_raw(Box::new(Context::new(store.clone(), limits))));
        let core = prelude::run(&lua, dialect, context.0, limits)?;
        let (raw, references) =
            take_references(&lua, dialect, &core, context.0, limits.memory_bytes)?;
        lua.set_memory_limit(memory::wall_bytes(limits.memory_bytes))?;
        // SAFETY: `drop` removes the guard before the VM is closed.
        let memory = unsafe { MemoryGuard::install(raw, limits.memory_bytes) };
        let watched = Watched::new(StopTarget::of_lua(raw), interrupt);
        Ok(Self { dialect, watched, lua, memory, context, raw, references, core, limits })
    }

    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    pub(crate) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// The prelude's table of its parts.
    pub(crate) fn core(&self) -> &Table {
        &self.core
    }

    /// The context. Only while no Lua code runs.
    pub(crate) fn context(&mut self) -> &mut Context {
        // SAFETY: native functions borrow it only while Lua runs, which needs `&mut self`.
        unsafe { &mut *self.context.0 }
    }

    /// Gives `math.random` a new seed if an earlier call, or a loaded file, has set one.
    pub(crate) fn forget_seed(&mut self) {
        if !std::mem::take(&mut self.context().is_seeded) {
            return;
        }
        let new_seed = || self.core.get::<Function>("reseed")?.call::<()>(random::seed()?);
        if let Err(error) = new_seed() {
            tracing::warn!(%error, "math.random goes on with the seed that an earlier call has set");
        }
    }

    /// Makes Lua look up its databases again if any was dropped since it last did.
    pub(crate) fn forget_dropped(&mut self, dropped: u64) {
        if self.context().dropped == dropped {
            return;
        }
        let forget = || self.core.get::<Function>("forget_databases")?.call::<()>(());
        match forget() {
            Ok(()) => self.context().dropped = dropped,
            Err(error) => tracing::warn!(%error, "databases that were dropped are not forgotten"),
        }
    }

    /// Makes a host function a global of scripts.
    pub(crate) fn set_function(&mut self, function: SharedFunction) -> mlua::Result<()> {
        let functions = &mut self.context().functions;
        let (index, name) = (functions.len(), function.0.clone());
        functions.push(function);
        self.core.get::<Function>("set_function")?.call((name, index))
    }

    /// Runs `body` with the memory limit of scripts.
    pub(crate) fn with_memory_of_scripts<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> T,
    ) -> mlua::Result<T> {
        match self.limits.script_memory_bytes {
            // mlua takes 0 for no limit.
            None => self.set_memory_limit(usize::MAX, 0)?,
            Some(limit) => self.set_memory_limit(limit, memory::wall_bytes(limit))?,
        }
        let result = body(self);
        self.lua.gc_collect()?;
        let limit = self.limits.memory_bytes;
        self.set_memory_limit(limit, memory::wall_bytes(limit))?;
        Ok(result)
    }

    fn set_memory_limit(&mut self, limit_bytes: usize, wall_bytes: usize) -> mlua::Result<()> {
        // SAFETY: the guard is restored at once; mlua changes its limit only while its own allocator is
        // in place.
        unsafe {
            self.memory.remove();
            let set = self.lua.set_memory_limit(wall_bytes);
            self.memory = MemoryGuard::install(self.raw, limit_bytes);
            set?;
        }
        self.context().lua_side.converter.bytes_max = limit_bytes;
        Ok(())
    }

    /// Runs `body` in Lua under the time limit; tells whether it was stopped.
    pub(crate) fn timed<T>(&mut self, body: impl FnOnce(&Lua, &Table) -> T) -> (T, bool) {
        self.context().free_regexes();
        let call = self.watched.begin(Some(self.limits.time));
        let result = body(&self.lua, &self.core);
        let stopped = call.end();
        self.memory.end_call();
        (result, stopped.is_some())
    }

    /// Calls a procedure, and gives its first result.
    pub(crate) fn call(&mut self, run: i64, arguments: &[Value]) -> Result<Value, Failure> {
        let converter = self.context().lua_side.converter;
        self.enter(Target::Procedure(run), arguments, converter, self.limits.time)
    }

    /// Runs a compiled Redis script, and gives its first result.
    pub(crate) fn run_redis(
        &mut self,
        chunk: c_int,
        keys: &[&[u8]],
        arguments: &[&[u8]],
    ) -> Result<Value, Failure> {
        let (keys, arguments) = (Texts::new(keys), Texts::new(arguments));
        self.enter_redis(Target::Script { chunk, keys, arguments }, self.limits.time)
    }

    /// Calls a function of a library, and gives its first result.
    pub(crate) fn run_function(
        &mut self,
        function: c_int,
        keys: &[&[u8]],
        arguments: &[&[u8]],
    ) -> Result<Value, Failure> {
        let (keys, arguments) = (Texts::new(keys), Texts::new(arguments));
        self.enter_redis(Target::Function { function, keys, arguments }, self.limits.time)
    }

    /// Runs a library's code, which registers its functions.
    pub(crate) fn run_library(&mut self, chunk: c_int, limit: Duration) -> Result<(), Failure> {
        self.enter_redis(Target::Chunk(chunk), limit).map(drop)
    }

    fn enter_redis(&mut self, target: Target, limit: Duration) -> Result<Value, Failure> {
        let converter = self.context().lua_side.converter.lenient();
        self.enter(target, &[], converter, limit)
    }

    fn enter(
        &mut self,
        target: Target,
        arguments: &[Value],
        converter: Converter,
        limit: Duration,
    ) -> Result<Value, Failure> {
        self.context().entering = Some(Entering { target, arguments });
        let state = self.raw;
        let push = |references: References| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, references.enter);
                push_reference(state, references.context);
            }
            (1, 1)
        };
        // SAFETY: there is one result.
        let take = |places: RangeInclusive<c_int>| unsafe { converter.read(state, *places.end()) };
        self.protected(Some(limit), push, take)?.map_err(Failure::Result)
    }

    /// Puts a compiled chunk into the registry.
    pub(crate) fn keep_chunk(&self, chunk: Function) -> mlua::Result<c_int> {
        Ok(make_reference(&self.lua, chunk)?.1)
    }

    /// Removes it from the registry.
    pub(crate) fn drop_chunk(&self, chunk: c_int) {
        // SAFETY: the state is ours, and no Lua code runs.
        unsafe { ffi::luaL_unref(self.raw, ffi::LUA_REGISTRYINDEX, chunk) };
    }

    /// Calls the handler of a route; request and response are in the context.
    pub(crate) fn dispatch(&mut self, run: i64) -> Result<(), Failure> {
        self.call_with_number(self.references.dispatch, run as f64)
    }

    /// Resumes a handler that waits.
    pub(crate) fn wake(&mut self, slot: u64) -> Result<(), Failure> {
        self.call_with_number(self.references.wake, slot as f64)
    }

    /// Runs the function of a timer.
    pub(crate) fn fire(&mut self, timer: u64) -> Result<(), Failure> {
        self.call_with_number(self.references.fire, timer as f64)
    }

    /// The timers that its code has made.
    pub(crate) fn timers(&self) -> &Timers {
        // SAFETY: as in `context`; native functions run only while Lua does, which needs `&mut self`.
        unsafe { &(*self.context.0).timers }
    }

    /// From here on timers are told that they are premature.
    pub(crate) fn retire(&self) {
        if let Err(error) = self.core.set("is_exiting", true) {
            tracing::warn!(%error, "timers are not told that their program is over");
        }
    }

    fn call_with_number(&mut self, function: c_int, number: f64) -> Result<(), Failure> {
        let state = self.raw;
        let push = |_: References| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, function);
                ffi::lua_pushnumber(state, number);
            }
            (1, 0)
        };
        self.protected(Some(self.limits.time), push, |_| ())
    }

    /// Calls a script's chunk, and gives all its results.
    pub(crate) fn run_chunk(
        &mut self,
        chunk: Function,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Failure> {
        let reference = make_reference(&self.lua, chunk)
            .map_err(|error| Failure::Raised {
                message: error.to_string(),
                traceback: String::new(),
            })?
            .1;
        let entering = Entering { target: Target::Chunk(reference), arguments };
        self.context().entering = Some(entering);
        let (state, converter) = (self.raw, self.context().lua_side.converter);
        let push = |references: References| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, references.enter);
                push_reference(state, references.context);
            }
            (1, ffi::LUA_MULTRET)
        };
        let take = |places: RangeInclusive<c_int>| {
            // SAFETY: the results are at these places.
            places.map(|place| unsafe { converter.read(state, place) }).collect()
        };
        let outcome: Result<Result<_, _>, _> = self.protected(self.limits.script_time, push, take);
        // SAFETY: the reference was made above, and nothing uses it any more.
        unsafe { ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, reference) };
        outcome?.map_err(Failure::Result)
    }

    /// Makes a protected call of what `push` pushes; `push` gives the numbers of arguments and results.
    /// `take` gets the places of the results on the stack; it is under the time limit, too.
    fn protected<T>(
        &mut self,
        limit: Option<Duration>,
        push: impl FnOnce(References) -> (c_int, c_int),
        take: impl FnOnce(RangeInclusive<c_int>) -> T,
    ) -> Result<T, Failure> {
        self.context().free_regexes();
        let (state, references) = (self.raw, self.references);
        let call = self.watched.begin(limit);
        // SAFETY: the state is ours, and no other Lua code runs. Reading from the registry
        // allocates nothing, so nothing raises outside of the protected call.
        let (base, status, taken) = unsafe {
            let base = ffi::lua_gettop(state);
            ffi::lua_checkstack(state, 8);
            push_reference(state, references.on_error);
            let (arguments, results) = push(references);
            let status = ffi::lua_pcall(state, arguments, results, base + 1);
            ffi::lua_remove(state, base + 1);
            let taken = (status == ffi::LUA_OK).then(|| take(base + 1..=ffi::lua_gettop(state)));
            (base, status, taken)
        };
        let stopped = call.end();
        let refused = self.memory.end_call();
        let outcome = match (stopped, taken) {
            // First, because the caller then replaces the virtual machine, which may be in any state. Collecting a large
            // heap's garbage may also take until the time is over.
            _ if refused => Err(Failure::Memory),
            (Some(Stop::Time), _) => Err(Failure::Time),
            (Some(Stop::Interrupt), _) => Err(Failure::Interrupted),
            (None, _) if status == ffi::LUA_ERRMEM => Err(Failure::Memory),
            (None, Some(taken)) => Ok(taken),
            (None, None) => {
                // SAFETY: a failed call leaves one value.
                let raised = unsafe { self.context().lua_side.converter.read(state, base + 1) };
                Err(failure_of(raised))
            }
        };
        // SAFETY: the stack is restored to what it was.
        unsafe { ffi::lua_settop(state, base) };
        outcome
    }
}

unsafe fn push_reference(state: *mut ffi::lua_State, reference: c_int) {
    // SAFETY: the caller has made room.
    unsafe { ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, reference.into()) };
}

/// Puts a value into the registry; also gives the main state.
fn make_reference(
    lua: &Lua,
    value: impl mlua::IntoLua,
) -> mlua::Result<(*mut ffi::lua_State, c_int)> {
    let mut made = (std::ptr::null_mut(), ffi::LUA_NOREF);
    // SAFETY: takes the single value off the stack.
    unsafe {
        lua.exec_raw::<()>(value, |state| {
            made = (state, ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX));
        })?;
    }
    Ok(made)
}

fn take_references(
    lua: &Lua,
    dialect: &Dialect,
    core: &Table,
    context: *mut Context,
    bytes_max: usize,
) -> mlua::Result<(*mut ffi::lua_State, References)> {
    let text: Table = core.get("text")?;
    let of = |table: &Table, name: &str| -> mlua::Result<c_int> {
        Ok(make_reference(lua, table.get::<mlua::Value>(name)?)?.1)
    };
    let converter = Converter {
        integer_from_halves: of(&text, "integer_from_halves")?,
        integer_to_halves: of(&text, "integer_to_halves")?,
        object_meta: of(core, "object_meta")?,
        bytes_max,
        style: match dialect.has_exact_values {
            true => Style::Exact,
            false => Style::Plain { is_lenient: false },
        },
    };
    // SAFETY: `enter` follows the rules for C functions, and is given the context.
    let enter = unsafe { lua.create_c_function(enter)? };
    let (state, address) = make_reference(lua, LightUserData(context.cast()))?;
    let references = References {
        context: address,
        on_error: of(core, "on_error")?,
        enter: make_reference(lua, enter)?.1,
        dispatch: of(core, "dispatch")?,
        wake: of(core, "wake")?,
        fire: of(core, "fire")?,
    };
    let lua_side = LuaSide {
        converter,
        runs: of(core, "runs")?,
        transaction: of(core, "transaction")?,
        redis_globals: of(core, "redis_globals")?,
    };
    // SAFETY: nothing runs in the VM now.
    unsafe { (*context).lua_side = lua_side };
    Ok((state, references))
}

/// Runs in a protected call with the context: pushes the function and its arguments, and calls it.
unsafe extern "C-unwind" fn enter(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `LuaState::protected` passes the context, and the code that set `entering` holds the
    // arguments until it returns. Nothing here needs dropping when a raise passes through.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let Some(Entering { target, arguments }) = context.entering.take() else { return 0 };
        let LuaSide { converter, runs, transaction, redis_globals } = context.lua_side;
        ffi::lua_settop(state, 0);
        let arguments = &*arguments;
        let mut count = arguments.len() as c_int;
        match target {
            Target::Procedure(run) => {
                push_reference(state, runs);
                ffi::lua_rawgeti(state, 1, run as ffi::lua_Integer);
                push_reference(state, transaction);
                ffi::lua_remove(state, 1);
                count += 1;
            }
            Target::Chunk(chunk) => push_reference(state, chunk),
            Target::Script { chunk, keys, arguments } => {
                push_reference(state, redis_globals);
                redis::set_texts(state, c"KEYS", keys);
                redis::set_texts(state, c"ARGV", arguments);
                ffi::lua_settop(state, 0);
                push_reference(state, chunk);
            }
            Target::Function { function, keys, arguments } => {
                push_reference(state, function);
                redis::push_texts(state, keys);
                redis::push_texts(state, arguments);
                count = 2;
            }
        }
        for argument in arguments {
            converter.push(state, argument, false);
        }
        ffi::lua_call(state, count, ffi::LUA_MULTRET);
        ffi::lua_gettop(state)
    }
}
