//! Commands that procedures call in their own transaction.

use std::{path::PathBuf, sync::Arc};

use tokaido_script::{CommandError, CommandReply, Host as _, Source, Sources, Transaction};

use super::{Server, Session, golden::show};
use crate::{
    access::{Denied, Principal},
    redis::{COMMANDS, ScriptCommands, command::Handler, debug::is_of_debug},
};

const SCRIPTS: &str = r#"
local tokaido = require "tokaido"
local s = {}

-- Each argument is a command; gives the last reply.
local function run(tx, ...)
  local reply
  for _, line in ipairs {...} do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    reply = tx:command(unpack(words))
  end
  return reply
end

s.write = tokaido.write(run)
s.read = tokaido.read(run)

s.try = tokaido.write(function(tx, ...)
  local ok, reply = pcall(run, tx, ...)
  return {ok, reply}
end)

s.mix = tokaido.write(function(tx)
  tx.main:put("k", "1")
  tx:command("APPEND", "k", 2)
  return tx.main:get("k")
end)

return s
"#;

fn server() -> (Server, Session) {
    let mut sources = Sources::default();
    let text = Arc::from(SCRIPTS.as_bytes());
    sources.add(Source {
        module: "s".to_owned(),
        path: PathBuf::from("s.lua"),
        text,
        dialect: None,
        settings: Vec::new(),
    });
    let server = Server::new(None, &sources);
    let session = server.session();
    (server, session)
}

#[track_caller]
fn check(server: &mut Server, session: &mut Session, cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        let reply = show(&server.run(session, line).0);
        assert_eq!(reply.split_whitespace().collect::<Vec<_>>().join(" "), *expected, "{line}");
    }
}

#[test]
fn a_command_runs_in_the_transaction_of_its_script() {
    let (mut server, mut session) = server();
    check(
        &mut server,
        &mut session,
        &[
            ("s.mix", "\"12\""),
            ("s.write 'SET a 1' 'INCRBY a 41' 'GET a'", "\"42\""),
            ("s.read 'GET a'", "\"42\""),
            ("s.write 'SET a 2' 'SET b 3' 'INCRBY k x'", NOT_AN_INTEGER),
            ("MGET a b", "*2 \"42\" nil"),
            ("MULTI", "+OK"),
            ("SET c 1", "+QUEUED"),
            ("s.write 'INCR c'", "+QUEUED"),
            ("EXEC", "*2 +OK :2"),
        ],
    );
}

const NOT_AN_INTEGER: &str = "-ERR s.lua:11: ERR value is not an integer or out of range";

#[test]
fn replies_are_what_scripts_of_redis_see() {
    let (mut server, mut session) = server();
    check(
        &mut server,
        &mut session,
        &[
            ("s.write 'SET a 1'", "*2 \"ok\" \"OK\""),
            ("s.read 'TYPE a'", "*2 \"ok\" \"string\""),
            ("s.read 'STRLEN a'", ":1"),
            ("s.read 'GET none'", "nil"),
            ("s.read 'MGET a none a'", "*3 \"1\" nil \"1\""),
            ("s.read 'SCAN 0'", "*2 \"0\" *1 \"a\""),
            ("s.read 'CONFIG GET save'", "*2 \"save\" \"\""),
            ("s.read 'ECHO hello'", "\"hello\""),
            ("s.read PING", "*2 \"ok\" \"PONG\""),
            ("s.read 'COMMAND GETKEYS MSET a 1 b 2'", "*2 \"a\" \"b\""),
        ],
    );
    let reply = show(&server.run(&mut session, "s.read 'INFO keyspace'").0);
    assert!(reply.starts_with("\"# Keyspace"), "{reply}");
}

#[test]
fn commands_work_on_the_database_that_the_caller_selected() {
    let (mut server, mut session) = server();
    check(
        &mut server,
        &mut session,
        &[
            ("SELECT 1", "+OK"),
            ("s.write 'SET a 1'", "*2 \"ok\" \"OK\""),
            ("GET a", "\"1\""),
            ("SELECT 0", "+OK"),
            ("GET a", "nil"),
        ],
    );
}

