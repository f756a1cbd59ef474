//! Procedures that call each other: within Ruby, within Lua, and across languages.

mod support;

use std::{sync::Arc, time::Duration};

use support::{MemoryStore, json};
use tokaido_ruby::Ruby;
use tokaido_script::{
    CallError, Language, Limits, Lua, Mode, Runtime, Source, Sources, Transaction, Value, start,
};
use tokaido_store::Store;

/// A runtime of both languages on an in-memory store.
struct Bed {
    store: MemoryStore,
    runtime: Box<dyn Runtime>,
}

impl Bed {
    fn with_limits(lua: &str, ruby: &str, limits: Limits) -> Self {
        let store = MemoryStore::new();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let mut sources = Sources::default();
        let kyoto = "function shout(map) return 0 end";
        for (path, text, dialect) in
            [("lu.lua", lua, None), ("ru.rb", ruby, None), ("kt.lua", kyoto, Some("kyototycoon"))]
        {
            sources.add(Source {
                module: path.split('.').next().unwrap().to_owned(),
                path: path.into(),
                text: text.as_bytes().into(),
                dialect: dialect.map(str::to_owned),
                settings: Vec::new(),
            });
        }
        let languages: [Arc<dyn Language>; 2] =
            [Arc::new(Lua::default()), Arc::new(Ruby::default())];
        let (runtime, errors) = start(&languages, &shared, &sources, limits).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { store, runtime }
    }

    /// Calls a procedure in its mode, and commits if it succeeds.
    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, CallError> {
        let id = self.runtime.find(name.as_bytes()).unwrap_or_else(|| panic!("no {name}"));
        if self.runtime.procedures()[id.index()].mode == Mode::Read {
            let mut snapshot = self.store.snapshot().unwrap();
            return self.runtime.call(id, Transaction::Read(&mut *snapshot).into(), arguments);
        }
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let result = self.runtime.call(id, transaction.into(), arguments);
        match &result {
            Ok(_) => drop(writer.commit().unwrap()),
            Err(_) => writer.rollback().unwrap(),
        }
        result
    }

    fn stored(&self, key: &str) -> Option<String> {
        let database = self.store.find_database("main")?;
        let mut snapshot = self.store.snapshot().unwrap();
        let record = snapshot.get(database, key.as_bytes()).unwrap()?;
        Some(String::from_utf8(record.value.to_vec()).unwrap())
    }
}

/// The same procedures in both languages.
const LUA: &str = r#"
local tokaido = require "tokaido"
local M = {}
M.echo = tokaido.read(function(tx, ...) return { ... } end)
M.put = tokaido.write(function(tx, key, value) tx.main:put(key, value) return value end)
M.see = tokaido.read(function(tx, key) return tx.main:get(key) end)
M.sneak = tokaido.read(function(tx, key) tx.main:put(key, "x") end)
M.fail = tokaido.write(function(tx, key) tx.main:put(key, "half") error "broken" end)
M.fail_reading = tokaido.read(function(tx) error "unread" end)
M.refuse = tokaido.write(function(tx) error { message = "sold out", code = "SOLD_OUT", status = 409 } end)
M.endless = tokaido.write(function(tx) while true do end end)
M.page = tokaido.http("GET /lua", function(tx) return "page" end)
M.call = tokaido.write(function(tx, ...)
  local result = tx:call(...)
  return result
end)
M.read = tokaido.read(function(tx, ...) return tx:call(...) end)
M.seen = tokaido.write(function(tx, other)
  tx.main:put("k", "mine")
  local seen = tx:call(other .. ".see", "k")
  tx:call(other .. ".put", "k", "theirs")
  return { seen, tx.main:get("k") }
end)
M.caught = tokaido.write(function(tx, name)
  local ok, raised = pcall(tx.call, tx, name, "k")
  tx.main:put("caught", "yes")
  return { ok, type(raised) == "table" and raised.code .. " " .. raised.status or (tostring(raised):gsub("^.*: ", "")) }
end)
return M
"#;

