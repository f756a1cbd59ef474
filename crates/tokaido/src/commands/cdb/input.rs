//! The cdb file that a command reads: one by its name, or what comes on standard input.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tokaido_cdb::{Damaged, FILE_LEN_MAX, OpenError, Reader};

use crate::error::Error;

/// What messages call standard input.
const STANDARD_INPUT: &str = "standard input";

/// A file that is open, and what messages call it.
pub(super) struct Input {
    pub(super) reader: Reader,
    name: PathBuf,
}

impl Input {
    /// Opens the file; `-`, or none, is standard input.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, Error> {
        match file {
            Some(path) if path != Path::new("-") => {
                Ok(Self { reader: Reader::open(path)?, name: path.to_owned() })
            }
            _ => Self::of_standard_input(),
        }
    }

    /// Reading a cdb file goes to and fro in it, which a pipe does not let one do. So all of it goes
    /// to a temporary file first, which the mapping outlives.
    fn of_standard_input() -> Result<Self, Error> {
        let name = PathBuf::from(STANDARD_INPUT);
        let spooling = |source| Error::Io { what: "cannot spool standard input", source };
        let mut spool = NamedTempFile::new().map_err(spooling)?;
        // One byte more than may be is enough to know that it is too long.
        let mut input = io::stdin().lock().take(FILE_LEN_MAX + 1);
        if io::copy(&mut input, &mut spool).map_err(spooling)? > FILE_LEN_MAX {
            let what = "it is longer than the format allows";
            return Err(damaged(name, Damaged { what, position: FILE_LEN_MAX }));
        }
        match Reader::open(spool.path()) {
            Ok(reader) => Ok(Self { reader, name }),
            Err(OpenError::Damaged { source, .. }) => Err(damaged(name, source)),
            Err(error) => Err(error.into()),
        }
    }

    /// For `map_err` on what is read of the file.
    pub(super) fn damaged(&self) -> impl Fn(Damaged) -> Error {
        |source| damaged(self.name.clone(), source)
    }

    pub(super) fn name(&self) -> String {
        self.name.display().to_string()
    }
}

fn damaged(path: PathBuf, source: Damaged) -> Error {
    Error::CdbDamaged { path, source }
}
