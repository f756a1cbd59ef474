//! `tx:command`: commands of a host in the script's transaction.

mod support;

use support::{Bed, limits, text, write_body};
use tokaido_script::{
    CallError, CommandError, CommandReply, Host, Limits, Runtime as _, Scope, Transaction, Value,
};
use tokaido_store::{DatabaseId, NewRecord, Store as _, WriteOperations as _, WriteTransaction};

/// A host with a few commands on one database.
struct Commands {
    database: DatabaseId,
}

fn refused<T>(message: &str) -> Result<T, CommandError> {
    Err(CommandError::Refused(message.to_owned()))
}

impl Commands {
    fn write(
        &self,
        tx: &mut dyn WriteTransaction,
        arguments: &[&[u8]],
    ) -> Result<Value, CommandError> {
        let failed = |error: &dyn ToString| CommandError::Failed(error.to_string());
        match *arguments {
            [b"SET", key, value] => {
                let put = tx.put(self.database, key, NewRecord::of(value));
                put.map(|()| text("OK")).map_err(|error| failed(&error))
            }
            [b"INCRBY", key, by] => {
                let by = std::str::from_utf8(by).unwrap().parse().unwrap();
                let sum = tx.increment(self.database, key, by);
                sum.map(Value::Integer).map_err(|error| failed(&error))
            }
            [b"HALF", key] => {
                tx.put(self.database, key, NewRecord::of(b"half")).unwrap();
                Err(CommandError::Failed("HALF is written".to_owned()))
            }
            _ => refused("ERR unknown command"),
        }
    }
}

