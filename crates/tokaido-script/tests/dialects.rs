//! A dialect other than the native one: other functions, another loader, another rule for globals.

mod support;

use std::sync::Arc;

use support::{MemoryStore, sources, text};
use tokaido_script::{Dialect, Globals, Limits, LoadError, Lua, Mode, Runtime, Transaction, start};
use tokaido_store::Store;

/// Global functions of a file are its procedures, all files have `shout`, and globals stay.
static PLAIN: Dialect = Dialect {
    extension: "lua",
    name: "plain",
    loader: r#"
        local core = ...
        local xpcall, pairs, type, rawget = xpcall, pairs, type, rawget
        local environment_of = core.libraries.debug.getfenv
        local chunks, failures, runs = {}, {}, {}

        core.loader = {
          define = function(name, path, chunk) chunks[name] = chunk end,
          define_broken = function(name, path, message) failures[name] = message end,
          load = function(name)
            local ok, failure = xpcall(chunks[name], core.on_error)
            if not ok then return failure end
          end,
          abandon = function() end,
          exports = function(name)
            local environment, exports = environment_of(chunks[name]), {}
            local given = core.sandbox.environment(false)
            for field, value in pairs(environment) do
              if type(value) == "function" and rawget(given, field) == nil then
                exports[#exports + 1] = { field = field, mode = "write", run = value, line = 1 }
              end
            end
            table.sort(exports, function(a, b) return a.field < b.field end)
            return exports
          end,
        }
    "#,
    prelude: &["local core = ... core.sandbox.functions.shout = function(t) return t:upper() end"],
    globals: Globals::Allowed,
    settings: &[],
    has_exact_values: true,
};

static DIALECTS: [&Dialect; 2] = [&Dialect::NATIVE, &PLAIN];

fn start_with(files: &[(&str, &str)]) -> (MemoryStore, Box<dyn Runtime>, Vec<LoadError>) {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let lua = Lua { dialects: DIALECTS.to_vec(), ..Lua::default() };
    let started = start(&[Arc::new(lua)], &shared, &sources(files), Limits::default());
    let (runtime, errors) = started.unwrap();
    (store, runtime, errors)
}

fn start_in(
    dialect: &'static Dialect,
    file: &str,
) -> (MemoryStore, Box<dyn Runtime>, Vec<LoadError>) {
    start_with(&[("m", &format!("-- dialect: {}\n{file}", dialect.name))])
}

const FILE: &str = "
    calls = 0
    function greet(tx, name)
      calls = calls + 1
      tx.main:put('name', name)
      return shout(tx.main:get('name')) .. calls
    end
";

#[test]
fn a_dialect_brings_its_functions_its_loader_and_its_globals() {
    let (store, mut vm, errors) = start_in(&PLAIN, FILE);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((vm.procedures().len(), vm.procedures()[0].mode), (1, Mode::Write));
    let greet = vm.find(b"m.greet").unwrap();
    let mut writer = store.writer().unwrap();
    for reply in ["TEA1", "TEA2"] {
        let transaction = Transaction::Write(writer.begin().unwrap());
        assert_eq!(vm.call(greet, transaction.into(), &[text("tea")]).unwrap(), text(reply));
        writer.rollback().unwrap();
    }
}

#[test]
fn no_dialect_sees_what_another_brings() {
    let (_, _, errors) = start_in(&Dialect::NATIVE, FILE);
    assert!(errors[0].to_string().contains("undeclared variable 'calls'"), "{errors:?}");
    let (_, _, errors) = start_in(&PLAIN, "local tokaido = require 'tokaido'");
    assert!(errors[0].to_string().contains("undeclared variable 'require'"), "{errors:?}");
    let (_, native, errors) = start_in(&Dialect::NATIVE, "return { shouts = shout ~= nil }");
    assert!(errors[0].to_string().contains("undeclared variable 'shout'"), "{errors:?}");
    assert!(native.procedures().is_empty());
}

#[test]
fn an_error_in_a_file_of_a_dialect_is_reported() {
    let (_, _, errors) = start_in(&PLAIN, "\nerror 'no more tea'");
    assert_eq!(errors[0].to_string(), "m.lua:3: no more tea");
}

#[test]
fn files_of_several_dialects_serve_side_by_side() {
    let plain = format!("-- dialect: plain\n{FILE}");
    let native = "local tokaido = require 'tokaido'
        return { hello = tokaido.read(function() return 'hello' end) }";
    let (store, mut vm, errors) = start_with(&[("a", native), ("b", &plain)]);
    assert!(errors.is_empty(), "{errors:?}");
    let names: Vec<_> = vm.procedures().iter().map(|p| p.name.clone()).collect();
    assert_eq!(names, ["a.hello", "b.greet"]);
    let mut writer = store.writer().unwrap();
    for (name, reply) in [(&b"b.greet"[..], "TEA1"), (b"a.hello", "hello")] {
        let procedure = vm.find(name).unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        assert_eq!(vm.call(procedure, transaction.into(), &[text("tea")]).unwrap(), text(reply));
        writer.rollback().unwrap();
    }
}

#[test]
fn a_dialect_that_there_is_not_is_refused_with_those_that_there_are() {
    let (_, vm, errors) = start_with(&[("m", "-- dialect: basic\n10 PRINT")]);
    let message = errors[0].to_string();
    assert!(
        message.starts_with("m.lua: there is no dialect \"basic\"; there are tokaido"),
        "{message}"
    );
    assert!(vm.procedures().is_empty());
}
