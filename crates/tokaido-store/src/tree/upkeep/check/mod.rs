//! Verifying a store without changing a byte of it.
//!
//! The store must not change meanwhile: it is locked against being opened, and LMDB, which would
//! write its reader into `lock.mdb`, is not used at all. To check a store that is in use, check a
//! backup of it, which has every page that is in use and every frame of the log.
//!
//! What cannot be detected: a changed byte within a value of the base, or within a key if the
//! order of keys still holds. LMDB's pages carry no checksums; the log's frames do.

mod base;
mod examination;
mod overlay;
mod records;
mod report;
mod run;
#[cfg(test)]
mod tests;

pub use report::{
    BaseReport, CheckError, CheckReport, DatabaseReport, FINDINGS_MAX, Finding, LogReport,
    RunsReport,
};
pub use run::check;
pub(super) use run::{BaseIdentity, examine, keep_still, survey_base};
