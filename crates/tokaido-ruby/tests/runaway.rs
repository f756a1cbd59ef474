//! Procedures that would run for ever or use all memory are stopped, and the VM goes on.

mod support;

use std::time::{Duration, Instant};

use support::{Bed, json, limits};
use tokaido_script::{CallError, Limits, Value};

/// Code that never ends by itself.
const ENDLESS: &[&str] = &[
    "loop {}",
    "while true; end",
    "until false do end",
    "begin; end while true",
    "for i in 1..Float::INFINITY do end",
    "i = 0; i += 1 while true",
    "loop { loop { } }",
    "begin; loop {}; rescue Exception; retry; end",
    "begin; while true; end; rescue StandardError, Exception; retry; end",
    "while true; begin; while true; end; rescue Exception; end; end",
    "loop { begin; loop {}; rescue Exception => e; e.message; end }",
    "begin; loop {}; ensure; loop {}; end",
    "def e(n) = (begin; e(n + 1); ensure; e(n + 1); end); loop { begin; e(0); rescue Exception; end }",
    "l = -> { begin; loop {}; ensure; l.call; end }; l.call",
    "Fiber.new { loop {} }.resume",
    "f = Fiber.new { loop { Fiber.yield } }; loop { f.resume }",
    "f = Fiber.new { begin; loop {}; rescue Exception; retry; end }; f.resume",
    "loop { Fiber.new { loop { Fiber.yield 1 } }.resume }",
    "catch(:x) { loop {} }",
    "loop { catch(:x) { throw :x } }",
    "1.step { }",
    "(1..Float::INFINITY).lazy.map { |x| x * 2 }.select { false }.first(1)",
    "e = Enumerator.new { |y| loop { y << 1 } }; loop { e.next }",
    "[1].cycle { }",
    "a = [1]; a.each { |x| a << x if a.size < 100_000; a.clear; a << 1 << 2; redo rescue 1 } while true",
    "h = Hash.new { |hash, key| loop {} }; h[1]",
    "o = Object.new; def o.method_missing(*) = method_missing; begin; o.x; rescue Exception; retry; end",
    "def r = r; begin; r; rescue SystemStackError; retry; end",
    "def r = [r]; loop { begin; r; rescue Exception; end }",
    "o = Object.new; def o.==(other) = loop {}; [o].include?(1)",
    "o = Object.new; def o.<=>(other) = loop {}; [o, o].sort",
    "o = Object.new; def o.hash = loop {}; { o => 1 }",
    "o = Object.new; def o.to_s = loop {}; \"#{o}\"",
    "o = Object.new; def o.inspect = loop {}; [o].inspect",
    "o = Object.new; def o.each = loop { yield 1 }; o.extend(Enumerable); o.map { }",
    "[3, 1, 2].sort { loop {} }",
    "[3, 1, 2].sort_by { loop {} }",
    "tx[:main]['a'] = 1; tx[:main].scan.each { redo }",
    "tx[:main]['a'] = 1; loop { tx[:main].get('a') }",
    "loop { tx[:main].increment('a') }",
    "loop { JSON.parse('[1]') }",
    "a = [0]; 40.times { a = [a, a] }; a == JSON.parse(a.to_json)",
    "a = [0]; 40.times { a = [a, a] }; a.flatten.size; loop {}",
    "a = [0]; 40.times { a = [a, a] }; a.hash; loop {}",
    "x = 'a' * 400_000; n = 'a' * 199_999 + 'b' + 'a' * 100; loop { x.index(n) }",
    "('a' * 8_000_000).index('a' * 2_000_000 + 'b' + 'a' * 2_000_000)",
    "('a' * 8_000_000).include?('a' * 2_000_000 + 'b' + 'a' * 2_000_000)",
    "('a' * 8_000_000).split('a' * 2_000_000 + 'b' + 'a' * 2_000_000)",
    "('a' * 8_000_000).sub('a' * 2_000_000 + 'b' + 'a' * 2_000_000, '')",
    "('a' * 8_000_000).rindex('a' * 2_000_000 + 'b' + 'a' * 2_000_000)",
    "('a' * 8_000_000).byteindex('a' * 2_000_000 + 'b' + 'a' * 2_000_000); loop {}",
    "a = Array.new(100_000) { |i| 'x' * 100 + i.to_s }; loop { a.sort }",
    "define = Class.new { def initialize = loop {} }; define.new",
    "Class.new { define_method(:a) { a } }.new.a rescue loop {}",
    "send(:loop) {}",
    "proc { loop {} }.call",
    "method(:loop).call {}",
    "[1].each { loop {} }",
    "1.upto(1 << 62) { }",
    "raise 'a' rescue loop {}",
];