const RUBY: &str = r##"
class Ru < Tokaido::Procedures
  read def echo(tx, *values) = values
  write def put(tx, key, value) = tx[:main].put(key, value)
  read def see(tx, key) = tx[:main][key]
  read def sneak(tx, key) = tx[:main].put(key, "x")
  write def fail(tx, key)
    tx[:main].put(key, "half")
    raise "broken"
  end
  read def fail_reading(tx, *) = raise("unread")
  write def refuse_it(tx) = refuse("sold out", code: "SOLD_OUT", status: 409)
  write def endless(tx, *) = loop {}
  get("/ruby") { |tx, req, res| "page" }
  write def call(tx, *all) = tx.call(*all)
  read def read(tx, *all) = tx.call(*all)
  write def seen(tx, other)
    tx[:main].put("k", "mine")
    seen = tx.call("#{other}.see", "k")
    tx.call("#{other}.put", "k", "theirs")
    [seen, tx[:main]["k"]]
  end
  write def caught(tx, name)
    raised = begin; tx.call(name, "k"); nil; rescue => error; error; end
    tx[:main].put("caught", "yes")
    code = raised.is_a?(Tokaido::Refusal) && raised.code
    [raised.nil?, code ? "#{code} #{raised.status}" : raised.to_s.sub(/^.*: /, "")]
  end
end
"##;

fn bed() -> Bed {
    Bed::with_limits(LUA, RUBY, Limits::default())
}

fn text(text: &str) -> Value {
    support::text(text)
}

/// Callers and callees: across languages, and within each.
const PAIRS: [(&str, &str); 4] = [("lu", "ru"), ("ru", "lu"), ("lu", "lu"), ("ru", "ru")];

