//! One call of a command: its arguments, the database it works on, and where its reply goes.

use std::{
    borrow::Cow,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use tokaido_collections::Packing;
use tokaido_store::{
    Capabilities, CommitNumber, DatabaseId, Kind, ReadTransaction, Record, WriteTransaction,
};
use tokaido_wire::resp::Request;

use super::{
    Message, command::Group, execute::find_command, failure::Failure, number::parse_integer,
    reply::Reply, tracking::Reader,
};
use crate::{
    Shared,
    selected::{self, Selected},
};

/// What every command gets, whether a connection or a script calls it. The arguments outlive it, so
/// that they can be used while the reply is written.
pub(crate) struct Call<'c> {
    pub(crate) shared: &'c Shared,
    /// The selected database.
    pub(crate) database: DatabaseId,
    pub(crate) request: Request<'c>,
    pub(crate) reply: &'c mut dyn Reply,
    /// Whether nothing else waits for the thread.
    pub(crate) may_take_long: bool,
    /// The messages to publish. They are sent with the reply: if it is discarded, none is sent.
    pub(crate) messages: Vec<Message>,
    /// Records what is read, for a session that tracks keys.
    pub(crate) reader: Option<Arc<Reader>>,
    /// The last transaction of the call that changed anything.
    pub(crate) committed: Option<CommitNumber>,
}

