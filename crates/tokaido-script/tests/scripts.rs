//! Scripts outside of any transaction: `tokaido run` and the shell.

mod support;

use support::{Bed, text};
use tokaido_script::{CallError, Value, Vm};
use tokaido_store::Store as _;

struct Session {
    bed: Bed,
    writer: Box<dyn tokaido_store::Writer>,
}

impl Session {
    fn new() -> Self {
        let hits = "local tokaido = require 'tokaido'
            return { count = tokaido.write(function(tx, p) return tx.main:increment(p) end) }";
        let bed = Bed::one(hits);
        let writer = bed.store.writer().unwrap();
        Self { bed, writer }
    }

    fn run(&mut self, script: &str) -> Result<Vec<Value>, CallError> {
        self.bed.vm.run_script("s.lua", script.as_bytes(), &[], Some(&mut *self.writer))
    }
}

#[test]
fn a_transaction_that_collides_is_run_again_with_the_same_arguments_and_other_random_numbers() {
    let mut session = Session::new();
    session.bed.store.collide(2);
    let results = session.run(
        "local runs, drawn, count = 0, {}, 0
        tokaido.transact(function(tx, by)
          runs = runs + 1
          for _, new in ipairs {math.random(), tokaido.uuid(), tokaido.random_bytes(8), tx:now_ms()} do
            drawn[new] = true
          end
          tx.main:increment('n', by)
        end, 5)
        for _ in pairs(drawn) do count = count + 1 end
        return runs, count",
    );
    assert_eq!(results.unwrap(), [Value::Integer(3), Value::Integer(3 * 4)]);
    assert_eq!(session.bed.stored("n").as_deref(), Some("5"));
}

#[test]
fn a_transaction_that_collides_again_and_again_is_given_up() {
    let mut session = Session::new();
    session.bed.store.collide(1000);
    let put = "tokaido.transact(function(tx) tx.main:put('k', 1) end)";
    let error = session.run(put).unwrap_err().to_string();
    assert!(error.contains("collided with others again and again"), "{error}");
    assert_eq!(session.bed.stored("k"), None);
}

#[test]
fn a_script_does_not_write_to_a_database_that_was_dropped_meanwhile() {
    let mut session = Session::new();
    let put = "tokaido.transact(function(tx) tx.a:put('k', 1) end)
        tokaido.snapshot(function(tx) return tx.a:get('k') end)";
    session.run(put).unwrap();
    let old = session.bed.store.find_database("a").unwrap();
    session.writer.begin().unwrap().drop_database(old).unwrap();
    session.writer.commit().unwrap();
    assert_eq!(session.bed.store.find_database("a"), None);
    session.run(put).unwrap();
    let new = session.bed.store.find_database("a").expect("it is made anew");
    assert_ne!(new, old);
}

#[test]
fn a_script_transacts_and_takes_snapshots() {
    let mut session = Session::new();
    let results = session
        .run(
            "local tokaido = require 'tokaido'
            local hits = require 'm'
            local a, b = tokaido.transact(function(tx, n) tx.main:put('a', n) return n, nil end, 5)
            local c = tokaido.transact(hits.count, 'x')
            local d, e = tokaido.snapshot(function(tx) return tx.main:get('a'), tx.main:get('x') end)
            return a, b, c, d, e",
        )
        .unwrap();
    assert_eq!(results, [Value::Integer(5), Value::Nil, Value::Integer(1), text("5"), text("1")]);
    assert_eq!(session.bed.stored("a").as_deref(), Some("5"));
}

#[test]
fn a_transaction_that_fails_is_rolled_back_and_raises() {
    let mut session = Session::new();
    let script = "tokaido.transact(function(tx)
          tx.main:put('a', 1)
          error('no')
        end)";
    let Err(CallError::Raised { message, traceback }) = session.run(script) else { panic!() };
    assert_eq!(message, "s.lua:3: no");
    assert!(traceback.starts_with("s.lua:3: in function"), "{traceback}");
    assert_eq!(session.bed.stored("a"), None);

    let caught = format!(
        "local ok, why = pcall(function() {script} end)
        tokaido.transact(function(tx) tx.main:put('b', 2) end)
        return ok, why"
    );
    assert_eq!(session.run(&caught).unwrap(), [Value::Boolean(false), text("s.lua:3: no")]);
    assert_eq!(session.bed.stored("a"), None);
    assert_eq!(session.bed.stored("b").as_deref(), Some("2"));

    let hidden = "tokaido.transact(function(tx)
          tx.main:put('c', 3)
          pcall(tx.main.put, tx.main, 'broken engine', 1)
        end)";
    let message = session.run(hidden).unwrap_err().to_string();
    assert_eq!(message, "writing failed: the disk is on fire");
    assert_eq!(session.bed.stored("c"), None);
}

