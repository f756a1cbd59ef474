//! Operations on a store as a whole: checking, backing up, compacting and salvaging it.

mod backup;
mod check;
mod compact;
mod error;
mod paced;
mod salvage;

pub use backup::{BackupReport, Copier, backup, restore};
pub use check::{
    BaseReport, CheckError, CheckReport, DatabaseReport, FINDINGS_MAX, Finding, LogReport,
    RunsReport, check,
};
pub use compact::{CompactReport, compact};
pub use error::UpkeepError;
pub use salvage::{SalvageReport, salvage};
