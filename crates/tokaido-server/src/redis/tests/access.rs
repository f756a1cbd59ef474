//! The permissions that each command needs, and that they are enforced.

use tokaido_script::Sources;
use tokaido_wire::resp::Request;

use super::Server;
use crate::redis::{COMMANDS, Command, Uses};

/// A request with as many arguments as the command requires.
fn line_of(command: &Command) -> String {
    let mut words: Vec<&str> = command.name.split('|').collect();
    words.resize(words.len().max(usize::from(command.arity.unsigned_abs())), "1");
    words.join(" ")
}

#[test]
fn an_anonymous_client_gets_no_command_but_those_that_need_nothing() {
    let (mut closed, mut open) =
        (Server::new(Some("hakone"), &Sources::default()), Server::new(None, &Sources::default()));
    let mut let_in = Vec::new();
    for command in COMMANDS {
        let line = line_of(command);
        let mut anonymous = closed.session();
        let refused = closed.run(&mut anonymous, &line).0;
        if refused != b"-NOAUTH Authentication required.\r\n" {
            let_in.push(command.name);
        }
        let mut user = open.session();
        let answered = open.run(&mut user, &line).0;
        assert!(
            !answered.starts_with(b"-NOAUTH"),
            "{line}: {}",
            String::from_utf8_lossy(&answered)
        );
    }
    assert_eq!(let_in, ["auth", "hello", "quit", "reset"]);
}

/// Arguments for a command with which its keys are exactly those named `k…`.
fn with_keys(command: &Command) -> Option<Vec<&'static str>> {
    let syntax = match command.name {
        "bitop" => "AND k1 k2 k3",
        "blmpop" => "1 2 k1 k2 LEFT",
        "bzmpop" => "1 2 k1 k2 MIN",
        "xread" => "COUNT 1 STREAMS k1 k2 0 0",
        "xreadgroup" => "GROUP g c STREAMS k1 k2 > >",
        "sort" => "k1 LIMIT 0 1 STORE k2",
        "georadius" => "k1 1 1 1 m STORE k2 STOREDIST k3",
        "georadiusbymember" => "k1 m 1 m STORE k2",
        "sintercard" | "lmpop" | "zmpop" | "zunion" | "zinter" | "zdiff" | "zintercard" => {
            "2 k1 k2 LEFT"
        }
        "zunionstore" | "zinterstore" | "zdiffstore" => "k1 2 k2 k3",
        "eval" | "evalsha" | "fcall" | "eval_ro" | "evalsha_ro" | "fcall_ro" => "x 2 k1 k2 a",
        "mset" | "msetnx" => "k1 v k2 v",
        "blpop" | "brpop" | "bzpopmin" | "bzpopmax" => "k1 k2 1",
        "del" | "unlink" | "exists" | "touch" | "watch" | "mget" | "pfcount" | "pfmerge"
        | "sdiff" | "sinter" | "sunion" | "sdiffstore" | "sinterstore" | "sunionstore" => {
            "k1 k2 k3"
        }
        "copy" | "rename" | "renamenx" | "smove" | "lmove" | "blmove" | "rpoplpush"
        | "brpoplpush" | "lcs" | "geosearchstore" | "zrangestore" => "k1 k2 LEFT LEFT 1 x",
        _ => return None,
    };
    Some(syntax.split(' ').collect())
}

/// The access check finds the keys of every command with keys in its row or its syntax.
#[test]
fn the_gate_finds_the_keys_of_every_command_that_names_some() {
    for command in COMMANDS.iter().filter(|command| !command.is_container()) {
        let says_so =
            command.syntax.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| {
                matches!(word, "key" | "numkeys" | "destkey" | "destination" | "source" | "newkey")
            });
        let is_asked_about = matches!(command.group.name(), "pubsub")
            || command.name.starts_with("cluster|")
            || command.name.starts_with("command|");
        assert!(
            !says_so || is_asked_about || command.names_keys(),
            "{}: its syntax has a key, its row has none",
            command.name
        );
        if !command.names_keys() {
            continue;
        }
        let mut words: Vec<&str> = command.name.split('|').collect();
        match with_keys(command) {
            Some(more) => words.extend(more),
            None => {
                let place = command.keys.first as usize;
                words.resize(place.max(words.len()), "x");
                words.push("k1");
                words.resize(words.len().max(usize::from(command.arity.unsigned_abs())), "x");
            }
        }
        let arguments: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let uses = Uses::of(command, Request::from_arguments(&arguments));
        let is_key = |word: &str| word.len() == 2 && word.starts_with('k');
        let expected: Vec<usize> = (1..words.len()).filter(|&at| is_key(words[at])).collect();
        let mut found: Vec<usize> = uses.keys.iter().map(|(place, _)| *place).collect();
        found.sort_unstable();
        // If there are several STOREs, the last one counts.
        let expected = if command.name == "georadius" { vec![1, 9] } else { expected };
        assert_eq!(found, expected, "{words:?}");
        assert!(!uses.every_key, "{words:?}");
    }
}

