//! One request under way, as the commands see it.

use tokaido_store::{DatabaseId, Engine, parse_integer};
use tokaido_wire::resp::{ReplyWriter, Request};

use super::{failure::Failure, session::Session};
use crate::Shared;

/// What every command gets. The arguments outlive it, so that they can be used while the reply is
/// written.
pub(crate) struct Call<'c, 'o> {
    pub(crate) session: &'c mut Session,
    pub(crate) shared: &'c Shared,
    pub(crate) request: Request<'c>,
    pub(crate) reply: &'c mut ReplyWriter<'o>,
}

impl<'c> Call<'c, '_> {
    /// The argument at `index`; the name is at 0. Empty if there are not so many, which the table
    /// rules out for those that its arity demands.
    pub(crate) fn arg(&self, index: usize) -> &'c [u8] {
        self.request.get(index).unwrap_or_default()
    }

    /// The number of arguments with the name.
    pub(crate) fn len(&self) -> usize {
        self.request.len()
    }

    /// The argument at `index` as an integer.
    pub(crate) fn integer(&self, index: usize) -> Result<i64, Failure> {
        parse_integer(self.arg(index)).ok_or(Failure::NotAnInteger)
    }

    /// The selected database.
    pub(crate) fn database(&self) -> DatabaseId {
        self.session.database()
    }

    /// What stands behind the selected database.
    pub(crate) fn engine(&self) -> Engine<'c> {
        match self.database().mount() {
            None => Engine::Transactional,
            Some(_) => self.shared.store().engine(self.database()),
        }
    }

    /// Refuses, in a cache, what only a transaction can do.
    pub(crate) fn needs_transaction(&self, instead: &str) -> Result<(), Failure> {
        match self.engine() {
            Engine::Cache(_) => Err(Failure::other(format!(
                "this database is a cache, which has no transactions; {instead}"
            ))),
            _ => Ok(()),
        }
    }

    /// The database that the argument at `index` names, by a number or, which Redis does not
    /// know, by its name.
    pub(crate) fn database_at(&self, index: usize) -> Result<DatabaseId, Failure> {
        let argument = self.arg(index);
        if let Some(number) = parse_integer(argument) {
            let number = usize::try_from(number).map_err(|_| Failure::DatabaseIndex)?;
            return self.shared.numbered(number)?.ok_or(Failure::DatabaseIndex);
        }
        match std::str::from_utf8(argument) {
            Ok(name) => Ok(self.shared.store().database(name)?),
            Err(_) => Err(Failure::other(format!(
                "no database has that name; use a number below {} or a name",
                self.shared.limits().numbered_databases_max
            ))),
        }
    }

    /// Whether the argument at `index` is `word`, in any case.
    pub(crate) fn is_word(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The error of a command that was given too few or too many arguments, for what the arity in
    /// the table cannot say.
    pub(crate) fn wrong_arity(&self, command: &str) -> Failure {
        Failure::Arity { command: command.to_owned() }
    }
}
