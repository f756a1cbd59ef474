//! Scripts outside of any transaction, and the transactions that they begin.

mod support;

use std::time::Duration;

use support::{Bed, text};
use tokaido_script::{CallError, Limits, Value};
use tokaido_store::Store as _;

fn run_in(bed: &mut Bed, code: &str, arguments: &[Value]) -> Result<(), CallError> {
    let mut writer = bed.store.writer().unwrap();
    bed.vm.run_script("s.rb", code.as_bytes(), arguments, &mut *writer)
}

fn run(code: &str) -> Result<(), CallError> {
    run_in(&mut Bed::of(&[]), code, &[])
}

#[test]
fn a_transaction_is_committed_when_its_block_ends() {
    let mut bed = Bed::of(&[]);
    let code = "got = Tokaido.transact { |tx| tx[:main].put(ARGV[0], ARGV.size); tx[:main].get(:k) }
        raise 'wrong' unless got == '2' && Tokaido.snapshot { |tx| tx[:main][:k] } == '2' && $0 == 's.rb'";
    run_in(&mut bed, code, &[text("k"), text("x")]).unwrap();
    assert_eq!(bed.stored("k").as_deref(), Some("2"));
}

#[test]
fn what_leaves_the_block_otherwise_undoes_the_transaction() {
    for leaving in ["raise 'no'", "break", "throw :out", "exit"] {
        let mut bed = Bed::of(&[]);
        let code = format!(
            "Tokaido.transact {{ |tx| tx[:main].put(:a, 1) }}
             begin
               catch(:out) {{ Tokaido.transact {{ |tx| tx[:main].put(:b, 1); {leaving} }} }}
             rescue Exception
             end
             Tokaido.transact {{ |tx| tx[:main].put(:c, 1) }}"
        );
        run_in(&mut bed, &code, &[]).unwrap();
        let stored = ["a", "b", "c"].map(|key| bed.stored(key).is_some());
        assert_eq!(stored, [true, false, true], "{leaving}");
    }
}

#[test]
fn a_snapshot_is_only_read_and_transactions_do_not_nest() {
    let error = |code: &str| run(code).unwrap_err().to_string();
    let write = "Tokaido.transact { |tx| tx[:main].put(:a, 1) }
        Tokaido.snapshot { |tx| tx[:main].put(:a, 2) }";
    assert_eq!(error(write), "s.rb:2: a snapshot is only read; Tokaido.transact writes");
    for nested in ["transact", "snapshot"] {
        let message = error(&format!("Tokaido.transact {{ Tokaido.{nested} {{ }} }}"));
        assert!(message.contains("a transaction is open already"), "{message}");
    }
    let late = error("db = Tokaido.transact { |tx| tx[:main] }\ndb.get(:a)");
    assert!(late.contains("this transaction has ended"), "{late}");
}

#[test]
fn a_database_that_was_dropped_is_another_one_in_the_next_transaction() {
    let mut bed = Bed::of(&[]);
    let code = "Tokaido.transact { |tx| tx[:main].put(:a, 1) }
        Tokaido.transact { |tx| tx.drop_database(:main); tx[:other].put(:b, 1) }
        Tokaido.transact { |tx| raise 'there' if tx[:main][:a]; tx[:main].put(:c, 1) }";
    run_in(&mut bed, code, &[]).unwrap();
    assert_eq!((bed.stored("a"), bed.stored("c").as_deref()), (None, Some("1")));
}

#[test]
fn an_error_names_file_and_line_and_exit_has_a_status() {
    let error = run("x = 1\nraise 'no good'").unwrap_err();
    assert_eq!(error.to_string(), "s.rb:2: no good");
    let error = run("x = = 1").unwrap_err().to_string();
    assert!(error.starts_with("s.rb:1: syntax error"), "{error}");
    for (code, expected) in [("exit", 0), ("exit 3", 3), ("exit false", 1), ("abort", 1)] {
        let error = run(&format!("begin; {code}; rescue => e; end; raise 'ran on'")).unwrap_err();
        assert!(matches!(error, CallError::Exited { status } if status == expected), "{error:?}");
    }
}

#[test]
fn a_script_uses_the_files_of_procedures_which_are_called_afterwards_too() {
    let hits =
        "class Hits < Tokaido::Procedures\n write def count(tx, k) = tx[:main].increment(k)\nend";
    let mut bed = Bed::of(&[("hits", hits)]);
    let code = "require 'hits'\nTokaido.transact { |tx| Hits.new.count(tx, :k) }";
    run_in(&mut bed, code, &[]).unwrap();
    assert_eq!(bed.call("hits.count", &[text("k")]).unwrap(), Value::Integer(2));
}

#[test]
fn limits_of_scripts_are_their_own() {
    let limits = Limits {
        script_time: Some(Duration::from_millis(200)),
        script_memory_bytes: Some(16 << 20),
        ..Limits::default()
    };
    let mut bed = Bed::with_limits(&[], limits);
    let endless =
        "Tokaido.transact { |tx| tx[:main].put(:a, 1)\n begin; loop {}; ensure; loop {}; end }";
    let error = run_in(&mut bed, endless, &[]).unwrap_err();
    assert!(matches!(&error, CallError::ScriptTimeLimit { name, limit_ms: 200 } if name == "s.rb"));
    let error = run_in(&mut bed, "a = []\nloop { a << 'x' * 100_000 }", &[]).unwrap_err();
    assert!(matches!(error, CallError::ScriptMemoryLimit { .. }), "{error:?}");
    run_in(&mut bed, "Tokaido.transact { |tx| tx[:main].put(:b, 1) }", &[]).unwrap();
    assert_eq!((bed.stored("a"), bed.stored("b").as_deref()), (None, Some("1")));
}
