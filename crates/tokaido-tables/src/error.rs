//! Errors in requests to tables, and in running them.

use tokaido_store::{ReadError, WriteError};

use crate::limits;

/// A query is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No operator has that name.
    #[error("no operator of a condition is called {name:?}; docs/tables.md has all of them")]
    Operator {
        /// The name as it was given.
        name: String,
    },
    /// No order has that name.
    #[error("no order is called {name:?}: use STRASC, STRDESC, NUMASC or NUMDESC")]
    Order {
        /// The name as it was given.
        name: String,
    },
    /// No operation on sets has that name.
    #[error("no operation on sets is called {name:?}: use UNION, ISECT or DIFF")]
    SetOperation {
        /// The name as it was given.
        name: String,
    },
    /// The regular expression is invalid, or too large.
    #[error("the regular expression {pattern:?} cannot be used: {why}")]
    Regex {
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// No kind of index has that name.
    #[error(
        "no kind of index is called {name:?}: use LEXICAL, DECIMAL, TOKEN, QGRAM, OPTIMIZE or VOID"
    )]
    IndexKind {
        /// The name as it was given.
        name: String,
    },
    /// An argument lacks a part.
    #[error("{argument:?} needs more parts, separated by NUL: {form}")]
    Parts {
        /// The first part of the argument.
        argument: String,
        /// The expected form.
        form: &'static str,
    },
    /// The command needs an argument.
    #[error("{command} needs {what}")]
    Missing {
        /// The command.
        command: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// There are more conditions than a query may have.
    #[error("a query has at most {} conditions", limits::CONDITIONS_MAX)]
    TooManyConditions,
    /// There are more queries than one search may combine.
    #[error("one search combines at most {} queries", limits::QUERIES_MAX)]
    TooManyQueries,
}

/// A command on a table failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The query is malformed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A column would contain a NUL.
    #[error("names and values of columns have no NUL, which separates them; encode what has one")]
    Nul,
    /// There are more indexes than a table may have.
    #[error("a table has at most {} indexes; remove one with setindex VOID", limits::INDEXES_MAX)]
    TooManyIndexes,
    /// The name of a column is too long for an index.
    #[error("the name of a column with an index has at most {} bytes", limits::INDEX_NAME_LEN_MAX)]
    IndexName,
    /// What was found is larger than a reply may be.
    #[error("what was found has more than {max} bytes; set a limit, or narrow the conditions")]
    TooLarge {
        /// The maximum number of bytes.
        max: usize,
    },
    /// The result is no longer wanted.
    #[error("the search was stopped")]
    Stopped,
    /// All numbers of the sequence have been used.
    #[error("the numbers of this table's sequence are used up")]
    NoMoreIds,
    /// The database failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<ReadError> for TableError {
    fn from(error: ReadError) -> Self {
        Self::Write(error.into())
    }
}
