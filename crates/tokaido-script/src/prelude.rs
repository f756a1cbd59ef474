//! The half of the API that is written in Lua: its files, and what they get from the Rust half.

use mlua::{LightUserData, Lua, Table, Variadic, chunk::ChunkMode};

use crate::{
    Dialect, Limits,
    bridge::{self, Context, call, command, functions},
    cjson, json, openresty, pattern, pattern_weight,
    redis::codecs,
};

/// The core of every dialect, in the order in which the files build on each other. Each comes with
/// what it gets besides the table of parts.
const CORE: [(&str, &[&str]); 23] = [
    (include_str!("../lua/native.lua"), &[]),
    (include_str!("../lua/text.lua"), &[]),
    (include_str!("../lua/database.lua"), &["Database", ""]),
    (include_str!("../lua/database.lua"), &["Cache", "cache_"]),
    (include_str!("../lua/cdb.lua"), &[]),
    (include_str!("../lua/scan.lua"), &[]),
    (include_str!("../lua/pages.lua"), &[]),
    (include_str!("../lua/collections.lua"), &[]),
    (include_str!("../lua/hash.lua"), &[]),
    (include_str!("../lua/list.lua"), &[]),
    (include_str!("../lua/set.lua"), &[]),
    (include_str!("../lua/sorted_set.lua"), &[]),
    (include_str!("../lua/stream.lua"), &[]),
    (include_str!("../lua/stream_group.lua"), &[]),
    (include_str!("../lua/transaction.lua"), &[]),
    (include_str!("../lua/command.lua"), &[]),
    (include_str!("../lua/call.lua"), &[]),
    (include_str!("../lua/json.lua"), &[]),
    (include_str!("../lua/http.lua"), &[]),
    (include_str!("../lua/errors.lua"), &[]),
    (include_str!("../lua/patterns.lua"), &[]),
    (include_str!("../lua/bounded.lua"), &[]),
    (include_str!("../lua/sandbox.lua"), &[]),
];

/// The name of every prelude file in tracebacks; `lua/errors.lua` leaves their frames out.
const CHUNK_NAME: &str = "=[tokaido]";

/// Runs the prelude of a dialect, and gives the table of its parts.
pub(crate) fn run(
    lua: &Lua,
    dialect: &Dialect,
    context: *mut Context,
    limits: Limits,
) -> mlua::Result<Table> {
    let core = lua.create_table()?;
    core.set("runs", lua.create_table()?)?;
    core.set("null", LightUserData(std::ptr::null_mut()))?;
    let object_meta = lua.create_table()?;
    object_meta.set("__metatable", "object")?;
    core.set("object_meta", object_meta)?;
    core.set("rust", rust_side(lua, context, limits)?)?;
    let run = |text: &str, arguments: &[&str]| {
        let chunk = lua.load(text).set_name(CHUNK_NAME).set_mode(ChunkMode::Text);
        chunk.call::<()>((&core, arguments.iter().copied().collect::<Variadic<&str>>()))
    };
    for (text, arguments) in CORE {
        run(text, arguments)?;
    }
    run(dialect.loader, &[])?;
    for text in dialect.prelude {
        run(text, &[])?;
    }
    lua.named_registry_value::<Table>("_LOADED")?.set("ffi", mlua::Value::Nil)?;
    lua.gc_collect()?;
    Ok(core)
}

/// The name of the machine; empty if unknown.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

/// What the prelude gets from Rust: addresses, C functions and limits.
fn rust_side(lua: &Lua, context: *mut Context, limits: Limits) -> mlua::Result<Table> {
    let rust = lua.create_table()?;
    let native = lua.create_table()?;
    for function in bridge::native_functions() {
        let entry = lua.create_table()?;
        entry.set("c_type", function.c_type)?;
        entry.set("address", LightUserData(function.address))?;
        native.set(function.name, entry)?;
    }
    rust.set("native", native)?;
    rust.set("context", LightUserData(context.cast()))?;
    // SAFETY: the address of a field; nothing is read.
    let reply = unsafe { &raw mut (*context).reply };
    rust.set("reply", LightUserData(reply.cast()))?;
    rust.set("seed", bridge::random::seed()?)?;
    let codecs = lua.create_table()?;
    for (place, codec) in codecs::CODECS.iter().enumerate() {
        codecs.set(codec.name, place)?;
    }
    rust.set("codecs", codecs)?;
    rust.set("pid", std::process::id())?;
    rust.set("hostname", hostname())?;
    rust.set("banner", concat!("Tokaido/", env!("CARGO_PKG_VERSION")))?;
    rust.set("pattern_steps_max", limits.pattern_steps_max)?;
    rust.set("regex_run", LightUserData(openresty::regex::run_address()))?;
    // LuaJIT's own modules that only `require` opens; user code gets from them only what the prelude gives it.
    rust.set("preload", lua.named_registry_value::<Option<Table>>("_PRELOAD")?)?;
    // SAFETY: all follow the rules for C functions, and the prelude passes what they take.
    unsafe {
        rust.set("json_encode", lua.create_c_function(json::lua_encode)?)?;
        rust.set("json_decode", lua.create_c_function(json::lua_decode)?)?;
        rust.set("cjson_encode", lua.create_c_function(cjson::lua_encode)?)?;
        rust.set("cjson_decode", lua.create_c_function(cjson::lua_decode)?)?;
        rust.set("match_counted", lua.create_c_function(pattern::lua_match)?)?;
        rust.set("weigh_pattern", lua.create_c_function(pattern_weight::lua_weigh)?)?;
        rust.set("find_plain", lua.create_c_function(pattern::lua_find_plain)?)?;
        rust.set("fetch_reply", lua.create_c_function(command::lua_fetch_reply)?)?;
        rust.set("codec", lua.create_c_function(codecs::lua_codec)?)?;
        rust.set("call_procedure", lua.create_c_function(call::lua_call_procedure)?)?;
        rust.set("call_function", lua.create_c_function(functions::lua_call_function)?)?;
    }
    Ok(rust)
}
