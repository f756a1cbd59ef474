//! The check from end to end.

use std::{fs::File, io, path::Path};

use crate::{
    OpenError,
    tree::{
        base::{
            FORMAT_VERSION, PageDirectory,
            pages::{PageFile, PageFileError, PageSet},
        },
        lock::{self, LockError},
    },
};

use super::{
    base::{self, UnknownVersion},
    examination::{Examination, Parts, Visitor},
    overlay,
    report::{CheckError, CheckReport, Finding},
    seal,
};

/// Looks at everything in the store of `directory`, and changes nothing. It reads all of the base,
/// and takes about as much memory as the log is long.
///
/// # Errors
/// Only if the store cannot be looked at; what is wrong with it is in the report.
pub fn check(directory: &Path) -> Result<CheckReport, CheckError> {
    examine(directory, &mut |_, _, _| {})
}

/// As [`check`], and gives every record that can be read to `visitor`.
pub(in crate::tree) fn examine(
    directory: &Path,
    visitor: &mut Visitor<'_>,
) -> Result<CheckReport, CheckError> {
    let still = keep_still(directory)?;
    look(directory, still.as_ref(), visitor)
}

/// As [`check`]; the store stands still as long as the lock that is given is kept.
pub(in crate::tree) fn check_held(
    directory: &Path,
) -> Result<(CheckReport, Option<File>), CheckError> {
    let still = keep_still(directory)?;
    Ok((look(directory, still.as_ref(), &mut |_, _, _| {})?, still))
}

/// A base of which a survey tells nothing.
pub(in crate::tree) enum SurveyError {
    /// It cannot be read.
    Io(io::Error),
    /// It is damaged, or of another version.
    Damaged(String),
}

impl From<SurveyError> for io::Error {
    fn from(error: SurveyError) -> Self {
        match error {
            SurveyError::Io(error) => error,
            SurveyError::Damaged(what) => Self::other(what),
        }
    }
}

/// What the directory of the base in a file says, if it is sound.
pub(in crate::tree) fn survey_base(data_file: &Path) -> Result<PageDirectory, SurveyError> {
    let damaged = |what: &dyn ToString| SurveyError::Damaged(what.to_string());
    let file = PageFile::open(data_file).map_err(|error| match error {
        PageFileError::Damaged(what) => damaged(&what),
        PageFileError::Io(error) => SurveyError::Io(error),
    })?;
    let mut report = CheckReport::default();
    let survey = base::survey(&file, &mut PageSet::of(&file), &mut report).map_err(
        |UnknownVersion(version)| damaged(&format!("it has the unknown version {version}")),
    )?;
    if let Some(error) = report.unread() {
        return Err(SurveyError::Io(error));
    }
    match (report.findings.first(), survey.directory(&file)) {
        (None, Some(directory)) => Ok(directory),
        (Some(finding), _) => Err(damaged(finding)),
        (None, None) => Err(damaged(&"it does not say which store it belongs to")),
    }
}

fn look(
    directory: &Path,
    lock: Option<&File>,
    visitor: &mut Visitor<'_>,
) -> Result<CheckReport, CheckError> {
    let io_error = |source| OpenError::Io { directory: directory.to_owned(), source };
    let mut report = CheckReport::default();
    let file = match PageFile::open(&base::data_file(directory)) {
        Ok(file) => file,
        Err(PageFileError::Damaged(what)) => {
            report.add(Finding::Directory { what: what.to_owned() });
            return Ok(report);
        }
        Err(PageFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            report.add(Finding::Directory { what: "the file is not there".to_owned() });
            return Ok(report);
        }
        Err(PageFileError::Io(source)) => return Err(io_error(source).into()),
    };
    let mut pages = PageSet::of(&file);
    let survey =
        base::survey(&file, &mut pages, &mut report).map_err(|UnknownVersion(found)| {
            OpenError::Version { directory: directory.to_owned(), found, known: FORMAT_VERSION }
        })?;
    report.base.sequence = survey.sequence;
    let overlay = overlay::read(directory, survey.store, survey.sequence, &mut report)?;
    let seal = seal::read(directory, lock, &file).map_err(io_error)?;
    let parts = Parts { file, survey, overlay, seal };
    let mut examination = Examination { parts: &parts, pages, report };
    examination.run(visitor);
    Ok(examination.report)
}

fn keep_still(directory: &Path) -> Result<Option<File>, CheckError> {
    match lock::keep_still(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held) => Err(CheckError::Held { directory: directory.to_owned() }),
        // Whoever opens a store makes the file of its lock; so nobody has this one.
        Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            match base::data_file(directory).is_file() {
                true => Ok(None),
                false => Err(CheckError::NoStore { directory: directory.to_owned() }),
            }
        }
        Err(LockError::Io(source)) => {
            Err(OpenError::Io { directory: directory.to_owned(), source }.into())
        }
    }
}
