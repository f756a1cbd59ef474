//! What each command needs, and that an anonymous client gets nothing else.

use tokaido_script::Sources;

use super::Server;
use crate::{
    access::{Permission, Scope},
    redis::{COMMANDS, Command},
};

/// A call with as many arguments as it takes.
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

#[test]
fn commands_need_what_their_rows_say() {
    let server = Server::new(None, &Sources::default());
    let database = server.session().database();
    let selected = Scope::Database(database);
    for (name, permission) in [
        ("ping", Permission::Session),
        ("client", Permission::Session),
        ("client|setname", Permission::Session),
        ("exec", Permission::Session),
        ("select", Permission::Session),
        ("get", Permission::Read(selected)),
        ("keys", Permission::Read(selected)),
        ("watch", Permission::Read(selected)),
        ("info", Permission::Read(Scope::All)),
        ("set", Permission::Write(selected)),
        ("flushdb", Permission::Write(selected)),
        ("flushall", Permission::Write(Scope::All)),
        ("move", Permission::Write(Scope::All)),
        ("fcall", Permission::Call),
        ("fcall_ro", Permission::Call),
    ] {
        let command = COMMANDS.iter().find(|command| command.name == name).unwrap();
        assert_eq!(command.permission(database), permission, "{name}");
    }
    let administers = |c: &&Command| c.permission(database) == Permission::Administer;
    let names: Vec<_> = COMMANDS.iter().filter(administers).map(|c| c.name).collect();
    assert_eq!(
        names,
        [
            "acl|dryrun",
            "acl|getuser",
            "acl|list",
            "acl|users",
            "bgrewriteaof",
            "bgsave",
            "client|kill",
            "client|list",
            "client|no-evict",
            "client|pause",
            "client|unblock",
            "client|unpause",
            "config|get",
            "config|resetstat",
            "config|rewrite",
            "config|set",
            "debug",
            "debug|error",
            "debug|help",
            "debug|loadaof",
            "debug|object",
            "debug|populate",
            "debug|protocol",
            "debug|reload",
            "debug|set-active-expire",
            "debug|sleep",
            "failover",
            "lastsave",
            "latency|doctor",
            "latency|graph",
            "latency|histogram",
            "latency|history",
            "latency|latest",
            "latency|reset",
            "module|list",
            "monitor",
            "replicaof",
            "role",
            "save",
            "shutdown",
            "slaveof",
            "slowlog|get",
            "slowlog|len",
            "slowlog|reset",
        ]
    );
}
