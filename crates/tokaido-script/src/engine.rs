//! One LuaJIT state with the prelude in it, and protected calls into it.

use std::ffi::c_int;

use mlua::{Function, LightUserData, Lua, LuaOptions, StdLib, Table, chunk::ChunkMode, ffi};

use crate::{
    Limits, Value, VmError,
    bridge::{
        self, Context,
        context::{Entering, LuaSide, StoreOrReason, Target},
        host::{self, SharedFunction},
    },
    convert::{Converter, Unconvertible},
    json,
    memory::{self, MemoryGuard},
    pattern,
    watchdog::Watched,
};

/// The prelude, in the order in which its files build on each other.
const PRELUDE: [(&str, &str); 17] = [
    ("native", include_str!("../lua/native.lua")),
    ("text", include_str!("../lua/text.lua")),
    ("database", include_str!("../lua/database.lua")),
    ("cache", include_str!("../lua/database.lua")),
    ("cdb", include_str!("../lua/cdb.lua")),
    ("scan", include_str!("../lua/scan.lua")),
    ("pages", include_str!("../lua/pages.lua")),
    ("transaction", include_str!("../lua/transaction.lua")),
    ("procedure", include_str!("../lua/procedure.lua")),
    ("json", include_str!("../lua/json.lua")),
    ("http", include_str!("../lua/http.lua")),
    ("errors", include_str!("../lua/errors.lua")),
    ("patterns", include_str!("../lua/patterns.lua")),
    ("sandbox", include_str!("../lua/sandbox.lua")),
    ("loader", include_str!("../lua/loader.lua")),
    ("api", include_str!("../lua/api.lua")),
    ("script", include_str!("../lua/script.lua")),
];

/// The name of every file of the prelude in tracebacks; `lua/errors.lua` leaves its frames out.
const PRELUDE_CHUNK: &str = "=[tokaido]";

/// Why a call into Lua gave no result.
pub(crate) enum Failure {
    /// An error that nobody caught.
    Raised { message: String, traceback: String },
    /// One that the procedure raised as a table with a message.
    Refused { message: String, code: Option<String>, status: Option<u16> },
    /// The VM was refused memory.
    Memory,
    /// The watchdog stopped it.
    Time,
    /// What it returned has no form outside.
    Result(Unconvertible),
}

/// Owns the context that Lua has the address of.
struct ContextOwner(*mut Context);

impl Drop for ContextOwner {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the VM, which knows the address, has been closed.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Registry references to what is called from here.
#[derive(Clone, Copy)]
struct References {
    context: c_int,
    on_error: c_int,
    enter: c_int,
    dispatch: c_int,
}

/// A LuaJIT state. The fields are dropped in order: the context last, since Lua knows its address.
pub(crate) struct Engine {
    watched: Watched,
    lua: Lua,
    memory: Box<MemoryGuard>,
    context: ContextOwner,
    state: *mut ffi::lua_State,
    references: References,
    core: Table,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the state is the guard's, and is closed after this.
        unsafe { self.memory.remove() };
    }
}

impl Engine {
    pub(crate) fn new(store: &StoreOrReason, limits: Limits) -> Result<Self, VmError> {
        Self::build(store, limits).map_err(|error| VmError(error.to_string()))
    }