#[test]
fn a_script_may_go_on_after_a_refusal_but_not_after_half_a_command() {
    let (mut server, mut session) = server();
    check(
        &mut server,
        &mut session,
        &[
            (
                "s.try 'SET a x' 'INCR a'",
                "*2 nil \"s.lua:11: ERR value is not an integer or out of range\"",
            ),
            ("GET a", "\"x\""),
            ("s.try GET", "*2 nil \"s.lua:11: ERR wrong number of arguments for 'get' command\""),
        ],
    );
    let long_key = "k".repeat(5000);
    let line = format!("s.try 'SET b 1' 'MSET c 1 {long_key} 2'");
    let reply = show(&server.run(&mut session, &line).0);
    assert_eq!(reply, "-ERR a key has 1 to 4096 bytes, this one has 5000\n");
    check(&mut server, &mut session, &[("MGET b c", "*2 nil nil")]);
}

/// Sends every command of the table, so that later additions are covered.
#[test]
fn a_script_may_call_what_works_on_data_alone() {
    let (server, _) = server();
    let mut snapshot = server.shared.store().snapshot().unwrap();
    let shared = &server.shared;
    let (user, main) = (shared.users().newcomer(), shared.main_selected());
    let mut commands = ScriptCommands::for_call(shared, &user, main, "s.read").unwrap();
    for command in COMMANDS.iter().filter(|command| !command.is_container()) {
        let mut arguments: Vec<&[u8]> = command.name.split('|').map(str::as_bytes).collect();
        arguments.resize(usize::from(command.arity.unsigned_abs()).max(arguments.len()), b"1");
        let reply = commands.command(Transaction::Read(&mut *snapshot), &arguments);
        let reason = match reply {
            Err(CommandError::Refused(reason)) => reason,
            Err(CommandError::Failed(reason)) => panic!("{}: {reason}", command.name),
            Ok(_) => String::new(),
        };
        let of_session = reason == "ERR This Redis command is not allowed from script";
        let writes = reason == "ERR Write commands are not allowed from read-only scripts.";
        match command.handler {
            _ if is_of_debug(command) => assert!(of_session, "{}", command.name),
            Handler::Read(_) | Handler::StreamRead(_) | Handler::Server(_) => {
                assert!(!of_session && !writes);
            }
            Handler::Write(_) | Handler::Blocking(_) | Handler::GroupRead(_) => {
                assert!(writes, "{}", command.name);
            }
            _ => assert!(of_session, "{}", command.name),
        }
    }
    let unknown = commands.command(Transaction::Read(&mut *snapshot), &[b"s.read", b"PING"]);
    assert_eq!(
        unknown,
        Err(CommandError::Refused(
            "ERR unknown command 's.read', with args beginning with: 'PING' ".to_owned()
        ))
    );
    assert!(snapshot.get(server.shared.main(), b"1").unwrap().is_none());
    let again = commands.command(Transaction::Read(&mut *snapshot), &[b"echo", b"1"]);
    assert_eq!(again, Ok(CommandReply::Bytes(b"1")));
}

#[test]
fn a_script_may_call_no_more_than_its_caller() {
    let (server, _) = server();
    let (shared, mut snapshot) = (&server.shared, server.shared.store().snapshot().unwrap());
    let main = shared.main_selected();
    let anonymous = ScriptCommands::for_call(shared, &Principal::Anonymous, main, "s.read");
    assert_eq!(anonymous.err(), Some(Denied::Unauthenticated));
    let rules: [&[u8]; 5] = [b"on", b"nopass", b"+procedure|s.read", b"+get", b"~a"];
    let made =
        shared.users().change("u", |user| rules.iter().try_for_each(|rule| user.apply(rule)));
    assert!(made.is_ok());
    let user = shared.users().authenticate(b"u", b"").unwrap();
    assert!(ScriptCommands::for_call(shared, &user, main, "s.write").is_err());
    let mut commands = ScriptCommands::for_call(shared, &user, main, "s.read").unwrap();
    let mut run = |arguments: &[&[u8]]| {
        commands.command(Transaction::Read(&mut *snapshot), arguments).map(drop)
    };
    assert_eq!(run(&[b"GET", b"a"]), Ok(()));
    let refused = |reason: &str| {
        Err(CommandError::Refused(format!("NOPERM ACL failure in script: {reason}")))
    };
    assert_eq!(run(&[b"GET", b"b"]), refused("No permissions to access a key"));
    let strlen = "User u has no permissions to run the 'strlen' command";
    assert_eq!(run(&[b"STRLEN", b"a"]), refused(strlen));
}
