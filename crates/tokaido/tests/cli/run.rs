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
fn a_script_may_be_an_argument() {
    let ran = tokaido(["run", "-e", "print(arg[0], #arg, ...) return 7", "a", "--b"]);
    assert_eq!(ran.ok(), "(-e)\t2\ta\t--b\n7\n");
    let ran = tokaido(["run", "-e", "error('no good')"]);
    assert!(ran.fails(1).contains("(-e):1: no good"), "{ran:?}");
    assert_eq!(tokaido(["run"]).code, Some(2));
}

#[test]
fn a_script_ends_itself_with_a_status() {
    for (code, status) in [
        ("os.exit(3)", 3),
        ("os.exit()", 0),
        ("os.exit(false) return 1", 1),
        ("pcall(os.exit, 4) print 'on'", 4),
        ("ngx.exit(5)", 5),
    ] {
        let dialect = if code.starts_with("ngx") { "ngx" } else { "tokaido" };
        let ran = tokaido(["run", "--dialect", dialect, "-e", code]);
        assert_eq!(ran.code, Some(status), "{code}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_script_is_run_in_its_dialect() {
    let directory = Directory::new();
    let store = directory.store();
    let kyoto = "db = __kyototycoon__.db db:increment('n', 2) print(db:increment('n', 3)) db.s = 'tea' return #arg";
    let ran = tokaido(["run", &store, "--dialect=kyototycoon", "-e", kyoto, "a", "b"]);
    assert_eq!(ran.ok(), "5\n2\n");
    let tyrant = "-- dialect: tokyotyrant\nassert(_get('s') == 'tea') _put('t', arg[1]) print(_rnum(), io_ == nil)";
    let file = directory.write("tyrant.lua", tyrant);
    assert_eq!(tokaido(["run", &store, &file, "x"]).ok(), "3\ttrue\n");
    let failing = "_put('t', 'lost') error('no more tea')";
    let ran = tokaido(["run", &store, "--dialect=tokyotyrant", "-e", failing]);
    assert!(ran.fails(1).contains("(-e):1: no more tea"), "{ran:?}");
    assert_eq!(tokaido(["get", &store, "main", "t"]).ok(), "x\n");
    let kept = "_put('t', 'kept') os.exit(2)";
    assert_eq!(tokaido(["run", &store, "--dialect=tokyotyrant", "-e", kept]).code, Some(2));
    assert_eq!(tokaido(["get", &store, "main", "t"]).ok(), "kept\n");
    let ngx = "ngx.say('a', 1, { true, 'b' }) ngx.print('c') ngx.flush(true) print 'd'";
    assert_eq!(tokaido(["run", "--dialect=ngx", "-e", ngx]).ok(), "a1trueb\ncd\n");
    let ran = tokaido(["run", "--dialect=basic", "-e", ""]);
    assert!(ran.fails(2).contains("there is no dialect \"basic\"; there are tokaido,"), "{ran:?}");
    let handler = "-- dialect: mod_lua\nfunction handle(r) r:puts('x') return apache2.OK end";
    let file = directory.write("handler.lua", handler);
    let ran = tokaido(["run", &file]);
    assert!(ran.fails(2).contains("serve them with `tokaido serve --mod-lua FILE`"), "{ran:?}");
}

#[test]
fn a_script_has_the_dictionaries_that_it_is_told_of() {
    let two = ["--shdict", "dogs 1m", "--shdict", "cats 128k"];
    let count =
        "ngx.say(ngx.shared.dogs:incr('n', 2, 5), ngx.shared.cats:get('n'), ngx.shared.cows)";
    let ran = tokaido([&["run", "--dialect=ngx"], &two[..], &["-e", count]].concat());
    assert_eq!(ran.ok(), "7nilnil\n");
    // Nothing of it is left in the store, and it does not hide a database of that name with records.
    let directory = Directory::new();
    let store = directory.store();
    let put = "return tokaido.transact(function(tx) tx.dogs:put('k', 1) end)";
    let ran = tokaido([&["run", &store], &two[..], &["-e", put]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(tokaido(["run", &store, "-e", put]).code, Some(0));
    let ran = tokaido([&["run", &store], &two[..], &["-e", put]].concat());
    assert!(ran.fails(1).contains("database dogs has 1 records"), "{ran:?}");
    for bad in ["dogs", "dogs 1x"] {
        let ran = tokaido(["run", "--shdict", bad, "-e", ""]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("write its name and size, as \"dogs 1m\""), "{ran:?}");
    }
    let body = "ngx.shared.dogs:incr('n', 1, 0)";
    let bench = ["bench", "lua", "--dialect=ngx", "--shdict=dogs 1m", "--naive", "-e", body];
    assert_eq!(tokaido(bench).code, Some(0));
}

#[test]
fn of_several_directories_the_first_one_that_has_a_file_counts() {
    let (first, second) = (Directory::new(), Directory::new());
    first.write("a.lua", "return { name = 'first a' }");
    second.write("a.lua", "return { name = 'second a' }");
    second.write("b.lua", "return { name = 'second b' }");
    let [first, second] = [&first, &second].map(|directory| format!("-I{}", directory.text("")));
    let ran =
        tokaido(["run", &first, &second, "-e", "return require('a').name, require('b').name"]);
    assert_eq!(ran.ok(), "first a\nsecond b\n");
    let ran =
        tokaido(["run", &second, &first, "-e", "return require('a').name, require('b').name"]);
    assert_eq!(ran.ok(), "second a\nsecond b\n");
}

#[test]
fn a_script_may_be_ruby() {
    let directory = Directory::new();
    let store = directory.store();
    let count = "n = Tokaido.transact { |tx| tx[:main].increment(:runs, ARGV.size) }\nputs n, [n, []]\np ARGV\nwarn 'so'\n";
    let file = directory.write("count.rb", count);
    let ran = tokaido(["run", &store, &file, "a", "--b"]);
    assert_eq!((ran.code, ran.text(), &*ran.stderr), (Some(0), "2\n2\n[\"a\", \"--b\"]\n", "so\n"));
    assert_eq!(tokaido(["get", &store, "main", "runs"]).ok(), "2\n");
    let ran = tokaido(["run", &store, "--ruby", "-e", "print ARGV[0], 1; exit 3", "x"]);
    assert_eq!((ran.code, ran.text(), &*ran.stderr), (Some(3), "x1", ""));
    assert_eq!(tokaido_with(["run", "--ruby", "-"], "puts 'from stdin'").ok(), "from stdin\n");
    let file = directory.write("bad.rb", "x = 1\nraise 'no good'\n");
    let ran = tokaido(["run", &store, &file]);
    assert!(ran.fails(1).contains("bad.rb:2: no good"), "{ran:?}");
    let ran = tokaido(["run", "--ruby", "--time-limit=100ms", "-e", "loop {}"]);
    assert!(ran.fails(1).contains("(-e) was stopped after 100 ms"), "{ran:?}");
    assert_eq!(tokaido(["run", "--ruby", "--dialect=ngx", "-e", ""]).code, Some(2));
}

#[test]
fn a_script_may_collect_what_it_measures_without() {
    let code = "collectgarbage() collectgarbage('collect') collectgarbage('stop') collectgarbage('restart')
        local began = os.clock() for _ = 1, 1000 do end return os.clock() >= began, collectgarbage('count') > 0";
    for dialect in ["tokaido", "kyototycoon", "tokyotyrant", "ngx"] {
        let ran = tokaido(["run", "--dialect", dialect, "-e", code]);
        assert_eq!(ran.ok(), "true\ntrue\n", "{dialect}");
    }
}

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
