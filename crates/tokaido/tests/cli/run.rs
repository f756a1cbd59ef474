//! `tokaido run`.

use crate::support::{Directory, Script, root, tokaido, tokaido_with};

const COUNT: &str = "return tokaido.transact(function(tx) return tx.main:increment('runs', 1) end)";

#[test]
fn a_script_writes_to_the_store_and_its_results_are_printed() {
    let directory = Directory::new();
    let file = directory.write("count.lua", COUNT);
    assert_eq!(tokaido(["run", &directory.store(), &file]).ok(), "1\n");
    assert_eq!(tokaido(["run", &directory.store(), &file]).ok(), "2\n");
    assert_eq!(tokaido(["get", &directory.store(), "main", "runs"]).ok(), "2\n");
}

#[test]
fn a_script_gets_its_arguments_and_may_print() {
    let script = "print(select('#', ...), ...) return {...}, nil";
    let ran = tokaido_with(["run", "-", "a b", "--dir", "1"], script);
    assert_eq!(ran.ok(), "3\ta b\t--dir\t1\n{ \"a b\", \"--dir\", \"1\" }\nnil\n");
}

#[test]
fn without_a_directory_the_store_is_empty_and_goes_away() {
    assert_eq!(tokaido_with(["run", "-"], COUNT).ok(), "1\n");
    assert_eq!(tokaido_with(["run", "-"], COUNT).ok(), "1\n");
}

#[test]
fn a_script_may_require_procedure_files() {
    let procedures = root().join("crates/tokaido/tests/data/procedures");
    let flag = format!("--procedures={}", procedures.display());
    let script = "local hits = require 'hits' return tokaido.transact(hits.count, 'x')";
    assert_eq!(tokaido_with(["run", &flag, "-"], script).ok(), "1\n");
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let directory = Directory::new();
    let file = directory.write("bad.lua", "local x = 1\nerror('no good')\n");
    let ran = tokaido(["run", &directory.store(), &file]);
    assert!(ran.fails(1).contains("bad.lua:2: no good"), "{ran:?}");
    let file = directory.write("broken.lua", "local x = = 1\n");
    let ran = tokaido(["run", &directory.store(), &file]);
    assert!(ran.fails(1).contains("broken.lua:1: "), "{ran:?}");
}

/// Puts a record and, in a transaction that never ends, another one.
const ENDLESS: &str = "
tokaido.transact(function(tx) tx.main:put('before', 1) end)
tokaido.transact(function(tx)
  tx.main:put('during', 1)
  print('running')
  pcall(function() while true do end end)
end)
";

#[test]
fn ctrl_c_ends_a_script_and_rolls_back_what_is_open() {
    let directory = Directory::new();
    let file = directory.write("endless.lua", ENDLESS);
    let mut script = Script::start(&["run", &directory.store(), &file], "");
    script.prints("running");
    script.interrupt();
    let ran = script.end();
    let said = "tokaido: interrupted; a transaction that was open is rolled back";
    assert_eq!(ran.fails(130), said);
    assert_eq!(tokaido(["get", &directory.store(), "main", "before"]).ok(), "1\n");
    assert_eq!(tokaido(["get", &directory.store(), "main", "during"]).code, Some(1));
}

#[test]
fn a_script_is_stopped_at_its_memory_limit() {
    let directory = Directory::new();
    let text = "tokaido.transact(function(tx) tx.main:put('during', 1)
        local s = 'x' while true do s = s .. s end end)";
    let file = directory.write("large.lua", text);
    let ran = tokaido(["run", "--memory-limit=64MiB", &directory.store(), &file]);
    assert!(ran.fails(1).contains("large.lua needed more than 67108864 bytes"), "{ran:?}");
    assert_eq!(tokaido(["get", &directory.store(), "main", "during"]).code, Some(1));
}

#[test]
fn a_script_is_stopped_at_its_time_limit() {
    let directory = Directory::new();
    let file = directory.write("endless.lua", ENDLESS);
    let ran = tokaido(["run", "--time-limit=50ms", &directory.store(), &file]);
    let said = "endless.lua was stopped after 50 ms, its time limit; a transaction that was open";
    assert!(ran.fails(1).contains(said), "{ran:?}");
    assert_eq!(tokaido(["get", &directory.store(), "main", "before"]).ok(), "1\n");
    assert_eq!(tokaido(["get", &directory.store(), "main", "during"]).code, Some(1));
}
