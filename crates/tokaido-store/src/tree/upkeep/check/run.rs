//! The check from start to end.

use std::{fs::File, io, path::Path, sync::Arc};

use crate::{
    OpenError,
    tree::{
        base::{
            DATA_FILE, LMDB_LOCK_FILE, format,
            pages::{PageFile, PageFileError, PageSet},
        },
        lock::{self, LockError},
        log::LOG_DIRECTORY,
        runs::{Run, RunDirectory, RunError, RunList, Runs},
    },
};

use super::{
    base::{self, BaseSurvey},
    examination::{Examination, Visitor},
    overlay,
    records::Parts,
    report::{CheckError, CheckReport, Finding},
};

/// Checks everything in the store in `directory`, and changes nothing. It reads all of the base,
/// and needs about as much memory as the log is long.
///
/// # Errors
/// Only if the store cannot be examined; damage is listed in the report.
pub fn check(directory: &Path) -> Result<CheckReport, CheckError> {
    let _still = keep_still(directory)?;
    examine(directory, &mut |_, _, _, _| {})
}

/// Which store a base belongs to, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tree) struct BaseIdentity {
    pub store: u64,
    /// The last transaction that base and runs hold.
    pub sequence: u64,
    pub runs: RunList,
}

/// What the directory of the base in a file records, if it is sound.
pub(in crate::tree) fn survey_base(data_file: &Path) -> Result<BaseIdentity, PageFileError> {
    let file = PageFile::open(data_file)?;
    let mut report = CheckReport::default();
    let survey = base::survey(&file, &mut PageSet::of(&file), &mut report);
    if let Some(error) = report.unread() {
        return Err(error.into());
    }
    let what = match (survey.version, survey.store, report.findings.first()) {
        (Some(version), ..) if !format::is_known(version) => {
            format!("it has the unknown version {version}")
        }
        (_, Some(store), None) => {
            let (sequence, runs) = (survey.sequence, survey.runs);
            return Ok(BaseIdentity { store, sequence, runs });
        }
        (_, _, Some(finding)) => finding.to_string(),
        (_, None, None) => "it does not say which store it belongs to".to_owned(),
    };
    Err(PageFileError::Damaged(what))
}

/// Like [`check`], for a store that is [kept still](keep_still), and passes every readable record
/// to `visitor`.
pub(in crate::tree) fn examine(
    directory: &Path,
    visitor: &mut Visitor<'_>,
) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    let file = match PageFile::open(&directory.join(DATA_FILE)) {
        Ok(file) => file,
        Err(PageFileError::Io(source)) if source.kind() != io::ErrorKind::NotFound => {
            return Err(OpenError::io(directory)(source).into());
        }
        Err(PageFileError::Io(_)) if is_unfinished(directory) => {
            report.is_unfinished = true;
            return Ok(report);
        }
        Err(error) => {
            report.add_directory(match error {
                PageFileError::Damaged(what) => what,
                PageFileError::Io(_) => "the file is not there".to_owned(),
            });
            return Ok(report);
        }
    };
    let mut pages = PageSet::of(&file);
    let survey = base::survey(&file, &mut pages, &mut report);
    if let Some(found) = survey.version.filter(|version| !format::is_known(*version)) {
        return Err(OpenError::version(directory, found).into());
    }
    report.base.sequence = survey.sequence;
    let overlay = overlay::read(directory, survey.store, survey.sequence, &mut report)?;
    let runs = open_runs(directory, &survey, &mut report)?;
    let parts = Parts { file, survey, runs, overlay };
    Ok(Examination { parts: &parts, pages, report }.run(visitor))
}

/// Opens the runs and verifies each.
fn open_runs(
    directory: &Path,
    survey: &BaseSurvey,
    report: &mut CheckReport,
) -> Result<Runs, OpenError> {
    let RunList { next, entries } = &survey.runs;
    let files = RunDirectory::new(directory, *next);
    let mut runs = Vec::new();
    for entry in entries {
        report.runs.runs += 1;
        report.runs.bytes += entry.bytes;
        report.runs.entries += entry.entries;
        match Run::open(&files.path(entry.number), survey.store.unwrap_or_default(), *entry) {
            Err(RunError::Io { source, .. }) => return Err(OpenError::io(directory)(source)),
            Err(error) => report.add(Finding::Run { what: error.to_string() }),
            Ok(run) => {
                if let Err(error) = run.verify() {
                    report.add(Finding::Run { what: error.to_string() });
                }
                runs.push(Arc::new(run));
            }
        }
    }
    Ok(Runs::new(runs))
}

/// Whether creating the store was interrupted before it had a base. Nobody could have written to it
/// yet: the log is created after the base, and so is LMDB's own lock file.
fn is_unfinished(directory: &Path) -> bool {
    [DATA_FILE, LMDB_LOCK_FILE, LOG_DIRECTORY].iter().all(|name| !directory.join(name).exists())
}

/// Keeps everybody from writing to the store as long as the result is kept.
pub(in crate::tree) fn keep_still(directory: &Path) -> Result<Option<File>, CheckError> {
    let owned = || directory.to_owned();
    match lock::keep_still(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held) => Err(CheckError::Held { directory: owned() }),
        // Opening a store creates its lock file; so nobody has this one open.
        Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            match directory.join(DATA_FILE).is_file() {
                true => Ok(None),
                false => Err(CheckError::NoStore { directory: owned() }),
            }
        }
        Err(LockError::Io(source)) => Err(OpenError::io(directory)(source).into()),
    }
}