impl<'c> Call<'c> {
    /// The argument at `index`; index 0 is the command's name. Empty if there is none, which cannot
    /// happen for an argument that the arity in the table requires.
    pub(crate) fn arg(&self, index: usize) -> &'c [u8] {
        self.request.get(index).unwrap_or_default()
    }

    /// The number of arguments, including the name.
    pub(crate) fn len(&self) -> usize {
        self.request.len()
    }

    /// The argument at `index` as an integer.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Failure> {
        parse_integer(self.arg(index)).ok_or(Failure::NotAnInteger)
    }

    /// The string under `key`.
    ///
    /// # Errors
    /// [`Failure::WrongKind`] if something else is there.
    pub(crate) fn string<'t>(
        &self,
        tx: &'t mut dyn ReadTransaction,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, Failure> {
        only_of(Kind::Bytes, tx.get(self.database, key)?)
    }

    /// The argument at `index` as a number of at least `min`; otherwise the error is `message`.
    pub(crate) fn number(&self, index: usize, min: u64, message: &str) -> Result<u64, Failure> {
        let number = self.integer(index).ok().and_then(|number| u64::try_from(number).ok());
        number.filter(|&number| number >= min).ok_or_else(|| Failure::other(message))
    }

    /// The argument at `index` as a non-negative number.
    pub(crate) fn positive(&self, index: usize) -> Result<u64, Failure> {
        self.number(index, 0, "value is out of range, must be positive")
    }

    /// The indices of the keys that follow their number, the argument at `index`. The call may have fewer
    /// arguments.
    pub(crate) fn keys_after(&self, index: usize) -> Result<Range<usize>, Failure> {
        let count = self.number(index, 1, "numkeys should be greater than 0")? as usize;
        let first = index + 1;
        Ok(first..first.saturating_add(count))
    }

    /// How many elements LMPOP or ZMPOP takes: the argument of `COUNT` at `index`, or one.
    pub(crate) fn pop_count(&self, index: usize) -> Result<u64, Failure> {
        match self.len().checked_sub(index) {
            Some(0) => Ok(1),
            Some(2) if self.is_word(index, "COUNT") => {
                self.number(index + 1, 1, "count should be greater than 0")
            }
            _ => Err(Failure::Syntax),
        }
    }

    /// Refuses to visit so many elements of a collection where others wait for the thread; the
    /// command then runs elsewhere.
    pub(crate) fn check_visit(&self, elements: u64) -> Result<(), Failure> {
        check_visit(self.may_take_long, elements)
    }

    /// Fails if a collection had more or fewer elements than the reply's header has announced.
    pub(crate) fn check_written(&self, written: usize, announced: usize) -> Result<(), Failure> {
        self.check_reply()?;
        if written == announced {
            return Ok(());
        }
        let message = format!(
            "a collection has {written} elements where its record says {announced}; restore a backup"
        );
        Err(Failure::Store(message))
    }

    /// Fails if the reply has reached its limit. The error says what to use instead.
    pub(crate) fn check_reply(&self) -> Result<(), Failure> {
        if self.reply.is_over_limit() { Err(self.reply_too_long()) } else { Ok(()) }
    }

    fn reply_too_long(&self) -> Failure {
        let group = find_command(self.request).ok().flatten().map(|command| command.group);
        let instead = match group {
            Some(Group::Hash) => "use HSCAN, or ask for fewer fields",
            Some(Group::Set) => "use SSCAN, or ask for fewer members",
            Some(Group::SortedSet) => "use ZSCAN, or ask for fewer members",
            Some(Group::Stream) => "ask for fewer entries with COUNT",
            Some(Group::List) => "use LRANGE, and ask for fewer items",
            Some(Group::Generic) => "use SCAN",
            _ => "ask for less at a time",
        };
        Failure::ReplyTooLong { max: self.shared.limits().reply_bytes_max, instead }
    }

    /// Room for what the command buffers before it writes it: as much as its reply may take.
    pub(crate) fn room(&self) -> Room {
        Room { bytes_left: Some(self.shared.limits().reply_bytes_max) }
    }

    /// Fails if the room was not enough.
    pub(crate) fn check_room(&self, room: &Room) -> Result<(), Failure> {
        if room.bytes_left.is_none() { Err(self.reply_too_long()) } else { Ok(()) }
    }

    /// The limits up to which collections are packed.
    pub(crate) fn packing(&self) -> Packing {
        self.shared.limits().packing()
    }

    /// What the engine behind the selected database can do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.shared.capabilities(self.database)
    }

    /// Refuses a command that needs a transaction if the database does not support them. `instead` says
    /// what to use there.
    pub(crate) fn needs_transaction(&self, instead: &str) -> Result<(), Failure> {
        let Capabilities { name, is_writable, is_transactional, .. } = self.capabilities();
        if is_transactional || !is_writable {
            return Ok(());
        }
        Err(Failure::other(format!(
            "this database is a {name}, which has no transactions; {instead}"
        )))
    }

    /// The database that the argument at `index` names, by number or, unlike in Redis, by name.
    pub(crate) fn database_at(&self, index: usize) -> Result<Selected, Failure> {
        let name = self.database_name_at(index)?;
        Ok(Selected::new(&**self.shared.store(), &name)?)
    }

    /// Like [`database_at`](Self::database_at), opened for writing in the transaction.
    pub(crate) fn open_database_at(
        &self,
        tx: &mut dyn WriteTransaction,
        index: usize,
    ) -> Result<DatabaseId, Failure> {
        Ok(selected::open_in(&self.database_name_at(index)?, tx, self.shared)?)
    }

    /// The name of the database that the argument at `index` names.
    pub(crate) fn database_name_at(&self, index: usize) -> Result<Cow<'c, str>, Failure> {
        let argument = self.arg(index);
        if let Some(number) = parse_integer(argument) {
            let number = usize::try_from(number).map_err(|_| Failure::DatabaseIndex)?;
            return self.shared.numbered(number).ok_or(Failure::DatabaseIndex);
        }
        let digits = argument.strip_prefix(b"-").unwrap_or(argument);
        if digits.len() >= i64::MAX.to_string().len() && digits.iter().all(u8::is_ascii_digit) {
            return Err(Failure::NotAnInteger);
        }
        match std::str::from_utf8(argument) {
            Ok(name) => Ok(Cow::Borrowed(name)),
            Err(_) => Err(Failure::other(format!(
                "no database has that name; use a number below {} or a name",
                self.shared.limits().numbered_databases_max
            ))),
        }
    }

    /// Whether the argument at `index` equals `word`, ignoring case.
    pub(crate) fn is_word(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The error for too few or too many arguments, where the arity in the table cannot detect it.
    pub(crate) fn wrong_arity(&self, command: &str) -> Failure {
        Failure::Arity { command: command.to_owned() }
    }
}

/// Like [`Call::check_visit`].
pub(super) fn check_visit(may_take_long: bool, elements: u64) -> Result<(), Failure> {
    /// Maximum number of elements to visit where others wait for the thread.
    const VISITED_MAX: u64 = 1000;
    if may_take_long || elements <= VISITED_MAX { Ok(()) } else { Err(Failure::TakesLong) }
}

/// Memory that a command may still use for what it buffers.
pub(crate) struct Room {
    /// `None`: the room was not enough.
    bytes_left: Option<usize>,
}

impl Room {
    /// Takes room for one more string of that length.
    pub(crate) fn take(&mut self, len: usize) -> ControlFlow<()> {
        /// What a string takes besides its bytes: its slot in a table, and the allocator's overhead.
        const TEXT_HEAD_LEN: usize = 64;
        self.bytes_left = self.bytes_left.and_then(|left| left.checked_sub(TEXT_HEAD_LEN + len));
        if self.bytes_left.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Rejects a record of another kind.
pub(super) fn only_of(
    kind: Kind,
    found: Option<Record<'_>>,
) -> Result<Option<Record<'_>>, Failure> {
    match found {
        Some(record) if record.kind != kind => Err(Failure::WrongKind),
        _ => Ok(found),
    }
}
