//! What procedures cannot reach and cannot break, and that a VM does not grow.

mod support;

use std::time::Duration;

use support::{Bed, error_of, eval, json, limits, request};
use tokaido_script::{CallError, Limits, Value};

#[test]
fn nothing_beyond_the_vm_can_be_reached() {
    let names = [
        "File",
        "IO",
        "Dir",
        "Process",
        "Socket",
        "TCPSocket",
        "ObjectSpace",
        "Kernel.exit",
        "Kernel.abort",
        "Kernel.exec",
        "Kernel.system",
        "Kernel.fork",
        "Kernel.open",
        "Kernel.sleep",
        "Kernel.eval",
        "Kernel.binding",
        "ENV",
        "ARGV",
        "Kernel.load",
        "Kernel.`('ls')",
        "Signal",
        "Thread",
        "GC::Profiler",
        "Fiber::Scheduler",
        "Binding",
        "RubyVM",
        "Marshal",
        "Tokaido::Database.new",
        "Tokaido::Database.allocate",
        "Proc.new.binding",
    ];
    for name in names {
        assert!(eval(name).is_err(), "{name}: {:?}", eval(name));
    }
    for call in [
        "exit",
        "abort",
        "exec('ls')",
        "system('ls')",
        "fork",
        "open('/etc/passwd')",
        "sleep 1",
        "eval('1')",
        "binding",
        "`ls`",
        "trap(:INT) {}",
        "require '/etc/passwd'",
        "load 'a'",
        "instance_eval('1')",
        "Object.class_eval('1')",
    ] {
        assert!(eval(call).is_err(), "{call}");
    }
}

#[test]
fn methods_in_c_refuse_what_is_not_theirs() {
    let cases = [
        "Tokaido::Database.instance_method(:get).bind(tx).call('a')",
        "Tokaido::Database.instance_method(:get).bind(5).call('a')",
        "tx[:main].dup.get('a')",
        "tx[:main].clone.put('a', 1)",
        "class << tx[:main]; self; end.new.get('a')",
        "Class.new(Tokaido::Database).new.get('a')",
        "Tokaido::Core.request_field(0)",
        "Tokaido::Core.respond(200, 'x')",
        "Tokaido::Core.respond_json([200])",
        "Tokaido::Core.add('m', 'x', 'read', nil, nil, 1, 2)",
        "Tokaido::Core.run_file(\"a\\0b\", \"c\\0d\")",
        "Tokaido::Core.run_file('def', 'x')",
        "Tokaido::Core.call(99)",
        "Tokaido::Core.call(-1)",
        "Tokaido::Core.dispatch(nil)",
        "tx[:main].__page(1)",
        "tx[:main].__page(nil, nil, nil, nil, nil, nil, nil, 'x')",
        "tx[:main].__put_with('a', 1, 'x', nil, 0, nil)",
        "tx[:main].__put_with('a', 1, nil, nil, -1, nil)",
        "tx[:main].increment('a', 'x')",
        "tx[:main].increment_float('a', Float::NAN)",
        "tx[:main].get",
        "tx[:main].get(1, 2)",
        "tx[:main].get([1])",
        "tx[:main].get(Object.new)",
        "tx[:main].get_many(1)",
        "tx[:main].get_many([nil])",
        "tx[nil]",
        "tx['a b']",
        "tx[\"\\xff\"]",
        "tx.command",
        "tx.command(:get, 'a')",
        "Tokaido::TRANSACTION.instance_variable_set(:@a, 1)",
        "Tokaido.log(:loud, 'x')",
        "tx[:main].put('a' * 5000, 1)",
    ];
    for body in cases {
        assert!(eval(body).is_err(), "{body}: {:?}", eval(body));
    }
}

#[test]
fn what_changes_under_a_method_of_c_is_no_harm() {
    let bodies = [
        "a = (1..100).to_a; a.sort! { |x, y| a.clear; x <=> y } rescue 1",
        "a = (1..100).to_a; a.sort! { |x, y| a.concat(a) if a.size < 100_000; x <=> y } rescue 1",
        "a = (1..100).to_a; a.each { |x| a.shift }",
        "a = [1, 2, 3]; a.map! { |x| a.clear; x }",
        "a = (1..100).to_a; a.delete_if { |x| a.clear; true }",
        "h = { a: 1 }; h.each { |k, v| 100.times { |i| h[i] = i } } rescue 1",
        "a = []; a << a; a.inspect; a.hash; a == a; a.flatten rescue 1",
        "h = {}; h[:h] = h; h.inspect",
        "o = Object.new; a = [o, o]; o.define_singleton_method(:==) { |x| a.clear; true }; a.index(o); a.include?(o)",
        "s = 'abc' * 100; s.gsub('b') { s.clear; 'x' }",
        "a = [1, 2]; a.fill { |i| a.clear; i }",
        "a = [1, 2, 3]; a.fill(0, 1, 2); a.fill(9, -2)",
        "str = Struct.new(:to_s) ; \"#{str.new(1)}\" rescue 1",
    ];
    for body in bodies {
        let mut bed = Bed::one_with_limits(&support::write_body(&format!("{body}\n1")), limits());
        for _ in 0..3 {
            let _ = bed.run();
        }
    }
}

