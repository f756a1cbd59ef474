//! Timed functions: what they get, what the compiler is seen to do, and what a sample leaves behind.

mod support;

use std::sync::Arc;

use support::MemoryStore;
use tokaido_script::{
    BenchCode, BenchOptions, BenchSample, CallError, Dialect, FunctionBench, Limits, Sources,
    TraceEvent, TraceOutcome, Value, Vm,
};
use tokaido_store::Store;

/// Enough for a loop to get hot, and its side traces.
const COUNT: u64 = 4000;

const COMPILED: BenchOptions = BenchOptions { is_compiled: true, in_transaction: false };

struct Bed {
    store: Arc<dyn Store>,
    bench: FunctionBench,
}

impl Bed {
    fn new(dialect: &'static Dialect, options: BenchOptions) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let started = Vm::of_dialect(dialect, &store, &Sources::default(), Limits::default());
        let bench = FunctionBench::new(started.unwrap().0, options).unwrap();
        Self { store, bench }
    }

    fn prepare(&mut self, code: BenchCode<'_>) -> Result<(), CallError> {
        let mut writer = self.store.writer().unwrap();
        self.bench.prepare("b.lua", code, &[Value::String(b"x".to_vec())], Some(&mut *writer))
    }

    fn sample(&mut self, sample: BenchSample) -> Result<std::time::Duration, CallError> {
        let mut writer = self.store.writer().unwrap();
        self.bench.sample(sample, Some(&mut *writer))
    }

    /// Prepares a chunk, runs it, and gives what the compiler did.
    fn run(&mut self, chunk: &str) -> Vec<TraceEvent> {
        self.prepare(BenchCode::Chunk(chunk.as_bytes())).unwrap();
        self.sample(CALLS).unwrap();
        self.bench.take_trace_events()
    }

    /// What the main database has under a key.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let database = self.store.database("main").unwrap();
        let mut snapshot = self.store.snapshot().unwrap();
        snapshot.get(database, key).unwrap().map(|record| record.value.to_vec())
    }
}

const CALLS: BenchSample = BenchSample { is_empty: false, count: COUNT, before: 0 };

fn aborts(events: &[TraceEvent]) -> Vec<(&str, &str)> {
    let aborts = events.iter().filter_map(|event| match &event.what {
        TraceOutcome::Aborted { place, reason } => Some((place.as_str(), reason.as_str())),
        _ => None,
    });
    aborts.collect()
}

fn has_loop(events: &[TraceEvent]) -> bool {
    let looping = TraceOutcome::Compiled { link: "loop".to_owned() };
    events.iter().any(|event| event.what == looping)
}

#[test]
fn a_function_is_called_with_the_number_of_the_call() {
    let mut bed = Bed::new(&Dialect::NATIVE, COMPILED);
    let chunk = "local sum = 0 local told, what = ..., 1
        return function(i) sum = sum + i if i == 10 and sum ~= 55 then error(told .. sum) end end";
    bed.prepare(BenchCode::Chunk(chunk.as_bytes())).unwrap();
    bed.sample(BenchSample { count: 10, ..CALLS }).unwrap();
    let raised = bed.sample(BenchSample { count: 10, ..CALLS }).unwrap_err();
    assert!(raised.to_string().starts_with("b.lua:2: x"), "{raised}");
}

#[test]
fn a_body_is_an_expression_or_statements_and_finds_what_was_set_up() {
    let mut bed = Bed::new(&Dialect::NATIVE, COMPILED);
    for body in
        ["(assert(start == 7) and 1) + i", "local n = start assert(n == 7)", "assert(start == 7)"]
    {
        bed.prepare(BenchCode::Body { body, setup: "local start = 7 -- a comment" }).unwrap();
        bed.sample(BenchSample { count: 1, ..CALLS })
            .unwrap_or_else(|error| panic!("{body}: {error}"));
    }
    let wrong = bed.prepare(BenchCode::Body { body: "if", setup: "" }).unwrap_err();
    assert!(wrong.to_string().starts_with("b.lua:2: unexpected"), "{wrong}");
    let wrong = bed.prepare(BenchCode::Chunk(b"return 5")).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "the code must return the function that is to be timed, but it returned a number"
    );
}

