//! A command as its row of the table describes it.

use std::fmt;

use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    blocking::Plan, call::Call, execute::Step, failure::Failure, procedures::Invocation,
    session::Session, streams::Reading,
};
use crate::Procedures;

/// What a command needs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The session or the server, but no data.
    Connection,
    /// A snapshot.
    Read,
    /// A write transaction, on the writer.
    Write,
    /// What the procedure's mode says: FCALL, and procedures called by their bare name.
    Procedure,
}

pub(crate) type ServerFn = fn(&mut Call<'_>) -> Result<(), Failure>;

pub(crate) type ReadingFn = fn(&Call<'_>) -> Result<Reading, Failure>;

pub(crate) type WriteFn = fn(&mut Call<'_>, &mut dyn WriteTransaction) -> Result<(), Failure>;

/// What runs a command. Its access follows from this, so the two cannot disagree.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// A name with subcommands, such as `client|id`. Some can be called without one.
    Container(Option<ServerFn>),
    /// Works on the session, so only a connection can call it.
    Connection(fn(&mut Call<'_>, &mut Session) -> Result<Step, Failure>),
    /// Works on nothing but the server.
    Server(ServerFn),
    /// Works on a snapshot, or on the writer's view.
    Read(fn(&mut Call<'_>, &mut dyn ReadTransaction) -> Result<(), Failure>),
    /// Works in a write transaction, which is committed if it succeeds.
    Write(WriteFn),
    /// Pops what is there, or waits for it; the function finds out what it wants.
    Blocking(fn(&Call<'_>) -> Result<Plan, Failure>),
    /// Reads streams, or waits for entries; the function finds out what it wants.
    StreamRead(ReadingFn),
    /// As [`StreamRead`](Self::StreamRead), in a write transaction: what a consumer is given is noted.
    GroupRead(ReadingFn),
    /// Calls a procedure; the function finds out which one, and with what arguments.
    Procedure(fn(&Call<'_>, &Procedures<'_>) -> Result<Invocation, Failure>),
    /// WATCH: notes the versions of records in the session, for EXEC.
    Watch,
    /// EXEC: runs what MULTI has queued.
    Exec,
    /// CLIENT PAUSE: on the writer, so that no write is under way when it is answered.
    Pause,
}

/// Where the keys stand among the arguments, counted as Redis does: the name is 0, and a negative
/// `last` counts from the end. All zero: no keys, or not at fixed places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPositions {
    /// The first key.
    pub first: i8,
    /// The last key.
    pub last: i8,
    /// The distance from one key to the next.
    pub step: i8,
}

impl KeyPositions {
    pub(crate) const NO_KEY: Self = Self { first: 0, last: 0, step: 0 };
    pub(crate) const KEY: Self = Self { first: 1, last: 1, step: 1 };
    pub(crate) const KEYS: Self = Self { first: 1, last: -1, step: 1 };
    pub(crate) const KEYS_BUT_LAST: Self = Self { first: 1, last: -2, step: 1 };
    pub(crate) const TWO_KEYS: Self = Self { first: 1, last: 2, step: 1 };
    /// Keys with their values.
    pub(crate) const PAIRS: Self = Self { first: 1, last: -1, step: 2 };
    /// Keys behind a word.
    pub(crate) const KEYS_BEHIND_A_WORD: Self = Self { first: 2, last: -1, step: 1 };
    /// The key of a subcommand.
    pub(crate) const SUBKEY: Self = Self { first: 2, last: 2, step: 1 };

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
    /// Keys, whatever the kind of their values.
    Generic,
    /// Values.
    String,
    /// Values as rows of bits.
    Bitmap,
    /// Values that estimate how many elements they were made of.
    HyperLogLog,
    /// Fields with values.
    Hash,
    /// Items in an order of their own.
    List,
    /// Members.
    Set,
    /// Members in the order of their scores.
    SortedSet,
    /// Members with places on the earth.
    Geo,
    /// Entries in the order of their ids.
    Stream,
    /// Messages.
    PubSub,
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
            Self::Bitmap => "bitmap",
            Self::HyperLogLog => "hyperloglog",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::PubSub => "pubsub",
            Self::Transactions => "transactions",
            Self::Scripting => "scripting",
        }
    }

    /// The access category that the group makes its commands belong to.
    pub(super) fn category(self) -> Option<&'static str> {
        match self {
            Self::Connection => Some("@connection"),
            Self::Server => None,
            Self::Generic => Some("@keyspace"),
            Self::String => Some("@string"),
            Self::Bitmap => Some("@bitmap"),
            Self::HyperLogLog => Some("@hyperloglog"),
            Self::Hash => Some("@hash"),
            Self::List => Some("@list"),
            Self::Set => Some("@set"),
            Self::SortedSet => Some("@sortedset"),
            Self::Geo => Some("@geo"),
            Self::Stream => Some("@stream"),
            Self::PubSub => Some("@pubsub"),
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

    /// Works on other databases than the selected one, too.
    pub(crate) const SPANS: Self = Self(1 << 9);

    /// Takes time in proportion to the data, so it must not run where others wait.
    pub(crate) const LONG: Self = Self(1 << 8);

    /// Can be called in version 2 of the protocol while there are subscriptions.
    pub(crate) const WHILE_SUBSCRIBED: Self = Self(1 << 10);

    /// Writes, and with few arguments takes no longer than a read that runs on a worker, whatever the size of
    /// what it writes to.
    pub(crate) const BRIEF: Self = Self(1 << 12);

    /// Cannot be called by a script of a client.
    pub(crate) const NO_SCRIPT: Self = Self(1 << 11);

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
    /// The number of arguments, the name included, as Redis counts it: negative for a minimum. Of a
    /// subcommand, the container's name counts, too.
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

/// Makes the rows of a family. Each has the name, the arity, the handler, the places of keys, flags,
/// the group and the version of Redis; then the arguments; then the summary. To be called with
/// braces, so that rustfmt leaves the columns as they are.
macro_rules! rows {
    ($($name:literal $arity:literal $handler:ident$(($run:expr))?, $keys:ident [$($flag:ident)*]
        $group:ident $since:literal $syntax:literal $summary:literal;)*) => {
        &[$($crate::redis::command::Command {
            name: $name,
            arity: $arity,
            handler: $crate::redis::command::Handler::$handler$(($run))?,
            keys: $crate::redis::command::KeyPositions::$keys,
            flags: $crate::redis::command::Flags::NONE$(.and($crate::redis::command::Flags::$flag))*,
            group: $crate::redis::command::Group::$group,
            since: $since,
            syntax: $syntax,
            summary: $summary,
        }),*]
    };
}
pub(super) use rows;

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
            Handler::Container(_)
            | Handler::Connection(_)
            | Handler::Server(_)
            | Handler::Pause => Access::Connection,
            Handler::Read(_) | Handler::StreamRead(_) | Handler::Watch => Access::Read,
            Handler::Write(_) | Handler::Blocking(_) | Handler::GroupRead(_) | Handler::Exec => {
                Access::Write
            }
            Handler::Procedure(_) => Access::Procedure,
        }
    }

    /// Whether it runs before a client has authenticated, and whatever a user may do.
    pub(crate) fn is_open(&self) -> bool {
        self.flags.has(Flags::NO_AUTH)
    }

    /// Whether it reads data and never writes.
    pub(super) fn reads(&self) -> bool {
        let is_marked = ["eval_ro", "evalsha_ro", "fcall_ro"].contains(&self.name);
        is_marked || self.access() == Access::Read
    }

    /// Whether it may name keys. Those that `SSUBSCRIBE` and its like have are channels.
    pub(super) fn names_keys(&self) -> bool {
        let is_placed = self.keys.first != 0 && self.group != Group::PubSub;
        is_placed || self.key_count_place().is_some() || self.key_word().is_some()
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

    /// The argument that says how many keys follow it, of a command whose keys are counted.
    pub(crate) fn key_count_place(&self) -> Option<usize> {
        let mut words = self.syntax.split_whitespace();
        let place = words.position(|word| word == "numkeys").map(|place| place + 1);
        place.filter(|_| self.flags.has(Flags::MOVABLE_KEYS))
    }

    /// The word that the keys of a command stand behind, of which there are as many as other arguments
    /// behind them; and the first place where it may stand.
    pub(crate) fn key_word(&self) -> Option<(&'static str, usize)> {
        match self.handler {
            Handler::StreamRead(_) => Some(("STREAMS", 1)),
            Handler::GroupRead(_) => Some(("STREAMS", 4)),
            _ => None,
        }
    }

    /// Whether it may wait.
    pub(super) fn blocks(&self) -> bool {
        matches!(
            self.handler,
            Handler::Blocking(_) | Handler::StreamRead(_) | Handler::GroupRead(_)
        )
    }

    pub(crate) fn accepts(&self, len: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { len >= least } else { len == least }
    }

    /// The flags that COMMAND INFO tells.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let access = match self.handler {
            Handler::Read(_) | Handler::StreamRead(_) | Handler::Watch => Some("readonly"),
            Handler::Write(_) | Handler::Blocking(_) | Handler::GroupRead(_) => Some("write"),
            _ => None,
        };
        let blocking = self.blocks().then_some("blocking");
        let group = (self.group == Group::PubSub).then_some("pubsub");
        let named = [
            (Flags::FAST, "fast"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::MOVABLE_KEYS, "movablekeys"),
        ];
        let flags = self.flags;
        access.into_iter().chain(blocking).chain(group).chain(
            named.into_iter().filter(move |&(flag, _)| flags.has(flag)).map(|(_, name)| name),
        )
    }
}