#[test]
fn transactions_do_not_nest_and_snapshots_do_not_write() {
    let mut session = Session::new();
    for (script, expected) in [
        (
            "tokaido.transact(function(tx) tokaido.transact(function() end) end)",
            "a transaction is open already; pass its tx on instead of beginning another",
        ),
        (
            "tokaido.snapshot(function(tx) local x = tx.main:put('a', 1) end)",
            "s.lua:1: s.lua is a read procedure; declare it with tokaido.write to write",
        ),
        ("tokaido.transact(7)", "s.lua:1: tokaido.transact takes a function, this is a number"),
        ("return x", "s.lua:1: undeclared variable 'x'"),
        ("return (", "s.lua:1: unexpected symbol near '<eof>'"),
    ] {
        assert_eq!(session.run(script).unwrap_err().to_string(), expected, "{script}");
        // A failure leaves the session usable.
        assert_eq!(session.run("return 1").unwrap(), [Value::Integer(1)]);
        session.run("tokaido.transact(function(tx) tx.main:put('z', 1) end)").unwrap();
    }
}

#[test]
fn globals_stay_between_runs_and_modules_do_not_see_them() {
    let mut session = Session::new();
    session.run("function twice(n) return 2 * n end count = 20").unwrap();
    assert_eq!(session.run("return twice(count) + 2").unwrap(), [Value::Integer(42)]);
    let after = session.run("return count, arg and #arg, json.encode{1}, tokaido.json.null");
    assert_eq!(after.unwrap(), [Value::Integer(20), Value::Integer(0), text("[1]"), Value::Nil]);
    let arguments = [text("x"), text("y")];
    let results = session
        .bed
        .vm
        .run_script(
            "s.lua",
            b"return select('#', ...), arg[2], ...",
            &arguments,
            Some(&mut *session.writer),
        )
        .unwrap();
    assert_eq!(results, [Value::Integer(2), text("y"), text("x"), text("y")]);
}

#[test]
fn a_script_has_no_limits_and_procedures_have_theirs_again() {
    let mut bed = Bed::with_limits(
        &[("m", &support::write_body("local t = {} for i = 1, 1e9 do t[i] = {i} end"))],
        tokaido_script::Limits {
            time: std::time::Duration::from_millis(100),
            memory_bytes: 16 << 20,
            ..tokaido_script::Limits::default()
        },
    );
    let mut writer = bed.store.writer().unwrap();
    let script = b"local t = {} for i = 1, 1e6 do t[i] = {i} end
        local till = os.clock() + 0.2 while os.clock() < till do end return #t";
    let results = bed.vm.run_script("s.lua", script, &[], Some(&mut *writer)).unwrap();
    assert_eq!(results, [Value::Integer(1_000_000)]);
    drop(writer);
    assert!(matches!(bed.run(), Err(CallError::MemoryLimit { .. } | CallError::TimeLimit { .. })));
}

#[test]
fn a_function_of_the_host_is_a_global_of_scripts() {
    let mut session = Session::new();
    let mut calls = 0;
    let echo = move |arguments: &[Value]| {
        calls += 1;
        Ok(Value::Array(vec![Value::Integer(calls), Value::Array(arguments.to_vec())]))
    };
    session.bed.vm.set_function("echo", Box::new(echo)).unwrap();
    let wide = Value::Integer(i64::MAX);
    let results = session.run(
        "local first = echo(nil, 'a\\0b', 1.5, { k = true }, { 1, 2 })
        local wide = echo(9223372036854775807LL)[2][1]
        return first, wide, wide == 9223372036854775807LL",
    );
    let arguments = Value::Array(vec![
        Value::Nil,
        text("a\0b"),
        Value::Number(1.5),
        Value::Map(vec![(text("k"), Value::Boolean(true))]),
        Value::Array(vec![Value::Integer(1), Value::Integer(2)]),
    ]);
    let first = Value::Array(vec![Value::Integer(1), arguments]);
    assert_eq!(results.unwrap(), [first, wide, Value::Boolean(true)]);

    session.bed.vm.set_function("nothing", Box::new(|_| Ok(Value::Nil))).unwrap();
    assert_eq!(session.run("return nothing() == nil").unwrap(), [Value::Boolean(true)]);
}

