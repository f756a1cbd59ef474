//! A command, as its row in the table describes it.

use std::fmt;

use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    blocking::Plan, call::Call, execute::Step, failure::Failure, procedures::Invocation,
    session::Session, streams::Reading,
};
use crate::Procedures;

/// What kind of access a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The session or the server, but no data.
    Connection,
    /// A snapshot.
    Read,
    /// A write transaction, on the writer.
    Write,
    /// Depends on the procedure's mode: FCALL, and procedures called by their bare name.
    Procedure,
}

pub(crate) type ServerFn = fn(&mut Call<'_>) -> Result<(), Failure>;

pub(crate) type ReadingFn = fn(&Call<'_>) -> Result<Reading, Failure>;

pub(crate) type WriteFn = fn(&mut Call<'_>, &mut dyn WriteTransaction) -> Result<(), Failure>;

/// The code that runs a command. Its access follows from this, so the two cannot disagree.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// A container of subcommands such as `client|id`. Some can be called without one.
    Container(Option<ServerFn>),
    /// Works on the session, so only a connection can call it.
    Connection(fn(&mut Call<'_>, &mut Session) -> Result<Step, Failure>),
    /// Works on nothing but the server.
    Server(ServerFn),
    /// Works on a snapshot, or on the writer's view.
    Read(fn(&mut Call<'_>, &mut dyn ReadTransaction) -> Result<(), Failure>),
    /// Works in a write transaction, which is committed if the command succeeds.
    Write(WriteFn),
    /// Pops what is there, or waits for it. The function parses the arguments.
    Blocking(fn(&Call<'_>) -> Result<Plan, Failure>),
    /// Reads streams, or waits for entries. The function parses the arguments.
    StreamRead(ReadingFn),
    /// Like [`StreamRead`](Self::StreamRead), in a write transaction: it records which entries it delivers.
    GroupRead(ReadingFn),
    /// Calls a procedure. The function determines which one, and its arguments.
    Procedure(fn(&Call<'_>, &Procedures<'_>) -> Result<Invocation, Failure>),
    /// WATCH: notes the versions of records in the session, for EXEC.
    Watch,
    /// EXEC: runs the commands that MULTI has queued.
    Exec,
    /// CLIENT PAUSE: on the writer, so that no write is in progress when it replies.
    Pause,
}

/// Where the keys are among the arguments, counted as in Redis: the name is 0, and a negative
/// `last` counts from the end. All zero: no keys, or no fixed positions.
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
    /// Keys, each followed by its value.
    pub(crate) const PAIRS: Self = Self { first: 1, last: -1, step: 2 };
    /// Keys after a word.
    pub(crate) const KEYS_BEHIND_A_WORD: Self = Self { first: 2, last: -1, step: 1 };
    /// The key of a subcommand.
    pub(crate) const SUBKEY: Self = Self { first: 2, last: 2, step: 1 };

    /// The indices of the keys in a request of `len` arguments, including the name.
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

/// The section of the documentation that a command belongs to.
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
    /// Values as arrays of bits.
    Bitmap,
    /// Values that estimate the number of distinct elements added.
    HyperLogLog,
    /// Fields with values.
    Hash,
    /// Items in an order that clients choose.
    List,
    /// Members.
    Set,
    /// Members ordered by score.
    SortedSet,
    /// Members with positions on the earth.
    Geo,
    /// Entries ordered by id.
    Stream,
    /// Messages.
    PubSub,
    /// Several commands run as one.
    Transactions,
    /// Procedures.
    Scripting,
}

impl Group {
    /// The name that COMMAND DOCS reports.
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

    /// The access category of the group's commands.
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
    /// Is meant for the operator.
    pub(crate) const ADMIN: Self = Self(1 << 2);
    /// Can disturb other clients, or reveals details of the server.
    pub(crate) const DANGEROUS: Self = Self(1 << 3);
    /// Runs before authentication.
    pub(crate) const NO_AUTH: Self = Self(1 << 4);
    /// Cannot be queued by MULTI.
    pub(crate) const NO_MULTI: Self = Self(1 << 5);
    /// Has keys at positions that depend on its arguments.
    pub(crate) const MOVABLE_KEYS: Self = Self(1 << 6);
    /// Runs at once, even after MULTI.
    pub(crate) const UNQUEUED: Self = Self(1 << 7);

    /// Works on databases besides the selected one.
    pub(crate) const SPANS: Self = Self(1 << 9);

    /// Takes time in proportion to the data, so it must not run where others wait.
    pub(crate) const LONG: Self = Self(1 << 8);

    /// Can be called in version 2 of the protocol while there are subscriptions.
    pub(crate) const WHILE_SUBSCRIBED: Self = Self(1 << 10);

    /// Writes, but with few arguments takes no longer than a read that runs on a worker, whatever the size of
    /// the data written to.
    pub(crate) const BRIEF: Self = Self(1 << 12);

    /// Cannot be called by a client's script.
    pub(crate) const NO_SCRIPT: Self = Self(1 << 11);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// A command, or a subcommand with a name like `client|id`: one row of the table.
#[derive(Clone, Copy)]
pub struct Command {
    /// In lower case.
    pub name: &'static str,
    /// The number of arguments including the name, as Redis counts: a negative number is a minimum. For a
    /// subcommand, the container's name counts as well.
    pub arity: i8,
    pub(crate) handler: Handler,
    /// Where the keys are.
    pub keys: KeyPositions,
    pub(crate) flags: Flags,
    /// The group that documents it.
    pub group: Group,
    /// The version of Redis that introduced it.
    pub since: &'static str,
    /// The arguments after the name.
    pub syntax: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Makes the rows of a family. Each has the name, the arity, the handler, the positions of keys, flags,
/// the group and the version of Redis; then the arguments; then the summary. Call it with braces, so
/// that rustfmt leaves the columns as they are.
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
    /// The access that the command needs.
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

    /// Whether it runs before a client has authenticated, and whatever the user's permissions.
    pub(crate) fn is_open(&self) -> bool {
        self.flags.has(Flags::NO_AUTH)
    }

    /// Whether it reads data and never writes.
    pub(super) fn reads(&self) -> bool {
        let is_marked = ["eval_ro", "evalsha_ro", "fcall_ro"].contains(&self.name);
        is_marked || self.access() == Access::Read
    }

    /// Whether its arguments may include keys. Those of `SSUBSCRIBE` and its like are channels instead.
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

    /// The command as a user types it: in capitals, with a space before subcommands and arguments.
    #[must_use]
    pub fn usage(&self) -> String {
        let name = self.name.replace('|', " ").to_uppercase();
        if self.syntax.is_empty() { name } else { format!("{name} {}", self.syntax) }
    }

    /// For a command with a counted list of keys, the index of the argument that is their number.
    pub(crate) fn key_count_place(&self) -> Option<usize> {
        let mut words = self.syntax.split_whitespace();
        let place = words.position(|word| word == "numkeys").map(|place| place + 1);
        place.filter(|_| self.flags.has(Flags::MOVABLE_KEYS))
    }

    /// For a command whose keys follow a word, with as many other arguments after them: the word, and the
    /// first index where it may be.
    pub(crate) fn key_word(&self) -> Option<(&'static str, usize)> {
        match self.handler {
            Handler::StreamRead(_) => Some(("STREAMS", 1)),
            Handler::GroupRead(_) => Some(("STREAMS", 4)),
            _ => None,
        }
    }

    /// Whether it may block.
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

    /// The flags that COMMAND INFO reports.
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