#[test]
fn a_loop_of_what_compiles_has_a_trace_and_no_abort() {
    let mut bed = Bed::new(&Dialect::NATIVE, COMPILED);
    let events = bed.run("return function(i) return i * 2 end");
    assert!(has_loop(&events), "{events:?}");
    assert_eq!(aborts(&events), []);
    bed.sample(CALLS).unwrap();
    assert_eq!(bed.bench.take_trace_events(), []);
    bed.sample(BenchSample { is_empty: true, ..CALLS }).unwrap();
    let empty = bed.bench.take_trace_events();
    assert!(has_loop(&empty) && aborts(&empty).is_empty(), "{empty:?}");
}

#[test]
fn what_does_not_compile_is_told_with_its_line_and_why() {
    let mut bed = Bed::new(&Dialect::NATIVE, COMPILED);
    let events =
        bed.run("return function(i)\n  local f = function() return i end\n  return f\nend");
    let told = ("b.lua:2", "NYI: making a closure (bytecode FNEW)");
    assert!(aborts(&events).contains(&told), "{events:?}");
    let events =
        bed.run("local sort = table.sort\nreturn function(i)\n  sort({ i, 1 })\n  return i\nend");
    let stitched: Vec<&str> = events
        .iter()
        .filter(|event| event.what == TraceOutcome::Stitched)
        .map(|event| event.start.as_str())
        .collect();
    assert!(stitched.contains(&"b.lua:3"), "{events:?}");
    // An inner loop is compiled before the outer one.
    let events = bed.run(
        "return function(i)\n  local n = 0\n  for j = 1, 200 do n = n + j end\n  return n\nend",
    );
    let told = ("b.lua:3", "an inner loop that has no trace of its own yet");
    assert!(aborts(&events).is_empty() || aborts(&events).contains(&told), "{events:?}");
}

#[test]
fn the_line_of_an_abort_in_our_own_lua_is_the_one_that_called_it() {
    let mut bed = Bed::new(&Dialect::NATIVE, COMPILED);
    let events = bed
        .run("return function(i)\n  local n = 1\n  return (('x'):gsub('x', function() end))\nend");
    let places: Vec<&str> = events.iter().map(|event| event.start.as_str()).collect();
    assert!(places.iter().all(|place| !place.contains("tokaido")), "{events:?}");
    assert!(
        !aborts(&events).is_empty() && aborts(&events).iter().all(|abort| abort.0 == "b.lua:3"),
        "{events:?}"
    );
}

#[test]
fn nothing_is_compiled_with_the_jit_off() {
    let mut bed = Bed::new(&Dialect::NATIVE, BenchOptions::default());
    assert_eq!(bed.run("return function(i) return i * 2 end"), []);
}

#[test]
fn a_sample_in_a_transaction_is_committed_as_one() {
    let mut bed = Bed::new(&Dialect::NATIVE, BenchOptions { in_transaction: true, ..COMPILED });
    bed.prepare(BenchCode::Body { body: "tx.main:increment('n')", setup: "" }).unwrap();
    bed.sample(BenchSample { count: 5, before: 2, ..CALLS }).unwrap();
    assert_eq!(bed.get(b"n").as_deref(), Some(&b"7"[..]));
    let failing = "tx.main:increment('n') if i == 3 then error('no more') end";
    bed.prepare(BenchCode::Body { body: failing, setup: "" }).unwrap();
    assert!(bed.sample(CALLS).is_err());
    assert_eq!(bed.get(b"n").as_deref(), Some(&b"7"[..]));
}

#[test]
fn samples_of_other_dialects_are_their_scripts() {
    let bodies = [
        (&Dialect::KYOTO_TYCOON, "__kyototycoon__.db:increment('n', 1)"),
        (&Dialect::TOKYO_TYRANT, "_addint('n', 1)"),
        (&Dialect::OPENRESTY, "ngx.re.find('hello, world.', [[\\w+\\.]], 'jo')"),
    ];
    for (dialect, body) in bodies {
        let mut bed = Bed::new(dialect, COMPILED);
        bed.prepare(BenchCode::Body { body, setup: "" }).unwrap();
        bed.sample(BenchSample { count: 5, ..CALLS }).unwrap();
        let left = bed.get(b"n").is_some();
        assert_eq!(left, dialect.name != Dialect::OPENRESTY.name, "{}", dialect.name);
    }
}