#[test]
fn what_is_nested_deeply_is_no_harm() {
    let nest = "a = []; b = []; 50_000.times { a = [a]; b = [b] }; h = {}; 50_000.times { h = { h => 1 } rescue break };";
    for rest in [
        "a.hash",
        "a == b",
        "a.eql?(b)",
        "a <=> b",
        "a.inspect",
        "a.flatten",
        "a.join",
        "a",
        "JSON.generate(a)",
        "h.inspect",
        "h",
        "[a].include?(b)",
        "[a, b].uniq",
        "[a, b].sort",
        "{ a => 1 }",
        "a.dup",
        "\"#{a}\"",
        "a.to_json",
        "Set.new([a, b])",
        "s = nil; 50_000.times { s = Struct.new(:x).new(s) }; s",
        "r = 1; 50_000.times { r = (r..1) rescue break }; r.hash",
        "e = [1].each; 5_000.times { e = e.lazy.map { |x| x } }; e.to_a",
        "f = -> { 1 }; 50_000.times { g = f; f = -> { g.call } }; f.call",
        "f = nil; f = ->(n) { Fiber.new { f.call(n + 1) }.resume }; f.call(0)",
    ] {
        let mut bed =
            Bed::one_with_limits(&support::write_body(&format!("{nest}\n{rest}")), limits());
        let _ = bed.run();
    }
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    for (open, middle, close) in [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("-", "1", ""),
        ("!", "1", ""),
        ("a(", "1", ")"),
        ("if 1\n", "1", "\nend"),
        ("{1=>", "1", "}"),
        ("\"#{", "1", "}\""),
        ("-> {", "1", "}"),
        ("def a\n", "1", "\nend"),
        ("1+", "1", ""),
        ("1 ? 1 : ", "1", ""),
        ("x.a", "", ""),
        ("x = ", "1", ""),
        ("begin;", "1", ";end"),
        ("a { ", "1", "}"),
        ("class A;", "1", ";end"),
        ("%w[", "1", "]"),
        ("a,", "b", "=1"),
        ("case 1; when 1 then ", "1", ";end"),
    ] {
        for count in [300, 20_000] {
            let text = deep(open, middle, close, count);
            let mut bed = Bed::with_limits(
                &[("m", &text), ("g", "class G < Tokaido::Procedures\nread def f(tx) = 1\nend")],
                limits(),
            );
            assert_eq!(bed.call("g.f", &[]).unwrap(), Value::Integer(1), "{open} {count}");
        }
    }
}

#[test]
fn an_error_that_poisons_the_transaction_cannot_be_rescued_away() {
    // A refused call does not poison the transaction: the procedure may go on.
    let mut bed =
        Bed::body("begin; tx[:main].get(nil); rescue Tokaido::Error; end\ntx[:main]['a'] = 1");
    bed.run().unwrap();
    assert_eq!(bed.stored("a").as_deref(), Some("1"));
}

/// The server's list of procedures is where a procedure can overwrite it.
#[test]
fn a_list_of_procedures_that_was_overwritten_is_no_harm() {
    let spoil = |value: &str| {
        let mut bed = Bed::one(&format!(
            "class M < Tokaido::Procedures
               read def spoil(tx) = (Tokaido::Core.instance_variable_set(:@procedures, {value}); 1)
               read def f(tx) = 2
               get('/a') {{ |tx, req, res| res.instance_variable_set(:@status, 'x'); 'body' }}
             end"
        ));
        assert!(bed.http("m.GET /a", &request("GET", "/a")).is_err());
        assert_eq!(json(&bed.call("m.spoil", &[]).unwrap()), "1");
        let error = bed.call("m.f", &[]).unwrap_err().to_string();
        assert!(error.contains("overwritten"), "{value}: {error}");
    };
    for value in [
        "nil",
        "5",
        "[]",
        "[1, 2]",
        "[[], []]",
        "[[M], [M]]",
        "[[1, :f], [1, :f]]",
        "[[M, 1], [M, 1], [M, 1]]",
        "'text'",
    ] {
        spoil(value);
    }
    for call in ["call_elsewhere([])", "call_elsewhere(nil)", "call_elsewhere([[]])"] {
        let caught =
            format!("begin; Tokaido::Core.{call}; rescue Tokaido::Error; end\ntx[:main]['a'] = 1");
        assert!(eval(&caught).is_ok(), "{call}: {:?}", eval(&caught));
    }
    for given in ["[]", "[1]", "['x', 'k']", "[99, 'k']", "nil", "[4, 'k']"] {
        let caught = format!(
            "begin; tx[:main].__stream({given}); rescue Tokaido::Error; end\ntx[:main]['a'] = 1"
        );
        assert!(eval(&caught).is_ok(), "{given}: {:?}", eval(&caught));
    }
    for call in ["prepare(1, Class.new, Class.new)", "prepare(nil, nil, nil)"] {
        assert!(error_of(&format!("Tokaido::Core.{call}")).contains("once"), "{call}");
    }
}

