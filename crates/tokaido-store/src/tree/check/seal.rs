//! What the seal says, beside what is there.

use std::{fs::File, io};

use crate::tree::{
    base::{PageDirectory, PageTree, pages::Root},
    catalog::CatalogEntry,
    seal::Seal,
};

use super::{
    base::BaseSurvey,
    examination::Parts,
    report::{CheckReport, Finding},
};

/// The seal in the file of the lock, if an opening would believe it.
pub(super) fn read(lock: Option<&File>, commit: u64) -> io::Result<Option<Seal>> {
    let seal = lock.map(Seal::read).transpose()?.flatten();
    Ok(seal.filter(|seal| seal.base.commit == commit))
}

/// Compares a seal with the rest. `databases` is the catalog, if all of it could be read.
pub(super) fn check(parts: &Parts, databases: Option<&[CatalogEntry]>, report: &mut CheckReport) {
    let Some(seal) = &parts.seal else { return };
    let mut add = |what: &str| report.add(Finding::Seal { what: what.to_owned() });
    if parts.overlay.transactions > 0 {
        add("there are transactions in the log, of which the seal knows nothing");
    }
    if directory(&parts.survey, parts.file.commit()).as_ref() != Some(&seal.base) {
        add("the seal says something else than the directory of the base");
    }
    if databases.is_some_and(|databases| databases != seal.databases) {
        add("the seal names other databases than the catalog");
    }
}

/// What a seal of that base would say.
fn directory(survey: &BaseSurvey, commit: u64) -> Option<PageDirectory> {
    let trees = survey.trees.iter().map(|(tree, found)| {
        let root = Root::of(found.root.depth, found.root.page.unwrap_or(0))?;
        Some(PageTree { tree: *tree, root, statistics: found.recorded })
    });
    let trees = trees.collect::<Option<_>>()?;
    Some(PageDirectory { store: survey.store?, sequence: survey.sequence, commit, trees })
}
