//! Scripts that would never end, or take all memory: each is stopped, nothing of it remains, and
//! the VM serves the next call.

mod support;

use std::time::Duration;

use support::{Bed, limits};
use tokaido_script::{CallError, Limits, Value};

/// A file with the runaway as `m.f`, which writes first, and a procedure to call after it.
fn bed_with(body: &str, limits: Limits) -> Bed {
    let text = format!(
        "local tokaido = require 'tokaido'
        local m = {{}}
        m.f = tokaido.write(function(tx) tx.main:put('runaway', 1) {body} end)
        m.after = tokaido.write(function(tx) return tx.main:increment('after') end)
        return m"
    );
    let bed = Bed::with_limits(&[("m", &text)], limits);
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    bed
}

fn bed(body: &str) -> Bed {
    bed_with(body, limits())
}

#[track_caller]
fn assert_serves(bed: &mut Bed, times: i64) {
    assert_eq!(bed.stored("runaway"), None);
    assert_eq!(bed.call("m.after", &[]).unwrap(), Value::Integer(times));
}

#[track_caller]
fn assert_stopped(body: &str) {
    let mut bed = bed(body);
    // Twice, since the first run may leave something behind.
    for times in 1..=2 {
        match bed.run() {
            Err(CallError::TimeLimit { name, limit_ms }) => {
                assert_eq!((name.as_str(), limit_ms), ("m.f", 100));
            }
            other => panic!("{other:?}"),
        }
        assert_serves(&mut bed, times);
    }
}

#[track_caller]
fn assert_out_of_memory(body: &str) {
    let mut bed = bed_with(body, Limits { time: Duration::from_secs(60), ..limits() });
    for times in 1..=2 {
        match bed.run() {
            Err(CallError::MemoryLimit { name, limit_bytes }) => {
                assert_eq!((name.as_str(), limit_bytes), ("m.f", 32 << 20));
            }
            other => panic!("{other:?}"),
        }
        assert_serves(&mut bed, times);
    }
}

macro_rules! each {
    ($assert:ident: $($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            $assert($body);
        }
    )*};
}

each! { assert_stopped:
    an_empty_loop: "while true do end";
    a_counting_loop: "local n = 0 while true do n = n + 1 end";
    a_repeat_loop: "repeat until false";
    a_goto_loop: "::again:: goto again";
    a_loop_around_pcall: "while true do pcall(function() while true do end end) end";
    a_loop_that_catches_in_itself: "while true do pcall(error, 'x') end";
    a_loop_within_a_handler: "xpcall(error, function() while true do end end)";
    a_pcall_that_swallows: "pcall(function() while true do end end) return 'done'";
    nested_pcalls: "pcall(pcall, pcall, function() while true do pcall(pcall) end end)";
    an_allocating_loop: "while true do local t = {1, 2, 3} end";
    a_string_making_loop: "local n = 0 while true do n = n + 1 local s = 'k' .. n end";
    a_tail_call: "local function f() return f() end f()";
    two_tail_calls: "local g local function f() return g() end function g() return f() end f()";
    a_tree_of_calls: "local function f(n) if n > 0 then f(n - 1) f(n - 1) end end f(60)";
    a_coroutine: "local c = coroutine.wrap(function() while true do end end) c()";
    a_yielding_coroutine:
        "local c = coroutine.wrap(function() while true do coroutine.yield() end end)
         while true do c() end";
    a_loop_that_makes_coroutines:
        "while true do coroutine.resume(coroutine.create(function() end)) end";
    a_loop_that_reads: "while true do tx.main:get('x') end";
    a_loop_that_writes_one_key: "while true do tx.main:put('x', 'y') end";
    a_scan_that_feeds_itself:
        "local n = 0 tx.main:put(string.format('%012d', 0), '')
         for key in tx.main:scan() do n = n + 1 tx.main:put(string.format('%012d', n % 2 + 1), '')
         tx.main:delete(string.format('%012d', n % 2)) n = n % 2 end while true do end";
    a_sort_with_a_slow_comparison:
        "local t = {} for i = 1, 5000 do t[i] = -i end
         while true do table.sort(t, function(a, b) for i = 1, 99 do end return a < b end) end";
    a_comparison_metamethod:
        "local t = setmetatable({}, {__lt = function() while true do end end}) return t < t";
    a_gsub_callback: "while true do string.gsub('aaaa', 'a', function() end) end";
    a_tostring_metamethod:
        "error(setmetatable({}, {__tostring = function() while true do end end}))";
    a_loop_in_loaded_text: "load('while true do end')()";
}

