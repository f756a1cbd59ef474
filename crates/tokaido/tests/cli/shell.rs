//! `tokaido shell` with a script on its standard input.

use crate::support::{Directory, Ran, Server, root, tokaido_with};

fn shell(args: &[&str], script: &str) -> Ran {
    tokaido_with([&["shell"], args].concat(), script)
}

const COMMANDS: &str = "\
# a note
SET greeting 'good morning'
get greeting
MGET greeting nothing greeting
hits.count /index
INCR hits

exit
SET greeting never
";

const ANSWERS: &str = "OK\ngood morning\ngood morning\n\ngood morning\n1\n1\n";

fn procedures() -> String {
    let directory = root().join("crates/tokaido/tests/data/procedures");
    format!("--procedures={}", directory.display())
}

#[test]
fn commands_run_on_a_store_in_the_process() {
    let directory = Directory::new();
    assert_eq!(shell(&[&directory.store(), &procedures()], COMMANDS).ok(), ANSWERS);
    assert_eq!(shell(&[&directory.store()], "GET greeting\n").ok(), "good morning\n");
}

#[test]
fn commands_run_on_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[&procedures()]);
    assert_eq!(shell(&[&server.connect()], COMMANDS).ok(), ANSWERS);
    let lua = shell(&[&server.connect()], "x = 1\n");
    assert!(lua.fails(1).contains("Lua runs with --dir"), "{lua:?}");
}

#[test]
fn lua_runs_on_a_store_in_the_process() {
    let directory = Directory::new();
    let script = "\
n = 41
n + 1
= 'a' .. 'b', nil
function twice(x)
  return 2 * x
end
twice(n)
SET k from-the-shell
tokaido.snapshot(function(tx) return tx.main:get('k') end)
tokaido.transact(function(tx) tx.main:put('k', 'from Lua') end)
GET k
";
    let ran = shell(&[&directory.store()], script);
    assert_eq!(ran.ok(), "42\nab\nnil\n82\nOK\nfrom-the-shell\nfrom Lua\n");
}

#[test]
fn another_database_is_gone_to_by_name() {
    let directory = Directory::new();
    let script = "SET k 1\nSELECT main\nEXISTS k\nSELECT other\nEXISTS k\n";
    let ran = shell(&[&directory.store(), "--db=other"], script);
    assert_eq!(ran.ok(), "OK\nOK\n0\nOK\n1\n");
}

#[test]
fn a_line_that_fails_is_named_and_the_rest_runs() {
    let directory = Directory::new();
    let script = "SET k v\nINCR k\nGTE k\nerror('no good')\nGET \"k\nGET k\nif x then\n";
    let ran = shell(&[&directory.store()], script);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.text(), "OK\nv\n");
    let said: Vec<&str> = ran.stderr.lines().filter(|l| l.starts_with("tokaido: ")).collect();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(said[0].starts_with("tokaido: line 2: ERR value is not an integer"), "{said:?}");
    assert!(said[1].starts_with("tokaido: line 3: \"GTE\" is no command, and this is not Lua"));
    assert!(said[2].contains("line 4: ") && said[2].contains("no good"), "{said:?}");
    assert!(said[3].contains("line 5: cannot read this line: "), "{said:?}");
    assert!(said[4].contains("line 7: the script ends within a chunk of Lua"), "{said:?}");
}