/// Code that allocates without end.
const GREEDY: &[&str] = &[
    "a = []; loop { a << 'x' * 1000 }",
    "s = 'x'; loop { s << s }",
    "s = 'x' * 1_000_000_000; s.size",
    "h = {}; i = 0; loop { h[i += 1] = i.to_s }",
    "a = []; loop { begin; a << 'x' * 100_000; rescue NoMemoryError, Exception; end }",
    "a = []; begin; loop { a << 'y' * 10_000 }; rescue Exception; retry; end",
    "a = []; loop { a = [a, 'z' * 1000] }",
    "a = []; loop { a << Fiber.new { } }",
    "a = []; loop { a << Class.new }",
    "i = 0; loop { \"symbol#{i += 1}#{'s' * 100}\".to_sym }",
    "Array.new(1_000_000) { Array.new(1000) }",
    "('a' * 10_000_000) * 10",
    "('a' * 20_000_000).reverse.upcase + 'b'",
    "format('%100000000d', 1)",
    "'x'.ljust(100_000_000)",
    "a = [1] * 1_000_000; loop { a = a.map { |x| [x] } }",
    "tx[:main]['a'] = 'v' * 1_000_000; a = []; loop { a << tx[:main]['a'] }",
    "a = [0]; 25.times { a = [a, a] }; a.flatten",
];

fn expect_stopped(body: &str, is_right: impl Fn(&CallError) -> bool) {
    let text = support::write_body(&format!("return 7 if args[0]\ntx[:main]['kept'] = 1\n{body}"));
    let mut bed = Bed::one_with_limits(&text, limits());
    for _ in 0..2 {
        let began = Instant::now();
        let error = bed.run().expect_err(body);
        assert!(is_right(&error), "{body}: {error:?}");
        // Not a measurement: without a limit it would take minutes.
        assert!(began.elapsed() < Duration::from_secs(20), "{body}: {:?}", began.elapsed());
        assert_eq!(bed.stored("kept"), None, "{body}");
        assert_eq!(bed.call("m.f", &[Value::Boolean(true)]).unwrap(), Value::Integer(7), "{body}");
    }
}

#[test]
fn what_runs_for_ever_is_stopped() {
    for body in ENDLESS {
        // Some of them exceed another limit first: call depth or memory.
        expect_stopped(body, |error| !matches!(error, CallError::Interrupted));
    }
    for body in &ENDLESS[..16] {
        expect_stopped(body, |error| matches!(error, CallError::TimeLimit { .. }));
    }
}

#[test]
fn what_takes_all_memory_is_stopped() {
    for body in GREEDY {
        let is_right = |error: &CallError| {
            matches!(error, CallError::MemoryLimit { .. } | CallError::TimeLimit { .. })
                || error.to_string().contains("too big")
        };
        expect_stopped(body, is_right);
    }
}

#[test]
fn a_fiber_for_which_memory_ends_at_any_point_is_collected() {
    let text = support::write_body("a = []; loop { a << Fiber.new { } }");
    // The limits differ by less than the size of any part of a fiber.
    for more in (0..4096).step_by(64) {
        let memory_bytes = (4 << 20) + more;
        let mut bed = Bed::one_with_limits(&text, Limits { memory_bytes, ..Limits::default() });
        let error = bed.run().expect_err("memory ends");
        assert!(matches!(error, CallError::MemoryLimit { .. }), "{memory_bytes}: {error:?}");
    }
}

#[test]
fn deep_recursion_is_an_error_that_can_be_rescued() {
    let mut bed =
        Bed::body("def r = 1 + r\nbegin; r; rescue SystemStackError => e; e.class.name; end");
    assert_eq!(json(&bed.run().unwrap()), r#""SystemStackError""#);
}

#[test]
fn another_thread_can_interrupt_a_call() {
    let limits = Limits { time: Duration::from_secs(100), ..Limits::default() };
    let mut bed = Bed::one_with_limits(&support::write_body("loop {}"), limits);
    let interrupt = bed.vm.interrupt();
    let raiser = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        interrupt.raise();
    });
    assert!(matches!(bed.run().unwrap_err(), CallError::Interrupted));
    raiser.join().unwrap();
}
