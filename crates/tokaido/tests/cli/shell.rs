//! `tokaido shell` with a script on its standard input.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
};

use crate::support::{Directory, Ran, Script, Server, root, tokaido, tokaido_with};

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
fn lua_sends_commands_to_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[&procedures()]);
    let script = "\
command('SET', 'k1', 'one')
for i = 2, 3 do
  command('SET', 'k' .. i, 9007199254740992LL + i)
end
print(#command('KEYS', 'k*'), command('GET', 'nothing'))
GET k3
n = command('INCR', 'k3')
n
command('MGET', 'k1', 'nothing')
command('HELLO', 3).proto
command('CONFIG', 'GET', 'maxmemory').maxmemory ~= nil
command('hits.count', '/index') + 1
command('SELECT', 'other')
DBSIZE
";
    let expected = "OK\n3\tnil\n9007199254740995\n9007199254740996\n{ \"one\", nil }\n\
        3\ntrue\n2\nOK\n0\n";
    assert_eq!(shell(&[&server.connect()], script).ok(), expected);
}

#[test]
fn lua_that_fails_on_a_server_says_why() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let script = "\
SET k v
local n = command('INCR', 'k')
command('SET', 'k', nil)
command()
tokaido.transact(function(tx) tx.main:put('k', 1) end)
tokaido.snapshot(print)
pcall(command, 'INCR', 'k')
command('GET', 'k')
";
    let ran = shell(&[&server.connect()], script);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.text(), "OK\nfalse\nERR value is not an integer or out of range\nv\n");
    insta::assert_snapshot!(ran.stderr, @r#"
    tokaido: line 2: shell:1: ERR value is not an integer or out of range
    tokaido: line 3: argument 3 of command is nil; give strings and numbers
    tokaido: line 4: command takes a command and its arguments: command("GET", "k")
    tokaido: line 5: this shell talks to a server: use command("GET", "k"), or start it with --dir
    tokaido: line 6: this shell talks to a server: use command("GET", "k"), or start it with --dir
    "#);
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

#[test]
fn ctrl_c_ends_a_script_of_lines_at_the_line_that_runs() {
    let directory = Directory::new();
    let lines = "SET k v\n\
        tokaido.transact(function(tx) tx.main:put('k', 'other') print('running') while true do end end)\n\
        SET k never\n";
    let mut script = Script::start(&["shell", &directory.store()], lines);
    script.prints("OK");
    script.prints("running");
    script.interrupt();
    let ran = script.end();
    let said = "tokaido: line 2: interrupted; a transaction that was open is rolled back";
    assert_eq!(ran.fails(130), said);
    assert_eq!(tokaido(["get", &directory.store(), "main", "k"]).ok(), "v\n");
    // If nothing is running, it ends the program at once.
    let mut waiting = Script::start(&["shell", &directory.store()], "= 1\n");
    waiting.prints("1");
    waiting.interrupt();
    assert_eq!(waiting.end().code, Some(130));
}

#[test]
fn a_procedure_that_is_not_there_is_explained() {
    let directory = Directory::new();
    directory.write("procedures/good.lua", "return {}");
    directory.write("procedures/broken.lua", "return {");
    let procedures = format!("--procedures={}", directory.text("procedures"));
    let script = "broken.thing 1\nbroken.thing\nFCALL broken.thing 0\ngood.thing 1\n\
        good = { thing = 7 }\ngood.thing\n";
    let check = |ran: Ran| {
        assert_eq!((ran.code, ran.text()), (Some(1), "7\n"), "{ran:?}");
        let said = ran.stderr.lines().filter(|line| line.contains(": line "));
        let said: Vec<&str> = said.collect();
        assert_eq!(said.len(), 4, "{ran:?}");
        for (number, line) in said[..3].iter().enumerate() {
            let number = number + 1;
            let wanted = format!("line {number}: ERR procedure broken.thing is in ");
            assert!(line.contains(&wanted) && line.contains("broken.lua, which did not"), "{line}");
        }
        assert!(said[3].contains("line 4: ERR unknown command 'good.thing'"), "{said:?}");
    };
    check(shell(&[&directory.store(), &procedures], script));
    let server = Server::start(&directory, &[&procedures]);
    check(shell(&[&server.connect()], script));
}

/// A server that answers a shell's first commands and no others, which it reports.
fn silent_server() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = asked.clone();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut request) {
                    let request = String::from_utf8_lossy(&request[..len]);
                    let answer = match request.lines().nth(2) {
                        Some("PING") => "+PONG\r\n",
                        Some("SELECT") => "+OK\r\n",
                        Some("HELLO" | "FUNCTION") => "*0\r\n",
                        Some("COMMAND") => "*1\r\n*1\r\n$4\r\nWAIT\r\n",
                        _ => {
                            asked.send(()).unwrap();
                            continue;
                        }
                    };
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (format!("--connect={address}"), waiting)
}

