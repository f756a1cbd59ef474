//! What a call is lent by the program around the VM: a transaction, and the commands of a server.

use tokaido_store::{ReadTransaction, WriteTransaction};

use crate::{CallError, Sockets, TyrantCommons, Value};

/// The transaction that a call runs in.
pub enum Transaction<'t> {
    /// For [`Mode::Read`](crate::Mode::Read).
    Read(&'t mut dyn ReadTransaction),
    /// For [`Mode::Write`](crate::Mode::Write); a read procedure may run in it, too.
    Write(&'t mut dyn WriteTransaction),
}

/// Runs commands for scripts (`tx:command` in Lua), each inside the transaction of the script that
/// asks: the command sees what the script has written, and what it writes is the script's to see,
/// to commit and to roll back.
///
/// The VM is in the middle of the script meanwhile, so a command must not call back into it.
pub trait Host {
    /// Runs one command, the name first, and gives its reply.
    ///
    /// # Errors
    /// See [`CommandError`].
    fn command(
        &mut self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError>;

    /// Calls a procedure of another language, or dialect, within the transaction.
    ///
    /// # Errors
    /// See [`NestedError`].
    fn call(
        &mut self,
        _transaction: Transaction<'_>,
        name: &[u8],
        _arguments: &[Value],
    ) -> Result<Value, NestedError> {
        Err(NestedError::unknown(name))
    }

    /// Calls a function of Tokyo Tyrant's `misc`, and gives what that gives; `None` if it has refused.
    ///
    /// # Errors
    /// See [`CommandError`].
    fn misc(
        &mut self,
        _transaction: Transaction<'_>,
        _call: MiscCall<'_>,
    ) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
        Err(CommandError::Refused("misc has no functions here".to_owned()))
    }

    /// The sockets of the request, if it may have any.
    fn sockets(&mut self) -> Option<&mut dyn Sockets> {
        None
    }

    /// How busy the server is.
    fn figures(&mut self) -> Option<ServerFigures> {
        None
    }

    /// Whether the database of Tokyo Tyrant's scripts is a table, whose values are rows.
    fn is_table(&mut self) -> bool {
        false
    }

    /// From here on replies have the form that scripts of Redis get in version 2 or 3 of its protocol.
    fn speak(&mut self, _version: i32) {}

    /// Whether the script may run that command; `None` if there is none of that name.
    fn may_run(&mut self, _arguments: &[&[u8]]) -> Option<bool> {
        None
    }
}

/// How busy a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// For how long it has run, in seconds.
    pub uptime_s: u64,
    /// Requests of all protocols that it has answered.
    pub requests: u64,
    /// Connections that are open.
    pub connections_open: u64,
    /// Maximum number of them.
    pub connections_max: u64,
}

/// A call of a function of Tokyo Tyrant's `misc`.
pub struct MiscCall<'c> {
    /// The function.
    pub name: &'c [u8],
    /// What it is given.
    pub arguments: &'c [&'c [u8]],
    /// Where the iterator is that it moves, if it does.
    pub commons: &'c TyrantCommons,
}

/// What a command replied. The replies of most commands are lent by the host, so that no memory is taken for them.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandReply<'h> {
    /// A string.
    Bytes(&'h [u8]),
    /// A status, which scripts get as a table with the field `ok`.
    Status(&'h [u8]),
    /// Anything else.
    Value(Value),
}

impl From<Value> for CommandReply<'_> {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// A command gave no reply. The script gets the message as an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It was refused, and nothing of it remains: the script may catch the error and go on.
    #[error("{0}")]
    Refused(String),
    /// Something of it may remain in the transaction, which can no longer be committed, even if the
    /// script catches the error.
    #[error("{0}")]
    Failed(String),
}

/// A procedure that another one has called gave no result.
#[derive(Debug, thiserror::Error)]
pub enum NestedError {
    /// It was not called.
    #[error("{0}")]
    Refused(String),
    /// It failed.
    #[error("{error}")]
    Failed {
        /// Why.
        error: CallError,
        /// If so, the transaction cannot be committed, even if the script catches the error: of what a procedure does,
        /// all happens, or nothing.
        may_have_written: bool,
    },
}

impl NestedError {
    pub(crate) fn unknown(name: &[u8]) -> Self {
        Self::Refused(format!("there is no procedure {}", String::from_utf8_lossy(name)))
    }

    /// The code and the HTTP status with which the procedure has said no, if it has.
    #[must_use]
    pub fn code_and_status(&self) -> (Option<&str>, Option<u16>) {
        match self {
            Self::Failed { error: CallError::Refused { code, status, .. }, .. } => {
                (code.as_deref(), *status)
            }
            _ => (None, None),
        }
    }

    /// Whether the transaction can no longer be committed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Failed { may_have_written: true, .. })
    }
}

/// What a call runs in.
pub struct Scope<'t> {
    /// The transaction.
    pub transaction: Transaction<'t>,
    /// Who runs the call's commands; without one they are refused.
    pub host: Option<&'t mut dyn Host>,
}

impl<'s> Scope<'s> {
    /// That of a transaction which may be lent for longer than the host.
    pub fn of<'t: 's>(transaction: Transaction<'t>, host: &'s mut dyn Host) -> Self {
        let host = Some(host);
        // Each arm lends the transaction for as long as the host is lent.
        match transaction {
            Transaction::Read(tx) => Scope { transaction: Transaction::Read(tx), host },
            Transaction::Write(tx) => Scope { transaction: Transaction::Write(tx), host },
        }
    }
}

impl<'t> From<Transaction<'t>> for Scope<'t> {
    fn from(transaction: Transaction<'t>) -> Self {
        Self { transaction, host: None }
    }
}
