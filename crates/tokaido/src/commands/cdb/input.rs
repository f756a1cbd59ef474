//! The cdb file that a command reads: a named file, or standard input.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tokaido_cdb::{Damaged, FILE_LEN_MAX, OpenError, Reader};

use crate::error::Error;

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// An open file, and its name in messages.
pub(super) struct Input {
    pub(super) reader: Reader,
    name: PathBuf,
}

impl Input {
    /// Opens the file; `-` or a missing name is standard input.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, Error> {
        match file {
            Some(path) if path != Path::new("-") => {
                Ok(Self { reader: Reader::open(path)?, name: path.to_owned() })
            }
            _ => Self::of_standard_input(),
        }
    }

    /// Reading a cdb file needs random access, which a pipe does not have. So all of it is copied
    /// to a temporary file first; the mapping outlives the file.
    fn of_standard_input() -> Result<Self, Error> {
        let name = PathBuf::from(STANDARD_INPUT);
        let spooling = |source| Error::Io { what: "cannot spool standard input", source };
        let mut spool = NamedTempFile::new().map_err(spooling)?;
        // One byte over the maximum is enough to know that it is too long.
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

    /// For `map_err`, when reading the file.
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