#[test]
fn a_function_of_the_host_that_fails_raises_at_the_line_that_called_it() {
    let mut session = Session::new();
    session.bed.vm.set_function("refuse", Box::new(|_| Err("no such luck".to_owned()))).unwrap();
    session.bed.vm.set_function("panics", Box::new(|_| panic!("a test of panics"))).unwrap();
    let map = Value::Map(vec![(Value::Array(vec![]), Value::Nil)]);
    session.bed.vm.set_function("odd", Box::new(move |_| Ok(map.clone()))).unwrap();
    for (script, expected) in [
        ("local a = 1\nlocal b = refuse(a)", "s.lua:2: no such luck"),
        (
            "local a = panics()",
            "s.lua:1: panics panicked, which is a fault of tokaido; please report it",
        ),
        (
            "local a = refuse(1, { x = print })",
            "s.lua:1: argument 2 of refuse has a function at .x, which cannot be passed on",
        ),
        (
            "local a = odd()",
            "s.lua:1: the result of odd is nested too deeply, or has a map key that no table has",
        ),
    ] {
        assert_eq!(session.run(script).unwrap_err().to_string(), expected, "{script}");
        let caught = format!("return (pcall(function() {script} end))");
        assert_eq!(session.run(&caught).unwrap(), [Value::Boolean(false)]);
    }
    assert_eq!(session.run("return 1").unwrap(), [Value::Integer(1)]);
}

#[test]
fn a_function_of_the_host_outlives_an_engine_that_is_replaced() {
    let body = "local t = {} for i = 1, 1e9 do t[i] = { i } end";
    let limits = tokaido_script::Limits {
        time: std::time::Duration::from_secs(60),
        memory_bytes: 16 << 20,
        ..tokaido_script::Limits::default()
    };
    let mut bed = Bed::with_limits(&[("m", &support::write_body(body))], limits);
    bed.vm.set_function("seven", Box::new(|_| Ok(Value::Integer(7)))).unwrap();
    assert!(matches!(bed.run(), Err(CallError::MemoryLimit { .. })));
    let results = bed.vm.run_script("s.lua", b"return seven()", &[], None);
    assert_eq!(results.unwrap(), [Value::Integer(7)]);
}

#[test]
fn a_vm_without_a_store_says_why() {
    let mut vm = Vm::without_store("there is no store here").unwrap();
    for script in ["tokaido.transact(print)", "tokaido.snapshot(print)"] {
        let error = vm.run_script("s.lua", script.as_bytes(), &[], None).unwrap_err();
        assert_eq!(error.to_string(), "there is no store here");
    }
    let results = vm.run_script("s.lua", b"return json.encode{1}", &[], None).unwrap();
    assert_eq!(results, [text("[1]")]);
}

/// A script that reports that it runs, by a host function, and then never ends.
fn run_interrupted(session: &mut Session, body: &str) -> CallError {
    let (started, running) = std::sync::mpsc::channel();
    let start = move |_: &[Value]| {
        started.send(()).unwrap();
        Ok(Value::Nil)
    };
    session.bed.vm.set_function("started", Box::new(start)).unwrap();
    let interrupt = session.bed.vm.interrupt();
    let interrupter = std::thread::spawn(move || {
        running.recv().unwrap();
        interrupt.raise()
    });
    let error = session.run(body).unwrap_err();
    assert!(!interrupter.join().unwrap(), "it was raised before");
    error
}

#[test]
fn a_script_that_is_interrupted_is_rolled_back_and_catches_nothing() {
    let mut session = Session::new();
    for body in [
        "tokaido.transact(function(tx) tx.main:put('a', 1) started() while true do end end)",
        "tokaido.transact(function(tx) tx.main:put('a', 1)
            pcall(function() started() while true do end end) end)",
        "tokaido.snapshot(function(tx) started() while true do tx.main:get('a') end end)",
        "started() while true do pcall(tokaido.transact, function(tx) tx.main:put('a', 1) error('x') end) end",
    ] {
        let error = run_interrupted(&mut session, body);
        assert!(matches!(error, CallError::Interrupted), "{body}: {error}");
        let interrupt = session.bed.vm.interrupt();
        // Nothing runs until it is cleared, so an early interrupt is not lost.
        let error = session.run("while true do end").unwrap_err();
        assert!(matches!(error, CallError::Interrupted), "{body}: {error}");
        assert!(interrupt.is_raised());
        interrupt.clear();
        assert_eq!(session.bed.stored("a"), None, "{body}");
        assert_eq!(session.run("return 1").unwrap(), [Value::Integer(1)]);
    }
    session.run("tokaido.transact(function(tx) tx.main:put('z', 1) end)").unwrap();
    assert_eq!(session.bed.stored("z").as_deref(), Some("1"));
}

#[test]
fn a_script_has_a_time_limit_if_it_is_given_one() {
    let limits = tokaido_script::Limits {
        script_time: Some(std::time::Duration::from_millis(20)),
        ..tokaido_script::Limits::default()
    };
    let mut bed = Bed::with_limits(&[], limits);
    let mut writer = bed.store.writer().unwrap();
    let script = b"tokaido.transact(function(tx) tx.main:put('a', 1) while true do end end)";
    let error = bed.vm.run_script("s.lua", script, &[], Some(&mut *writer)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s.lua was stopped after 20 ms, its time limit; a transaction that was open is rolled back"
    );
    drop(writer);
    assert_eq!(bed.stored("a"), None);
}