#[test]
fn arguments_and_results_go_through() {
    let mut bed = bed();
    let values = [
        Value::Integer(1 << 40),
        Value::Number(1.5),
        Value::Boolean(true),
        text("日本"),
        Value::String((0..=255).collect()),
        Value::Array(vec![text("a"), Value::Integer(2)]),
        Value::Map(vec![(text("k"), Value::Array(vec![text("v")]))]),
    ];
    for (caller, called) in PAIRS {
        let mut arguments = vec![text(&format!("{called}.echo"))];
        arguments.extend_from_slice(&values);
        let result = bed.call(&format!("{caller}.read"), &arguments).unwrap();
        assert_eq!(result, Value::Array(values.to_vec()), "{caller} {called}");
    }
    // Also there and back again, as long as each language is idle.
    let result = bed.call("ru.read", &[text("lu.read"), text("lu.echo"), text("x")]).unwrap();
    assert_eq!(json(&result), r#"["x"]"#);
}

#[test]
fn it_is_one_transaction() {
    for (caller, called) in PAIRS {
        let mut bed = bed();
        let result = bed.call(&format!("{caller}.seen"), &[text(called)]).unwrap();
        assert_eq!(json(&result), r#"["mine","theirs"]"#, "{caller} {called}");
        assert_eq!(bed.stored("k").as_deref(), Some("theirs"));
    }
}

#[test]
fn a_failure_undoes_all_of_it() {
    for (caller, called) in PAIRS {
        let mut bed = bed();
        let caller_of = |what: &str| format!("{caller}.{what}");
        let error = bed.call(&caller_of("call"), &[text(&format!("{called}.fail")), text("k")]);
        let message = error.unwrap_err().to_string();
        assert!(message.ends_with("broken"), "{caller} {called}: {message}");
        assert!(
            message.contains(&format!("{called}.{}:", if called == "lu" { "lua" } else { "rb" }))
        );

        // Even if it is caught, provided that the procedure may have written.
        let caught = bed.call(&caller_of("caught"), &[text(&format!("{called}.fail"))]);
        let message = caught.unwrap_err().to_string();
        assert!(message.contains("broken"), "{caller} {called}: {message}");
        assert_eq!((bed.stored("k"), bed.stored("caught")), (None, None));

        let caught = bed.call(&caller_of("caught"), &[text(&format!("{called}.fail_reading"))]);
        assert_eq!(json(&caught.unwrap()), r#"[false,"unread"]"#, "{caller} {called}");
        assert_eq!(bed.stored("caught").as_deref(), Some("yes"));
    }
}

#[test]
fn a_refusal_keeps_its_code_and_status() {
    for (caller, called) in [("lu", "ru.refuse_it"), ("ru", "lu.refuse"), ("ru", "ru.refuse_it")] {
        match bed().call(&format!("{caller}.call"), &[text(called)]).unwrap_err() {
            CallError::Refused { message, code, status, .. } => {
                assert_eq!(
                    (&*message, code.as_deref(), status),
                    ("sold out", Some("SOLD_OUT"), Some(409))
                );
            }
            other => panic!("{caller} {called}: {other:?}"),
        }
    }
}

#[test]
fn a_reader_stays_one() {
    for (caller, called) in PAIRS {
        let mut bed = bed();
        let put = [text(&format!("{called}.put")), text("k"), text("v")];
        let refused = bed.call(&format!("{caller}.read"), &put).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("{called}.put writes, and its caller only reads")),
            "{refused}"
        );
        if caller != called {
            let sneak = [text(&format!("{called}.sneak")), text("k")];
            let refused = bed.call(&format!("{caller}.call"), &sneak).unwrap_err().to_string();
            assert!(refused.contains("read procedure"), "{refused}");
        }
    }
}

#[test]
fn what_cannot_be_called_is_said() {
    for (caller, file) in [("lu", "lua"), ("ru", "rb")] {
        let mut bed = bed();
        let mut refused = |arguments: &[Value]| {
            let error = bed.call(&format!("{caller}.call"), arguments).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{caller}.{file}:")), "{error}");
            error
        };
        assert!(refused(&[text("tea.cup")]).contains("there is no procedure tea.cup"));
        for page in ["lu.page", "ru.GET /ruby"] {
            assert!(refused(&[text(page)]).contains("call it over HTTP"));
        }
        let other = if caller == "lu" { "ru" } else { "lu" };
        let back = [text(&format!("{other}.call")), text(&format!("{caller}.echo"))];
        let waits = bed.call(&format!("{caller}.call"), &back).unwrap_err().to_string();
        assert!(waits.contains("waits for this procedure"), "{waits}");
    }
}

#[test]
fn dialects_are_reached_as_well() {
    for caller in ["lu", "ru"] {
        let result = bed().call(&format!("{caller}.call"), &[text("shout")]);
        assert!(result.is_ok(), "{result:?}");
    }
}

#[test]
fn each_virtual_machine_can_be_interrupted() {
    let mut bed = bed();
    for name in ["lu.endless", "ru.endless"] {
        // For Lua, Kyoto Tycoon's Lua, Ruby and mod_mruby.
        let interrupts = bed.runtime.interrupts();
        assert_eq!(interrupts.len(), 4);
        for interrupt in &interrupts {
            interrupt.raise();
        }
        let stopped = bed.call(name, &[]);
        assert!(matches!(stopped, Err(CallError::Interrupted)), "{name}: {stopped:?}");
        interrupts.iter().for_each(tokaido_script::Interrupt::clear);
        assert!(bed.call("lu.echo", &[]).is_ok() && bed.call("ru.echo", &[]).is_ok());
    }
}

#[test]
fn limits_hold_for_both() {
    // Enough time for the good calls on a busy machine.
    let limits = Limits { time: Duration::from_millis(500), ..support::limits() };
    for (caller, called) in PAIRS {
        let mut bed = Bed::with_limits(LUA, RUBY, limits);
        for what in ["call", "caught"] {
            let endless = [text(&format!("{called}.endless"))];
            let error = bed.call(&format!("{caller}.{what}"), &endless).unwrap_err().to_string();
            assert!(error.contains("ms"), "{caller} {called}: {error}");
        }
        // Both virtual machines keep working.
        for name in ["lu.echo", "ru.echo"] {
            assert!(bed.call(name, &[]).is_ok());
        }
        assert_eq!(bed.stored("caught"), None);
    }
}