#[test]
fn ctrl_c_ends_the_waiting_for_a_server() {
    let (at, waiting) = silent_server();
    for (line, said) in [
        ("WAIT", "line 2: interrupted; the server may have run the command all the same"),
        ("while true do pcall(command, 'WAIT') end", "line 2: interrupted; a transaction"),
    ] {
        let lines = format!("= 'before'\n{line}\n= 'after'\n");
        let mut script = Script::start(&["shell", &at], &lines);
        script.prints("before");
        waiting.recv().unwrap();
        script.interrupt();
        let ran = script.end();
        assert!(ran.fails(130).contains(said), "{line} {ran:?}");
        assert_eq!(ran.text(), "", "{line}");
    }
}

#[test]
#[cfg(feature = "ruby")]
fn ruby_runs_on_a_store_in_the_process() {
    let directory = Directory::new();
    directory.write("procedures/hits.rb", "class Hits < Tokaido::Procedures\n  write def count(tx, page) = tx[:hits].increment(page)\nend\n");
    directory.write("procedures/lib/tea.rb", "module Tea\n  def self.cups = 3\nend\n");
    let script = "\
n = 41
ruby
n = 1
n += 1
def twice(x)
  x * 2
end
puts twice(n)
hits.count /index
Tokaido.snapshot { |tx| tx[:hits]['/index'] }
require 'lib/tea'
Tea.cups
[1, nil, 'a']
SET k v
lua
n
ruby
n
";
    let procedures = format!("--procedures={}", directory.text("procedures"));
    let ran = shell(&[&directory.store(), &procedures], script);
    assert_eq!(ran.ok(), "1\n2\ntwice\n4\n1\n1\nfalse\n3\n1\n\na\nOK\n41\n2\n");
    let ran = shell(
        &["--ruby", &directory.store()],
        "x = [\n1]\nx.frist\nraise 'no'\nexit 3\nSET k never\n",
    );
    assert_eq!((ran.code, ran.text()), (Some(1), "1\n"));
    insta::assert_snapshot!(ran.stderr, @"
    tokaido: line 3: shell:1: undefined method 'frist' for Array (NoMethodError)
    tokaido: line 4: shell:1: no
    ");
}

#[test]
#[cfg(feature = "ruby")]
fn ruby_sends_commands_to_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let script = "\
ruby
3.times { |i| command :rpush, 'l', i }
l = command('LRANGE', 'l', 0, -1)
l.sum(&:to_i)
command(:hello, 3)['proto']
command 'nonsense'
Tokaido.transact { |tx| tx[:main]['k'] = 1 }
LLEN l
";
    let ran = shell(&[&server.connect()], script);
    assert_eq!((ran.code, ran.text()), (Some(1), "3\n0\n1\n2\n3\n3\n3\n"));
    insta::assert_snapshot!(ran.stderr, @"
    tokaido: line 6: shell:1: ERR unknown command 'nonsense', with args beginning with: 
    tokaido: line 7: shell:1: there is no store here that a transaction could be of; commands reach the server
    ");
}