    fn build(store: &StoreOrReason, limits: Limits) -> mlua::Result<Self> {
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
        let core = run_prelude(&lua, context.0, limits)?;
        let (state, references) = take_references(&lua, &core, context.0)?;
        lua.set_memory_limit(memory::wall_bytes(limits.memory_bytes))?;
        // SAFETY: `drop` takes the guard out before the VM is closed.
        let memory = unsafe { MemoryGuard::install(state, limits.memory_bytes) };
        let watched = Watched::new(state, limits.time);
        Ok(Self { watched, lua, memory, context, state, references, core })
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

    /// Makes a function of the host a global of scripts.
    pub(crate) fn set_function(&mut self, function: SharedFunction) -> mlua::Result<()> {
        let functions = &mut self.context().functions;
        let (index, name) = (functions.len(), function.0.clone());
        functions.push(function);
        self.core.get::<Function>("set_host_function")?.call((name, index))
    }

    /// Runs `body` without a memory limit.
    pub(crate) fn without_memory_limit<T>(
        &mut self,
        limit_bytes: usize,
        body: impl FnOnce(&mut Self) -> T,
    ) -> mlua::Result<T> {
        self.set_memory_limit(usize::MAX, 0)?;
        let result = body(self);
        self.lua.gc_collect()?;
        self.set_memory_limit(limit_bytes, memory::wall_bytes(limit_bytes))?;
        Ok(result)
    }

    fn set_memory_limit(&mut self, limit_bytes: usize, wall_bytes: usize) -> mlua::Result<()> {
        // SAFETY: the guard is put back at once; mlua changes its limit only while its own
        // allocator is in place.
        unsafe {
            self.memory.remove();
            let set = self.lua.set_memory_limit(wall_bytes);
            self.memory = MemoryGuard::install(self.state, limit_bytes);
            set.map(|_| ())
        }
    }

    /// Runs something in Lua under the time limit; tells whether it was stopped.
    pub(crate) fn timed<T>(&mut self, body: impl FnOnce(&Lua, &Table) -> T) -> (T, bool) {
        let call = self.watched.begin();
        let result = body(&self.lua, &self.core);
        let stopped = call.end();
        self.memory.end_call();
        (result, stopped)
    }

    /// Calls a procedure, and gives its first result.
    pub(crate) fn call(&mut self, run: i64, arguments: &[Value]) -> Result<Value, Failure> {
        let entering = Entering { target: Target::Procedure(run), arguments };
        self.context().entering = Some(entering);
        let (state, converter) = (self.state, self.context().lua_side.converter);
        self.protected(true, |references| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, references.enter);
                push_reference(state, references.context);
            }
            (1, 1)
        })?;
        // SAFETY: `protected` left one result on the stack, and it is taken off.
        unsafe {
            let result = converter.read(state, ffi::lua_gettop(state));
            ffi::lua_pop(state, 1);
            result.map_err(Failure::Result)
        }
    }

    /// Calls the handler of a route; request and response are in the context.
    pub(crate) fn dispatch(&mut self, run: i64) -> Result<(), Failure> {
        let state = self.state;
        self.protected(true, |references| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, references.dispatch);
                ffi::lua_pushinteger(state, run as ffi::lua_Integer);
            }
            (1, 0)
        })
    }

    /// Calls a chunk without a time limit, and gives all its results.
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
        let (state, converter) = (self.state, self.context().lua_side.converter);
        // SAFETY: the stack is put back as it was.
        let base = unsafe { ffi::lua_gettop(state) };
        let outcome = self.protected(false, |references| {
            // SAFETY: `protected` has made room.
            unsafe {
                push_reference(state, references.enter);
                push_reference(state, references.context);
            }
            (1, ffi::LUA_MULTRET)
        });
        // SAFETY: as above; the results are between `base` and the top.
        unsafe {
            ffi::luaL_unref(state, ffi::LUA_REGISTRYINDEX, reference);
            let results = outcome.and_then(|()| {
                (base + 1..=ffi::lua_gettop(state))
                    .map(|index| converter.read(state, index).map_err(Failure::Result))
                    .collect()
            });
            ffi::lua_settop(state, base);
            results
        }
    }

    /// A protected call of what `push` pushes; it answers the numbers of arguments and results. The
    /// results are left on the stack.
    fn protected(
        &mut self,
        timed: bool,
        push: impl FnOnce(References) -> (c_int, c_int),
    ) -> Result<(), Failure> {
        let (state, references) = (self.state, self.references);
        let call = timed.then(|| self.watched.begin());
        // SAFETY: the state is ours, and no other Lua code runs. Reading from the registry
        // allocates nothing, so nothing raises outside of the protected call.
        let (base, status) = unsafe {
            let base = ffi::lua_gettop(state);
            ffi::lua_checkstack(state, 8);
            push_reference(state, references.on_error);
            let (arguments, results) = push(references);
            let status = ffi::lua_pcall(state, arguments, results, base + 1);
            ffi::lua_remove(state, base + 1);
            (base, status)
        };
        let stopped = call.is_some_and(|call| call.end());
        let refused = self.memory.end_call();
        let failure = if stopped {
            Failure::Time
        } else if refused || status == ffi::LUA_ERRMEM {
            Failure::Memory
        } else if status != ffi::LUA_OK {
            // SAFETY: a failed call leaves one value.
            let raised = unsafe { self.context().lua_side.converter.read(state, base + 1) };
            failure_of(raised)
        } else {
            return Ok(());
        };
        // SAFETY: the stack is put back as it was.
        unsafe { ffi::lua_settop(state, base) };
        Err(failure)
    }
}

/// What `on_error` of the prelude makes of an error.
#[derive(Default)]
struct Report {
    message: String,
    traceback: String,
    code: Option<String>,
    status: Option<u16>,
    refused: bool,
}

impl Report {
    fn set(&mut self, name: &[u8], value: Value) {
        match (name, value) {
            (b"message", Value::String(text)) => self.message = lossy(&text),
            (b"traceback", Value::String(text)) => self.traceback = lossy(&text),
            (b"code", Value::String(text)) => self.code = Some(lossy(&text)),
            (b"status", Value::Integer(status)) => self.status = u16::try_from(status).ok(),
            (b"refused", Value::Boolean(refused)) => self.refused = refused,
            _ => {}
        }
    }
}

