//! Lines that are typed into a shell, one after another.

mod support;

use std::{cell::RefCell, rc::Rc, sync::Arc};

use support::MemoryStore;
use tokaido_ruby::{LineOutcome, RubyVm};
use tokaido_script::{CallError, Interrupt, Limits, Sources, Value};
use tokaido_store::Store;

struct Bed {
    store: MemoryStore,
    vm: RubyVm,
}

impl Bed {
    fn with_limits(limits: Limits) -> Self {
        let store = MemoryStore::new();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let (vm, _) = RubyVm::new(&shared, &Sources::default(), limits).unwrap();
        Self { store, vm }
    }

    fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    fn run(&mut self, line: &str) -> Result<LineOutcome, CallError> {
        let mut writer = self.store.writer().unwrap();
        self.vm.run_line(line, Some(&mut *writer))
    }

    /// What a line shows; `...` if incomplete, `! message` if it raises.
    fn shown(&mut self, line: &str) -> String {
        match self.run(line) {
            Ok(LineOutcome::Value(value)) => String::from_utf8(value.inspected).unwrap(),
            Ok(LineOutcome::Unfinished) => "...".to_owned(),
            Err(error) => format!("! {error}"),
        }
    }
}

#[track_caller]
fn types(lines: &[(&str, &str)]) {
    let mut bed = Bed::new();
    for (line, shown) in lines {
        assert_eq!(bed.shown(line), *shown, "{line}");
    }
}

#[test]
fn local_variables_stay() {
    types(&[
        ("n = 41", "41"),
        ("n + 1", "42"),
        ("a, b = 1, [2]", "[1, [2]]"),
        ("b << n", "[2, 41]"),
        ("[a, b, n]", "[1, [2, 41], 41]"),
        ("nothing", "! shell:1: undefined method 'nothing' for Object (NoMethodError)"),
        ("[a, b, n]", "[1, [2, 41], 41]"),
        ("c = raise('no')", "! shell:1: no"),
        ("[c, n]", "[nil, 41]"),
        ("d = ", "..."),
        ("d = )", "! shell:1: syntax error, unexpected ')'"),
        ("[a, n]", "[1, 41]"),
    ]);
}

#[test]
fn blocks_share_them() {
    types(&[
        ("count = 0", "0"),
        ("add = -> { count += 1 }; 0", "0"),
        ("add.call; add.call", "2"),
        ("count", "2"),
        ("count = 10; more = 5", "5"),
        ("add.call", "11"),
        ("[count, more]", "[11, 5]"),
        ("3.times { |i| more += i }; more", "8"),
        ("other = -> { more * count }; 0", "0"),
        ("count = 2; other.call", "16"),
    ]);
}

#[test]
fn what_is_defined_stays() {
    types(&[
        ("def twice(x) = x * 2", ":twice"),
        ("twice(21)", "42"),
        ("class Cup; attr_accessor :tea; end", "nil"),
        ("cup = Cup.new; cup.tea = 'green'; cup.tea", "\"green\""),
        ("$kept = 1; K = 2", "2"),
        ("[$kept, K, self.to_s]", "[1, 2, \"main\"]"),
        ("100.times { 'garbage' * 1000 }; GC.start; cup.tea", "\"green\""),
    ]);
}

#[test]
fn what_breaks_off_goes_on() {
    types(&[
        ("def f(x)", "..."),
        ("def f(x)\n  x + 1\nend", ":f"),
        ("f(1)", "2"),
        ("[1,", "..."),
        ("[1,\n2]", "[1, 2]"),
        ("x = <<E", "..."),
        ("x = <<E\ntext\nE", "\"text\\n\""),
        ("'open", "..."),
        ("1 +", "..."),
        ("if true", "..."),
        ("end", "! shell:1: syntax error, unexpected \"'end'\""),
        ("", "nil"),
        ("# a note", "nil"),
    ]);
}

#[test]
fn transactions_are_those_of_scripts() {
    types(&[
        ("Tokaido.transact { |tx| tx[:main].increment('n') }", "1"),
        ("Tokaido.snapshot { |tx| tx[:main]['n'] }", "\"1\""),
        (
            "kept = nil; Tokaido.transact { |tx| kept = tx[:main]; kept['n'] = 5; raise 'no' }",
            "! shell:1: no",
        ),
        ("Tokaido.snapshot { |tx| tx[:main]['n'] }", "\"1\""),
    ]);
}

#[test]
fn many_lines_and_names_do_no_harm() {
    let mut bed = Bed::new();
    for n in 0..150 {
        assert_eq!(bed.shown(&format!("v{n} = {n}")), n.to_string());
    }
    assert_eq!(bed.shown("v0 + v99 + v149"), "248");
    for n in 0..2000 {
        assert_eq!(bed.shown("v1 += 1"), (n + 2).to_string());
    }
    assert!(bed.vm.has_local("v149") && !bed.vm.has_local("v150") && !bed.vm.has_local("\0"));
}

#[test]
fn a_limit_of_time_stops_a_line_and_not_what_it_has() {
    let script_time = Some(std::time::Duration::from_millis(500));
    let mut bed = Bed::with_limits(Limits { script_time, ..Limits::default() });
    assert_eq!(bed.shown("n = 1"), "1");
    assert!(bed.shown("loop { n += 1 }").contains("500 ms"));
    assert_eq!(bed.shown("n > 1"), "true");
}

#[test]
fn commands_go_to_the_program_around() {
    let mut vm = RubyVm::without_store(Interrupt::default());
    let sent = Rc::new(RefCell::new(Vec::new()));
    let notes = Rc::clone(&sent);
    vm.set_command(Box::new(move |arguments| {
        notes.borrow_mut().push(arguments.to_vec());
        match arguments.len() {
            1 => Err("ERR no such command".to_owned()),
            count => Ok(Value::Integer(count as i64)),
        }
    }));
    let shown = |line: &str, vm: &mut RubyVm| match vm.run_line(line, None) {
        Ok(LineOutcome::Value(value)) => String::from_utf8(value.inspected).unwrap(),
        other => format!("{other:?}"),
    };
    assert_eq!(shown("command(:get, 'k', 5)", &mut vm), "3");
    assert_eq!(
        shown("begin; command('x'); rescue => error; error.message; end", &mut vm),
        "\"ERR no such command\""
    );
    let refused = shown("Tokaido.transact { 1 }", &mut vm);
    assert!(refused.contains("no store here"), "{refused}");
    let expected =
        vec![Value::String(b"get".to_vec()), Value::String(b"k".to_vec()), Value::Integer(5)];
    assert_eq!(sent.borrow()[0], expected);
}
