//! Verifying a store without changing a byte of it.
//!
//! The store must stand still meanwhile: it is locked against being opened, and LMDB, which would
//! write its reader into `lock.mdb`, is not asked at all. A store that is in use is checked by
//! checking a backup of it, which has every page that is in use and every frame of the log.
//!
//! What cannot be noticed: a changed byte within a value of the base, or within a key as long as
//! the order of keys holds. LMDB's pages carry no checksums; the log's frames do.

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