each! { assert_out_of_memory:
    a_growing_table: "local t = {} for i = 1, 1e9 do t[i] = i end";
    a_growing_table_of_tables: "local t = {} for i = 1, 1e9 do t[i] = {i} end";
    a_doubling_string: "local s = 'x' while true do s = s .. s end";
    a_concat_bomb:
        "local t = {} for i = 1, 100 do t[i] = ('x'):rep(2 ^ 20) .. i end table.concat(t)";
    memory_that_is_caught: "while pcall(function() local s = 'x' while true do s = s .. s end end)
         do end return 'done'";
    a_growing_closure_chain: "local f for i = 1, 1e9 do local g = f f = function() return g end end";
    growth_that_outlives_the_call: "for i = 1, 1e9 do rawset(_G, i, {i}) end";
}

#[test]
fn code_that_is_interpreted_is_stopped_too() {
    // A loop that contains a call that cannot be compiled.
    assert_stopped("while true do select('#', string.gsub('a', 'a', 'b')) end");
}

#[test]
fn deep_recursion_is_an_error_with_a_place() {
    let mut bed = bed("local function f(n) return 1 + f(n + 1) end return f(1)");
    let (message, traceback) = match bed.run() {
        Err(CallError::Raised { message, traceback }) => (message, traceback),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("stack overflow"), "{message}");
    assert!(traceback.contains("m.lua:3"), "{traceback}");
    assert_serves(&mut bed, 1);
}

#[test]
fn a_repetition_bomb_is_refused_before_it_begins() {
    let mut bed = bed("local s = ('x'):rep(2 ^ 40)");
    let Err(CallError::Raised { message, .. }) = bed.run() else { panic!() };
    assert!(message.starts_with("m.lua:3: string.rep would make"), "{message}");
    assert_serves(&mut bed, 1);
}

#[test]
fn a_call_within_its_time_is_not_disturbed_by_one_that_was_stopped() {
    let mut bed = bed("while true do end");
    for times in 1..=20 {
        if times % 5 == 0 {
            assert!(bed.run().is_err());
        }
        assert_serves(&mut bed, times);
    }
}

#[test]
fn vms_on_other_threads_are_stopped_each_by_itself() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_stopped("while true do end"));
        }
    });
}

#[test]
fn loading_is_limited_too_and_the_other_files_serve() {
    let good = support::write_body("return 1");
    let files = [
        ("bad", "while true do end"),
        ("m", &good),
        ("user", "local bad = require 'bad' return bad"),
    ];
    let mut bed = Bed::with_limits(&files, limits());
    let messages: Vec<_> = bed.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "bad.lua: loading it took longer than the time limit",
            "user.lua:1: module 'bad' did not load: loading it took longer than the time limit",
        ]
    );
    assert_eq!(bed.run().unwrap(), Value::Integer(1));
}

#[test]
fn a_reply_without_end_is_refused() {
    let text = "local tokaido = require 'tokaido'
        return { f = tokaido.http('GET /', function(tx, req, res)
            while true do res:write(('x'):rep(2 ^ 20)) end end) }";
    let mut bed = Bed::one(text);
    let Err(CallError::Raised { message, .. }) = bed.http("m.f", &support::request("GET", "/"))
    else {
        panic!()
    };
    assert!(message.starts_with("m.lua:3: a response has at most"), "{message}");
}

#[test]
fn a_result_that_takes_too_long_to_look_through_is_stopped() {
    assert_stopped(
        "local empty, t = {}, {} for i = 1, 2 ^ 18 do empty[i] = i end
         for i = 1, 2 ^ 18 do empty[i] = nil end
         for i = 1, 1e6 do t[i] = empty end return t",
    );
}

#[test]
fn a_result_that_has_one_string_again_and_again_is_refused() {
    let mut bed = bed_with(
        "local s, t = ('x'):rep(2 ^ 20), {} for i = 1, 1e5 do t[i] = s end return t",
        Limits { time: Duration::from_secs(60), ..limits() },
    );
    let Err(CallError::Value { message }) = bed.run() else { panic!() };
    assert!(message.contains("more bytes than the memory limit allows"), "{message}");
    assert_serves(&mut bed, 1);
}

#[test]
fn results_that_never_end_are_refused() {
    let mut bed = Bed::one(&support::write_body("local t = {} t.t = t return t"));
    let Err(CallError::Value { message }) = bed.run() else { panic!() };
    assert!(message.starts_with("the result of m.f has tables nested too deeply"), "{message}");
}
