//! What is wrong with a rule of a user, or with a file of users.

use std::{io, path::PathBuf};

/// A rule cannot be applied. The messages are those that Redis has.
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

/// A file of users cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AclFileError {
    /// The system does not give it.
    #[error("cannot read the file of users {} (acl_file): {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Lines are wrong.
    #[error("{}", lines.join(" "))]
    Lines {
        /// What is wrong, with the file's name and the line.
        lines: Vec<String>,
    },
    /// The system does not take it.
    #[error("cannot write the file of users {} (acl_file): {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