fn run(server: &mut Server, session: &mut super::Session, line: &str) -> String {
    String::from_utf8_lossy(&server.run(session, line).0).into_owned()
}

/// Even if names of groups or consumers are also words of the command.
#[test]
fn the_keys_of_a_reading_of_streams_are_those_that_are_read() {
    let mut server = Server::new(None, &Sources::default());
    let mut operator = server.session();
    run(&mut server, &mut operator, "ACL SETUSER u on nopass +@all ~[^_]*");
    run(&mut server, &mut operator, "XADD _secret * f v");
    run(&mut server, &mut operator, "XGROUP CREATE _secret streams 0");
    for line in [
        "XREADGROUP COUNT 1 GROUP streams c STREAMS _secret >",
        "XREADGROUP GROUP g streams GROUP streams c STREAMS _secret >",
        "XREADGROUP GROUP g c GROUP streams streams STREAMS _secret >",
        "XREADGROUP NOACK COUNT streams GROUP streams c STREAMS _secret >",
        "XREAD COUNT 1 STREAMS a _secret 0 0",
        "XREAD COUNT STREAMS a STREAMS _secret 0",
    ] {
        let mut user = server.session();
        assert_eq!(run(&mut server, &mut user, "AUTH u x"), "+OK\r\n");
        let answer = run(&mut server, &mut user, line);
        assert_eq!(answer, "-NOPERM No permissions to access a key\r\n", "{line}");
    }
    let line = "XREADGROUP COUNT 1 GROUP streams c STREAMS _secret >";
    assert!(run(&mut server, &mut operator, line).contains("_secret"));
}

/// A user with all commands and some keys is denied any command on another key.
#[test]
fn no_command_reaches_a_key_that_its_user_may_not_use() {
    let mut server = Server::new(None, &Sources::default());
    let mut operator = server.session();
    run(&mut server, &mut operator, "ACL SETUSER u on nopass +@all ~mine:* &*");
    for command in COMMANDS.iter().filter(|command| command.names_keys()) {
        let mut words: Vec<&str> = command.name.split('|').collect();
        words.extend(with_keys(command).unwrap_or_default());
        words.resize(words.len().max(usize::from(command.arity.unsigned_abs())), "1");
        if let Ok(len) = usize::try_from(command.arity) {
            words.truncate(len);
        }
        let mut user = server.session();
        assert_eq!(run(&mut server, &mut user, "AUTH u x"), "+OK\r\n");
        let answer = run(&mut server, &mut user, &words.join(" "));
        assert_eq!(answer, "-NOPERM No permissions to access a key\r\n", "{words:?}");
    }
}

#[test]
fn a_user_without_commands_is_refused_every_one_but_those_that_need_nothing() {
    let mut server = Server::new(None, &Sources::default());
    let mut operator = server.session();
    run(&mut server, &mut operator, "ACL SETUSER u on nopass ~* &*");
    let mut let_in = Vec::new();
    // A container that does nothing by itself requires a subcommand.
    let commands = COMMANDS.iter().filter(|c| !c.is_container() || c.arity == -1);
    for command in commands {
        let mut user = server.session();
        assert_eq!(run(&mut server, &mut user, "AUTH u x"), "+OK\r\n");
        let answer = run(&mut server, &mut user, &line_of(command));
        if !answer.starts_with("-NOPERM User u has no permissions to run") {
            let_in.push(command.name);
        }
    }
    assert_eq!(let_in, ["auth", "hello", "quit", "reset"]);
}
