//! Shows that database calls in a loop become machine code: a loop over each hot call must end in a
//! trace that loops, with no abort and nothing that leaves it for the interpreter on the way.

use std::{path::PathBuf, sync::Arc};

use mlua::{Function, Table};
use tokaido_store::{Store, transact};

use crate::{Limits, Source, Sources, Transaction, Value, Vm};

#[path = "../tests/support/store.rs"]
#[allow(dead_code, unreachable_pub)]
pub(crate) mod store;

/// Enough for the loop to get hot (56), and for side traces to show up (10 exits each).
const ITERATIONS: i64 = 4000;

/// Collects what the compiler does. Gets `jit` and `jit.util`, which user code never sees.
const OBSERVER: &str = r#"
    local jit, util = ...
    local events, starts = {}, {}

    local function place(func, pc)
      local info = util.funcinfo(func, pc)
      return info.loc or "a built-in function"
    end

    jit.attach(function(what, trace, func, pc, code, reason)
      if what == "start" then
        starts[trace] = place(func, pc) .. (code and " side of " .. code or "")
      elseif what == "stop" then
        events[#events + 1] = starts[trace] .. ": " .. util.traceinfo(trace).linktype
      elseif what == "abort" then
        events[#events + 1] = (starts[trace] or "?") .. ": abort at " .. place(func, pc) .. ": "
          .. tostring(code) .. " " .. tostring(reason)
      end
    end, "trace")
    return events
"#;

/// Runs `loop`, the body of a write procedure over `db` and `n`, and gives the compiler's events.
fn observe(body: &str) -> Vec<String> {
    let memory = store::MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(memory);
    let text = format!(
        "local tokaido = require 'tokaido'\nreturn {{ f = tokaido.write(function(tx, n) local db = tx.main\n{body}\nend) }}"
    );
    let mut sources = Sources::default();
    let path = PathBuf::from("m.lua");
    sources.add(Source { module: "m".to_owned(), path, text: text.into_bytes().into() });
    let (mut vm, errors) = Vm::new(&store, &sources, Limits::default()).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let procedure = vm.find(b"m.f").unwrap();

    let mut writer = store.writer().unwrap();
    let main = store.database("main").unwrap();
    transact::<_, tokaido_store::WriteError>(&mut *writer, |tx| {
        for i in 0..100 {
            let record = tokaido_store::NewRecord::of(b"7");
            tx.put(main, format!("k{i:02}").as_bytes(), record)?;
        }
        Ok(())
    })
    .unwrap();
    let lua = vm.engine_for_tests().lua();
    let registry = |name: &str| lua.named_registry_value::<Table>(name).unwrap();
    let jit: Table = registry("_LOADED").get("jit").unwrap();
    let util: Function = registry("_PRELOAD").get("jit.util").unwrap();
    let util: Table = util.call(()).unwrap();
    let events: Table = lua.load(OBSERVER).call((jit, util)).unwrap();

    let transaction = Transaction::Write(writer.begin().unwrap());
    vm.call(procedure, transaction, &[Value::Integer(ITERATIONS)]).unwrap();
    writer.rollback().unwrap();
    events.sequence_values::<String>().map(Result::unwrap).collect()
}

/// The body has its loop at line 3. What the prelude's own functions compile to does not matter,
/// as long as the loop over them stays on its trace and the exits from it join it again.
#[track_caller]
fn assert_compiles(body: &str) {
    let events = observe(body);
    let shown = events.join("\n");
    assert!(events.iter().any(|event| event == "m.lua:3: loop"), "no loop trace:\n{body}\n{shown}");
    for event in events.iter().filter(|event| event.starts_with("m.lua:")) {
        let on_trace = event.ends_with(": loop") || event.ends_with(": root");
        assert!(on_trace, "{event} leaves the trace:\n{body}\n{shown}");
    }
}

macro_rules! compiles {
    ($($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_compiles($body);
        }
    )*};
}

compiles! {
    get_compiles: "for i = 1, n do db:get('k01') end";
    get_of_absent_compiles: "for i = 1, n do db:get('absent') end";
    get_through_tx_compiles: "for i = 1, n do tx.main:get('k01') end";
    get_with_a_number_key_compiles: "for i = 1, n do db:get(i) end";
    get_with_changing_key_compiles: "for i = 1, n do db:get(tostring(i)) end";
    exists_compiles: "for i = 1, n do db:exists('k01') end";
    record_compiles: "for i = 1, n do db:record('k01') end";
    put_compiles: "for i = 1, n do db:put('k01', 'v') end";
    put_of_numbers_compiles: "for i = 1, n do db:put(i, i) end";
    add_compiles: "for i = 1, n do db:add(tostring(i), 'v') end";
    replace_compiles: "for i = 1, n do db:replace('k01', 'v') end";
    compare_and_set_compiles: "for i = 1, n do db:compare_and_set('k01', '7', '7') end";
    delete_compiles: "for i = 1, n do db:delete(tostring(i)) end";
    increment_compiles: "for i = 1, n do db:increment('k01') end";
    increment_by_compiles: "for i = 1, n do db:increment('k01', 5) end";
    increment_beyond_doubles_compiles:
        "db:put('w', '9007199254740993') for i = 1, n do db:increment('w') end";
    increment_float_compiles: "for i = 1, n do db:increment_float('k01', 0.5) end";
    append_compiles: "for i = 1, n do db:append('k01', 'x') end";
    expire_compiles: "for i = 1, n do db:expire('k01', 60000) end";
    ttl_compiles: "for i = 1, n do db:ttl('k01') end";
    count_compiles: "for i = 1, n do db:count() end";
    set_get_remove_compiles:
        "for i = 1, n do local k = tostring(i) db:put(k, k) db:get(k) db:delete(k) end";
    scan_forward_compiles: "for k, v in db:scan{from = 'k00'} do end";
    scan_prefix_compiles: "for k, v in db:scan('k') do end";
    scan_backward_compiles: "for k, v in db:scan{reverse = true} do end";
    scan_with_limit_compiles: "for k, v in db:scan{limit = 99} do end";
    keys_compile: "for k in db:keys() do end";
    get_many_compiles: "for i = 1, n do db:get_many{'k01', 'k02'} end";
}

/// The canary: what is known not to compile must be told from what does.
#[test]
fn the_observer_sees_what_does_not_compile() {
    let events = observe("for i = 1, n do string.gsub(db:get('k01'), '%d', 'x') end");
    assert!(!events.iter().any(|event| event == "m.lua:3: loop"), "{events:?}");
}