/// Reads a report; where `on_error` failed itself, LuaJIT leaves a string.
fn failure_of(raised: Result<Value, Unconvertible>) -> Failure {
    let mut report = Report::default();
    match raised {
        Ok(Value::Map(fields)) => {
            for (name, value) in fields {
                if let Value::String(name) = name {
                    report.set(&name, value);
                }
            }
        }
        Ok(Value::String(text)) => report.message = lossy(&text),
        _ => report.message = "an error without a message".to_owned(),
    }
    let Report { message, traceback, code, status, refused } = report;
    if refused {
        Failure::Refused { message, code, status }
    } else {
        Failure::Raised { message, traceback }
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

unsafe fn push_reference(state: *mut ffi::lua_State, reference: c_int) {
    // SAFETY: the caller has made room.
    unsafe { ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, reference.into()) };
}

/// Puts a value into the registry; gives the main state, too.
fn make_reference(
    lua: &Lua,
    value: impl mlua::IntoLua,
) -> mlua::Result<(*mut ffi::lua_State, c_int)> {
    let mut made = (std::ptr::null_mut(), ffi::LUA_NOREF);
    // SAFETY: takes the one value off the stack.
    unsafe {
        lua.exec_raw::<()>(value, |state| {
            made = (state, ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX));
        })?;
    }
    Ok(made)
}

fn run_prelude(lua: &Lua, context: *mut Context, limits: Limits) -> mlua::Result<Table> {
    let core = lua.create_table()?;
    core.set("runs", lua.create_table()?)?;
    core.set("null", LightUserData(std::ptr::null_mut()))?;
    let functions = lua.create_table()?;
    for function in bridge::functions() {
        let entry = lua.create_table()?;
        entry.set("c_type", function.c_type)?;
        entry.set("address", LightUserData(function.address))?;
        functions.set(function.name, entry)?;
    }
    let address = LightUserData(context.cast());
    let object_meta = lua.create_table()?;
    object_meta.set("__metatable", "object")?;
    core.set("object_meta", &object_meta)?;
    for (name, text) in PRELUDE {
        let chunk = lua.load(text).set_name(PRELUDE_CHUNK).set_mode(ChunkMode::Text);
        match name {
            "native" => {
                // SAFETY: the address of a field; nothing is read.
                let reply = unsafe { &raw mut (*context).reply };
                let reply = LightUserData(reply.cast());
                chunk.call::<()>((&core, &functions, address, reply))?;
            }
            "database" => chunk.call::<()>((&core, "Database", ""))?,
            "cache" => chunk.call::<()>((&core, "Cache", "cache_"))?,
            "json" => {
                // SAFETY: both keep to the rules of C functions, and are given the context.
                let (encode, decode) = unsafe {
                    (
                        lua.create_c_function(json::lua_encode)?,
                        lua.create_c_function(json::lua_decode)?,
                    )
                };
                chunk.call::<()>((&core, encode, decode, address, &object_meta))?;
            }
            "patterns" => {
                // SAFETY: keeps to the rules of C functions; the prelude passes what it takes.
                let match_counted = unsafe { lua.create_c_function(pattern::lua_match)? };
                chunk.call::<()>((&core, match_counted, limits.pattern_steps_max))?;
            }
            "script" => {
                // SAFETY: keeps to the rules of C functions, and is given the context.
                let call_host = unsafe { lua.create_c_function(host::lua_call_host)? };
                chunk.call::<()>((&core, call_host, address))?;
            }
            _ => chunk.call::<()>(&core)?,
        }
    }
    lua.named_registry_value::<Table>("_LOADED")?.set("ffi", mlua::Value::Nil)?;
    lua.gc_collect()?;
    Ok(core)
}

fn take_references(
    lua: &Lua,
    core: &Table,
    context: *mut Context,
) -> mlua::Result<(*mut ffi::lua_State, References)> {
    let text: Table = core.get("text")?;
    let of = |table: &Table, name: &str| -> mlua::Result<c_int> {
        Ok(make_reference(lua, table.get::<mlua::Value>(name)?)?.1)
    };
    let converter = Converter {
        integer_from_halves: of(&text, "integer_from_halves")?,
        integer_to_halves: of(&text, "integer_to_halves")?,
        object_meta: of(core, "object_meta")?,
    };
    // SAFETY: `enter` keeps to the rules of C functions, and is given the context.
    let enter = unsafe { lua.create_c_function(enter)? };
    let (state, address) = make_reference(lua, LightUserData(context.cast()))?;
    let references = References {
        context: address,
        on_error: of(core, "on_error")?,
        enter: make_reference(lua, enter)?.1,
        dispatch: of(core, "dispatch")?,
    };
    let lua_side =
        LuaSide { converter, runs: of(core, "runs")?, transaction: of(core, "transaction")? };
    // SAFETY: nothing runs in the VM now.
    unsafe { (*context).lua_side = lua_side };
    Ok((state, references))
}

/// Called protected with the context: pushes the function and its arguments, and calls it.
unsafe extern "C-unwind" fn enter(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `Engine::protected` passes the context, and whoever set `entering` holds the
    // arguments until it returns. Nothing here needs dropping when a raise passes through.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let Some(Entering { target, arguments }) = context.entering.take() else { return 0 };
        let LuaSide { converter, runs, transaction } = context.lua_side;
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
        }
        for argument in arguments {
            converter.push(state, argument, false);
        }
        ffi::lua_call(state, count, ffi::LUA_MULTRET);
        ffi::lua_gettop(state)
    }
}