#[test]
fn many_calls_do_not_make_the_vm_grow() {
    // Run it in full with TOKAIDO_RUBY_CALLS=1000000.
    let calls = std::env::var("TOKAIDO_RUBY_CALLS").map_or(20_000, |calls| calls.parse().unwrap());
    let mut bed = Bed::one(
        "class M < Tokaido::Procedures
           write def f(tx, n)
             raise 'no' if n % 7 == 3
             refuse('no', code: 'NO') if n % 7 == 4
             db = tx[:main]
             db[\"k#{n % 10}\"] = n
             { list: db.scan.first(3), n: n, s: 'x' * 100, set: Set.new([n]) }
           end
           get('/a/:b') { |tx, req, res| res.headers['x'] = req[:b].to_s; { path: req.path } }
         end",
    );
    let mut run = |count: i64| {
        for n in 0..count {
            let _ = bed.call("m.f", &[Value::Integer(n)]);
            bed.http("m.GET /a/:b", &request("GET", "/a/x")).unwrap();
        }
        bed.vm.usage()
    };
    let before = run(2000);
    let after = run(calls);
    assert_eq!(after.held, before.held);
    assert_eq!(after.symbols, before.symbols);
    assert!(after.objects <= before.objects + 50, "{before:?} {after:?}");
    assert!(after.bytes <= before.bytes + (64 << 10), "{before:?} {after:?}");
}

#[test]
fn symbols_are_bounded() {
    let mut bed = Bed::one_with_limits(
        "class M < Tokaido::Procedures\n read def f(tx, n) = (4_000.times { |i| \"s#{n}_#{i}\".to_sym }; nil)\nend",
        Limits { time: Duration::from_secs(60), ..Limits::default() },
    );
    let first = bed.vm.usage().symbols;
    for n in 0..8 {
        bed.call("m.f", &[Value::Integer(n)]).unwrap();
        assert!(bed.vm.usage().symbols <= first + 10_000);
    }
}

#[test]
fn a_call_that_was_stopped_in_a_fiber_leaves_a_vm_that_serves() {
    let mut bed = Bed::one_with_limits(
        "class M < Tokaido::Procedures
           read def f(tx) = Fiber.new { Fiber.new { loop {} }.resume }.resume
           read def g(tx) = Fiber.new { 5 }.resume
         end",
        limits(),
    );
    for _ in 0..3 {
        assert!(matches!(bed.run().unwrap_err(), CallError::TimeLimit { .. }));
        assert_eq!(json(&bed.call("m.g", &[]).unwrap()), "5");
    }
}

#[test]
fn upstream_s_mistakes_are_corrected() {
    let cases = [
        ("[1, 2].fill(7, 3, 1)", "[1,2,null,7]"),
        ("[3, 1, 2].sort!", "[1,2,3]"),
        ("[3, 1, 2].sort! { |a, b| b <=> a }", "[3,2,1]"),
        // With memory that is shared with a copy.
        (
            "a = (1..300).to_a; a[10, 1] = a; [a.size, a[9], a[10], a[309], a[310], a[598]]",
            "[599,10,1,300,12,300]",
        ),
        (
            "o = Object.new; def o.method_missing(n, *a, **k) = [n, a.size, k]; o.x(*(1..20).to_a, y: 1)",
            r#"["x",20,{"y":1}]"#,
        ),
        (
            "o = Object.new; def o.method_missing(n, *a, **k) = [n, a.size, k]; o.x(1, y: 1)",
            r#"["x",1,{"y":1}]"#,
        ),
        (
            "h = {}; 20.times { |i| h[i] = i }; o = Object.new; o.define_singleton_method(:==) { |x| 19.downto(1) { |i| h.delete(i) }; false }; h.value?(o)",
            "false",
        ),
        ("h = { a: 1, b: 2, c: 3 }; h.delete(:b); h.map { |k, v| v }", "[1,3]"),
        (
            "s = '%s %s ' * 50; o = Object.new; o.define_singleton_method(:to_s) { s.replace('x'); 'y' }; format(s, *([o] * 100)).size",
            "200",
        ),
        (
            "['%<a>', '%{a}', '%'].map { |s| (('x' * 100 + s)[100..-1] % { a: 1 }) rescue 'no' }.size",
            "3",
        ),
        (
            "format('%d-%05.1f-%s', 1, 2.5, :x) + ('%s' % 'y') + ('%s%s' % [1, 2])",
            r#""1-002.5-xy12""#,
        ),
        (
            "[rand(1 << 32), rand(1 << 40), Random.rand(1 << 32), Random.new(1).rand(1 << 33), rand(0..(1 << 32))].all? { |n| n >= 0 }",
            "true",
        ),
        (
            "[rand(10).between?(0, 9), rand.between?(0, 1), rand(5..5), Random.rand(1.5) < 1.5]",
            "[true,true,5,true]",
        ),
    ];
    for (body, expected) in cases {
        let result = eval(body).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(json(&result), expected, "{body}");
    }
    assert!(error_of("[1, nil].sort!").contains("ArgumentError"));
}
