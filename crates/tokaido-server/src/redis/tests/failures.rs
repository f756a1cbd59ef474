//! What happens to a request when the store fails.

use std::ops::Bound;

use tokaido_script::Sources;
use tokaido_store::{
    CommitError, CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, ReadError,
    ReadTransaction, Record, Snapshot, WriteError, WriteTransaction, Writer,
};
use tokaido_wire::resp::{ReplyWriter, Request};

use super::{Context, Server, Session, Step, Target, execute};

/// How the store fails.
enum Trouble {
    /// The first commits conflict.
    Conflicts(u32),
    /// Every commit fails because the disk is full.
    DiskFull,
    /// Writes are refused since an earlier failure.
    Poisoned,
    /// Beginning a transaction works; after that, it panics.
    Panic,
}

/// A writer that forwards everything except for the trouble.
struct Troubled {
    inner: Box<dyn Writer>,
    trouble: Trouble,
    panicking: Panicking,
    rollbacks: usize,
}

impl Writer for Troubled {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        match self.trouble {
            Trouble::Poisoned => Err(WriteError::Poisoned { why: "the disk is gone".to_owned() }),
            Trouble::Panic => {
                self.inner.begin()?;
                Ok(&mut self.panicking)
            }
            _ => self.inner.begin(),
        }
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.inner.transaction()
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        match &mut self.trouble {
            Trouble::Conflicts(left) if *left > 0 => {
                *left -= 1;
                self.inner.rollback()?;
                Err(CommitError::Conflict)
            }
            Trouble::DiskFull => {
                self.inner.rollback()?;
                Err(CommitError::DiskFull)
            }
            _ => self.inner.commit(),
        }
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.rollbacks += 1;
        self.inner.rollback()
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        self.inner.flush()
    }
}

/// A transaction, or a snapshot, with a bug.
struct Panicking;

impl ReadTransaction for Panicking {
    fn now_ms(&self) -> u64 {
        0
    }

    fn get<'t>(&'t mut self, _: DatabaseId, _: &[u8]) -> Result<Option<Record<'t>>, ReadError> {
        panic!("a bug in get")
    }

    fn seek<'t>(
        &'t mut self,
        _: DatabaseId,
        _: Bound<&[u8]>,
        _: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        panic!("a bug in seek")
    }

    fn statistics(&mut self, _: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        panic!("a bug in statistics")
    }
}

impl WriteTransaction for Panicking {
    fn number(&self) -> CommitNumber {
        0
    }

    fn put(
        &mut self,
        _: DatabaseId,
        _: &[u8],
        _: tokaido_store::NewRecord<'_>,
    ) -> Result<(), WriteError> {
        panic!("a bug in put")
    }

    fn delete(&mut self, _: DatabaseId, _: &[u8]) -> Result<bool, WriteError> {
        panic!("a bug in delete")
    }

    fn clear(&mut self, _: DatabaseId) -> Result<(), WriteError> {
        panic!("a bug in clear")
    }
}

impl Snapshot for Panicking {
    fn renew(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    fn release(&mut self) {}
}

/// Runs requests on a writer with trouble. Returns the replies.
fn run(server: &mut Server, session: &mut Session, trouble: Trouble, lines: &[&[&str]]) -> String {
    let inner = server.shared.store().writer().unwrap();
    let mut writer = Troubled { inner, trouble, panicking: Panicking, rollbacks: 0 };
    let mut out = Vec::new();
    let mut reply = ReplyWriter::new(&mut out, session.version());
    for line in lines {
        let arguments: Vec<&[u8]> = line.iter().map(|argument| argument.as_bytes()).collect();
        let request = Request::from_arguments(&arguments);
        let target = Target::Writer(&mut writer);
        let (shared, procedures) = (&*server.shared, server.program.procedures());
        let mut context = Context::new(shared, procedures, target, true);
        let step = execute(session, request, &mut context, &mut reply);
        assert_eq!(step, Step::Done);
    }
    writer.flush().unwrap();
    String::from_utf8(out).unwrap()
}

fn fresh() -> (Server, Session) {
    let server = Server::new(None, &Sources::default());
    let session = server.session();
    (server, session)
}

#[test]
fn a_conflict_runs_the_command_again() {
    let (mut server, mut session) = fresh();
    let lines: &[&[&str]] = &[&["INCR", "n"], &["INCR", "n"]];
    let out = run(&mut server, &mut session, Trouble::Conflicts(3), lines);
    assert_eq!(out, ":1\r\n:2\r\n");
}

#[test]
fn conflicts_without_end_are_given_up() {
    let (mut server, mut session) = fresh();
    let out = run(&mut server, &mut session, Trouble::Conflicts(u32::MAX), &[&["INCR", "n"]]);
    assert!(out.starts_with("-ERR the transaction collided"), "{out}");
}

#[test]
fn a_full_disk_is_told_and_takes_back_the_reply() {
    let (mut server, mut session) = fresh();
    let lines: &[&[&str]] = &[&["SET", "a", "1", "GET"], &["MGET", "a"]];
    let out = run(&mut server, &mut session, Trouble::DiskFull, lines);
    assert!(out.starts_with("-ERR the disk is full"), "{out}");
    assert!(out.ends_with("\r\n*1\r\n$-1\r\n"), "{out}");
}

#[test]
fn a_poisoned_store_is_a_misconfiguration() {
    let (mut server, mut session) = fresh();
    let out = run(&mut server, &mut session, Trouble::Poisoned, &[&["SET", "a", "1"]]);
    assert!(out.starts_with("-MISCONF the store refuses writes"), "{out}");
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn a_panic_on_the_writer_is_an_error_and_rolled_back() {
    let (mut server, mut session) = fresh();
    let lines: &[&[&str]] = &[&["SET", "a", "1"], &["GET", "a"], &["PING"], &["DEL", "a"]];
    let out = run(&mut server, &mut session, Trouble::Panic, lines);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("-ERR internal error: a bug in put"), "{out}");
    assert!(lines[1].starts_with("-ERR internal error: a bug in get"), "{out}");
    assert_eq!(lines[2], "+PONG");
    assert!(lines[3].starts_with("-ERR internal error: a bug in delete"), "{out}");
    // The store has no open transaction, and continues to work.
    assert_eq!(server.run(&mut session, "SET a 2").0, b"+OK\r\n");
    assert_eq!(server.run(&mut session, "GET a").0, b"$1\r\n2\r\n");
}

#[test]
fn a_panic_on_a_snapshot_is_an_error() {
    let (mut server, mut session) = fresh();
    let mut out = Vec::new();
    let mut reply = ReplyWriter::new(&mut out, session.version());
    let request = Request::from_arguments(&[b"MGET", b"a", b"b"]);
    let target = Target::Snapshot(&mut Panicking);
    let (shared, procedures) = (&*server.shared, server.program.procedures());
    let mut context = Context::new(shared, procedures, target, true);
    let step = execute(&mut session, request, &mut context, &mut reply);
    assert_eq!(step, Step::Done);
    assert!(out.starts_with(b"-ERR internal error: a bug in get"), "{}", out.escape_ascii());
}

#[test]
fn a_failed_exec_leaves_the_session_outside_of_multi() {
    let (mut server, mut session) = fresh();
    let lines: &[&[&str]] = &[&["MULTI"], &["SET", "a", "1"], &["EXEC"], &["EXEC"]];
    let out = run(&mut server, &mut session, Trouble::DiskFull, lines);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["+OK", "+QUEUED"]);
    assert!(lines[2].starts_with("-ERR the disk is full"), "{out}");
    assert_eq!(lines[3], "-ERR EXEC without MULTI");
}
