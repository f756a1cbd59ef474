//! Errors in a rule of a user, or in an ACL file.

use std::{io, path::PathBuf};

/// A rule cannot be applied. The messages are those of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error("Syntax error")]
    Syntax,
    #[error("Unknown command or category name in ACL")]
    Unknown,
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
         have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    AllKeys,
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
         not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    AllChannels,
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    Hash,
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgument,
    #[error("a user has at most {0} rules of a kind")]
    TooMany(usize),
}

/// An ACL file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AclFileError {
    /// The file cannot be read.
    #[error("cannot read the file of users {} (acl_file): {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Some lines are invalid.
    #[error("{}", lines.join(" "))]
    Lines {
        /// What is wrong, with the file's name and the line number.
        lines: Vec<String>,
    },
    /// The file cannot be written.
    #[error("cannot write the file of users {} (acl_file): {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