impl Commands {
    fn reply(
        &self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<Value, CommandError> {
        match (transaction, arguments) {
            (_, [b"PANIC"]) => panic!("on purpose"),
            (_, [b"DEEP"]) => Ok((0..200).fold(Value::Nil, |deep, _| Value::Array(vec![deep]))),
            (_, [b"ECHO", rest @ ..]) => {
                Ok(Value::Array(rest.iter().map(|bytes| Value::String(bytes.to_vec())).collect()))
            }
            (_, [b"NUMBERS"]) => Ok(Value::Map(vec![
                (text("half"), Value::Number(0.5)),
                (text("wide"), Value::Integer(i64::MAX)),
                (text("yes"), Value::Boolean(true)),
            ])),
            (_, [b"WIDE"]) => Ok(Value::Integer(i64::MAX)),
            (_, [b"HUGE"]) => Ok(Value::Array(vec![Value::String(vec![b'x'; 64 << 20])])),
            (Transaction::Read(tx), [b"GET", key]) => {
                let record = tx.get(self.database, key).unwrap();
                Ok(record.map_or(Value::Nil, |record| Value::String(record.value.to_vec())))
            }
            (Transaction::Write(tx), [b"GET", key]) => {
                let record = tx.get(self.database, key).unwrap();
                Ok(record.map_or(Value::Nil, |record| Value::String(record.value.to_vec())))
            }
            (Transaction::Read(_), _) => refused("READONLY this is a read"),
            (Transaction::Write(tx), _) => self.write(tx, arguments),
        }
    }
}

impl Host for Commands {
    fn command(
        &mut self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        self.reply(transaction, arguments).map(CommandReply::Value)
    }
}

/// Runs the body of a write procedure with the host, and commits if it succeeds.
fn run(bed: &mut Bed) -> Result<Value, CallError> {
    let mut host = Commands { database: bed.store.database("main").unwrap() };
    let procedure = bed.vm.find(b"m.f").unwrap();
    let mut writer = bed.store.writer().unwrap();
    let transaction = Transaction::Write(writer.begin().unwrap());
    let result = bed.vm.call(procedure, Scope { transaction, host: Some(&mut host) }, &[]);
    match &result {
        Ok(_) => drop(writer.commit().unwrap()),
        Err(_) => writer.rollback().unwrap(),
    }
    result
}

fn raised(body: &str) -> String {
    match run(&mut Bed::body(body)) {
        Err(CallError::Raised { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_sees_and_makes_the_writes_of_its_script() {
    let mut bed = Bed::body(
        r#"
        tx.main:put("k", 37)
        assert(tx:command("INCRBY", "k", 5) == 42)
        assert(tx.main:get("k") == "42")
        assert(tx:command("GET", "k") == "42" and tx:command("GET", "none") == nil)
        return tx:command("SET", "answer", "yes")
        "#,
    );
    assert_eq!(run(&mut bed).unwrap(), text("OK"));
    assert_eq!((bed.stored("k"), bed.stored("answer")), (Some("42".into()), Some("yes".into())));
}

#[test]
fn replies_of_every_kind_become_values() {
    let mut bed = Bed::body(
        r#"
        local echo = tx:command("ECHO", "a", 2, -0.5, 9007199254740993LL)
        assert(#echo == 4 and echo[1] == "a" and echo[2] == "2" and echo[3] == "-0.5")
        assert(echo[4] == "9007199254740993")
        local numbers = tx:command("NUMBERS")
        assert(numbers.half == 0.5 and numbers.wide == 9223372036854775807LL and numbers.yes)
        assert(tx:command("WIDE") == 9223372036854775807LL)
        return #tx:command("ECHO")
        "#,
    );
    assert_eq!(run(&mut bed).unwrap(), Value::Integer(0));
}

#[test]
fn a_refused_command_can_be_caught_and_names_the_line() {
    assert_eq!(raised("\n tx:command('NONE')"), "m.lua:3: ERR unknown command");
    assert!(raised("tx:command()").contains("is a string or a number, this one is nil"));
    assert!(raised("tx:command('DEEP')").contains("nested too deeply"));
    assert!(raised("tx:command('GET', {})").contains("an argument of a command is a string"));
    assert!(raised("tx.command('GET', 'k')").contains("call tx:command with a colon"));
    let mut bed = Bed::body(
        "tx:command('SET', 'k', 1) local ok, why = pcall(tx.command, tx, 'NONE') return why",
    );
    assert_eq!(run(&mut bed).unwrap(), text("ERR unknown command"));
    assert_eq!(bed.stored("k").as_deref(), Some("1"));
}

#[test]
fn what_may_have_left_something_behind_cannot_be_committed() {
    for command in ["HALF', 'k", "PANIC"] {
        let body = format!("tx.main:put('k', 1) pcall(tx.command, tx, '{command}') return 1");
        let mut bed = Bed::body(&body);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let result = run(&mut bed);
        std::panic::set_hook(hook);
        assert!(matches!(result, Err(CallError::Raised { .. })), "{command}");
        assert_eq!(bed.stored("k"), None, "{command}");
    }
}

#[test]
fn limits_hold_while_commands_run() {
    let forever = "tx:command('SET', 'k', 1) while true do pcall(tx.command, tx, 'GET', 'k') end";
    let mut bed = Bed::with_limits(&[("m", &write_body(forever))], limits());
    assert!(matches!(run(&mut bed), Err(CallError::TimeLimit { .. })));
    assert_eq!(bed.stored("k"), None);
    let huge = "tx:command('SET', 'k', 1) pcall(tx.command, tx, 'HUGE') return 1";
    let enough_time = Limits { time: Limits::default().time, ..limits() };
    let mut bed = Bed::with_limits(&[("m", &write_body(huge))], enough_time);
    assert!(matches!(run(&mut bed), Err(CallError::MemoryLimit { .. })));
    assert_eq!(bed.stored("k"), None);
}

#[test]
fn a_scan_goes_on_with_what_a_command_wrote() {
    let mut bed = Bed::body(
        r#"
        for i = 1, 9 do tx.main:put("k" .. i, "old") end
        local seen = {}
        for key, value in tx.main:scan() do
          seen[#seen + 1] = value
          tx:command("SET", "k9", "new")
        end
        return seen[9]
        "#,
    );
    assert_eq!(run(&mut bed).unwrap(), text("new"));
}

#[test]
fn a_read_procedure_reads_by_commands_and_a_call_without_a_host_says_so() {
    let file = r#"
        local tokaido = require "tokaido"
        return { f = tokaido.read(function(tx, command) return tx:command(command, "k") end) }
    "#;
    let mut bed = Bed::one(file);
    let mut host = Commands { database: bed.store.database("main").unwrap() };
    let procedure = bed.vm.find(b"m.f").unwrap();
    let mut snapshot = bed.store.snapshot().unwrap();
    let mut call = |command: &str, hosted: bool| {
        let host = hosted.then_some(&mut host as &mut dyn Host);
        let scope = Scope { transaction: Transaction::Read(&mut *snapshot), host };
        bed.vm.call(procedure, scope, &[text(command)]).map_err(|error| error.to_string())
    };
    assert_eq!(call("GET", true), Ok(Value::Nil));
    assert!(call("SET", true).unwrap_err().contains("READONLY this is a read"));
    assert!(call("GET", false).unwrap_err().contains("tx:command needs a server around it"));
}
