//! What the table says about a command.

use std::fmt;

use tokaido_script::Vm;
use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{call::Call, execute::Step, failure::Failure, procedures::Invocation};

/// What a command needs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the session and the server.
    Connection,
    /// A snapshot.
    Read,
    /// A write transaction, on the writer.
    Write,
    /// What the procedure's mode says: FCALL, and procedures called by their bare name.
    Procedure,
}

pub(crate) type ConnectionFn = fn(&mut Call<'_, '_>) -> Result<Step, Failure>;

pub(crate) type WriteFn = fn(&mut Call<'_, '_>, &mut dyn WriteTransaction) -> Result<(), Failure>;

/// What runs a command. Its access follows from this, so the two cannot disagree.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// The command is known together with its first argument, as `client|id`. Some do something
    /// without one.
    Container(Option<ConnectionFn>),
    /// Works on the session and the server.
    Connection(ConnectionFn),
    /// Works on a snapshot, or on the writer's view.
    Read(fn(&mut Call<'_, '_>, &mut dyn ReadTransaction) -> Result<(), Failure>),
    /// Works in a write transaction, which is committed if it succeeds.
    Write(WriteFn),
    /// Names a procedure and its arguments.
    Procedure(fn(&Call<'_, '_>, &Vm) -> Result<Invocation, Failure>),
    /// Runs what MULTI has queued.
    Exec,
}

/// Where the keys stand among the arguments, counted as Redis does: the name is 0, and a negative
/// `last` counts from the end. All zero: no keys, or not at fixed places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPositions {
    /// The first key.
    pub first: i8,
    /// The last key.
    pub last: i8,
    /// From one key to the next.
    pub step: i8,
}

impl KeyPositions {
    /// The places of the keys in a request of `len` arguments, the name included.
    pub(crate) fn places(self, len: usize) -> impl Iterator<Item = usize> {
        let last = if self.last < 0 {
            len.saturating_sub(usize::from(self.last.unsigned_abs()))
        } else {
            self.last as usize
        };
        let last = if self.first == 0 { None } else { Some(last.min(len.saturating_sub(1))) };
        let first = self.first as usize;
        let step = self.step.max(1) as usize;
        last.into_iter().flat_map(move |last| (first..=last).step_by(step))
    }
}

/// The part of the documentation that a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Sessions.
    Connection,
    /// The server as a whole.
    Server,
    /// Keys, whatever is under them.
    Generic,
    /// Values.
    String,
    /// Several commands as one.
    Transactions,
    /// Procedures.
    Scripting,
}

impl Group {
    /// The name that COMMAND DOCS gives.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Generic => "generic",
            Self::String => "string",
            Self::Transactions => "transactions",
            Self::Scripting => "scripting",
        }
    }

    /// The access category that the group makes its commands belong to.
    fn category(self) -> Option<&'static str> {
        match self {
            Self::Connection => Some("@connection"),
            Self::Server => None,
            Self::Generic => Some("@keyspace"),
            Self::String => Some("@string"),
            Self::Transactions => Some("@transaction"),
            Self::Scripting => Some("@scripting"),
        }
    }
}

/// Properties that no other column of the table implies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// Takes constant or logarithmic time.
    pub(crate) const FAST: Self = Self(1 << 0);
    /// May make the data larger.
    pub(crate) const DENYOOM: Self = Self(1 << 1);
    /// For the operator.
    pub(crate) const ADMIN: Self = Self(1 << 2);
    /// Can disturb others, or tells about the server.
    pub(crate) const DANGEROUS: Self = Self(1 << 3);
    /// Runs before a password was given.
    pub(crate) const NO_AUTH: Self = Self(1 << 4);
    /// Cannot be queued by MULTI.
    pub(crate) const NO_MULTI: Self = Self(1 << 5);
    /// Has keys at places that depend on its arguments.
    pub(crate) const MOVABLE_KEYS: Self = Self(1 << 6);
    /// Runs at once, even after MULTI.
    pub(crate) const UNQUEUED: Self = Self(1 << 7);

    /// Writes to other databases than the selected one, too.
    pub(crate) const SPANS: Self = Self(1 << 9);

    /// Takes time in proportion to the data, so it must not run where others wait.
    pub(crate) const LONG: Self = Self(1 << 8);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// A command, or a subcommand under a name like `client|id`: one row of the table.
#[derive(Clone, Copy)]
pub struct Command {
    /// In lower case.
    pub name: &'static str,
    /// The number of arguments with the name, as Redis counts it: negative for a least number.
    /// Of a subcommand, the container's name counts, too.
    pub arity: i8,
    pub(crate) handler: Handler,
    /// Where its keys are.
    pub keys: KeyPositions,
    pub(crate) flags: Flags,
    /// What it is documented under.
    pub group: Group,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// What follows the name.
    pub syntax: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Command {
    /// What it needs to run.
    #[must_use]
    pub fn access(&self) -> Access {
        match self.handler {
            Handler::Container(_) | Handler::Connection(_) => Access::Connection,
            Handler::Read(_) => Access::Read,
            Handler::Write(_) | Handler::Exec => Access::Write,
            Handler::Procedure(_) => Access::Procedure,
        }
    }

    /// Whether it has subcommands.
    #[must_use]
    pub fn is_container(&self) -> bool {
        matches!(self.handler, Handler::Container(_))
    }

    /// The container's name, if this is a subcommand.
    #[must_use]
    pub fn container(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }

    /// As a user types it: in capitals, subcommands after a space, arguments behind.
    #[must_use]
    pub fn usage(&self) -> String {
        let name = self.name.replace('|', " ").to_uppercase();
        if self.syntax.is_empty() { name } else { format!("{name} {}", self.syntax) }
    }

    pub(crate) fn accepts(&self, len: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { len >= least } else { len == least }
    }

    /// The flags that COMMAND INFO tells.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let access = match self.handler {
            Handler::Read(_) => Some("readonly"),
            Handler::Write(_) => Some("write"),
            _ => None,
        };
        let named = [
            (Flags::FAST, "fast"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::MOVABLE_KEYS, "movablekeys"),
        ];
        let flags = self.flags;
        access.into_iter().chain(
            named.into_iter().filter(move |&(flag, _)| flags.has(flag)).map(|(_, name)| name),
        )
    }

    /// The access categories that COMMAND INFO tells.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> {
        let access = match self.handler {
            Handler::Read(_) => Some("@read"),
            Handler::Write(_) => Some("@write"),
            _ => None,
        };
        let speed = if self.flags.has(Flags::FAST) { "@fast" } else { "@slow" };
        let admin = self.flags.has(Flags::ADMIN).then_some("@admin");
        let dangerous = self.flags.has(Flags::DANGEROUS).then_some("@dangerous");
        [access, self.group.category(), Some(speed), admin, dangerous].into_iter().flatten()
    }
}
