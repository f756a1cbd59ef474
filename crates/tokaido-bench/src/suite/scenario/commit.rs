//! Commits in process that are on disk before they return.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::super::{
    contest::{Entrant, Name, Sample, Take, Title, contest},
    dictionary::{Dictionary, OpenDictionary},
    error::SuiteError,
    peer::Peer,
    plan::Context,
    run::{Item, Problem, Unit},
    worker::{VALUE, key},
};

const NAME: &str = "commit";

const NOTE: &str = "One thread puts a record of 16 and 64 bytes, and commits; when that has returned, it is on the disk. LMDB has a writable map, \
                    and is synced behind each commit.";

/// The library whose files are compared with our store.
const LIBRARY: &str = "lmdb";

/// The number of records that the stores are tuned to.
const RECORDS: u64 = 1_000_000;

/// Each commit is synced.
const SYNC: Option<Duration> = Some(Duration::ZERO);

pub(super) fn measure(context: &Context<'_>, items: &mut Vec<Item>) -> Result<(), SuiteError> {
    let directory = TempDir::new().map_err(SuiteError::system("cannot make a directory"))?;
    let library = Peer::named(LIBRARY).and_then(|library| context.kinds(library));
    let mut kinds: Vec<(Name, Result<&dyn Dictionary, Problem>)> = Vec::new();
    for kind in context.plan.dictionaries.iter().filter(|kind| !kind.is_constant()) {
        kinds.push((Name::ours("a store"), Ok(*kind)));
    }
    let name = Name::peer(LIBRARY, "in process, WRITEMAP");
    match &library {
        None => {}
        Some(Err(problem)) => kinds.push((name, Err(problem.clone()))),
        Some(Ok(found)) => kinds.extend(found.iter().map(|kind| (name.clone(), Ok(&**kind)))),
    }
    let entrants = kinds.iter().enumerate().map(|(index, (name, kind))| {
        let path = directory.path().join(index.to_string());
        let take = kind.as_ref().map_err(Clone::clone);
        Entrant { name: name.clone(), take: take.map(|kind| take_of(context, *kind, path)) }
    });
    let what = "a commit of one record";
    let title = Title { scenario: NAME, name: what, unit: Unit::Seconds, note: NOTE };
    contest(context, &title, context.scale().rounds(), entrants.collect(), items)
}

/// Commits for the duration of a sample; the first sample opens the file.
fn take_of<'a>(context: &'a Context<'_>, kind: &'a dyn Dictionary, path: PathBuf) -> Take<'a> {
    let mut open: Option<Box<dyn OpenDictionary>> = None;
    let mut number = 0;
    let mut turn = move || {
        let file = match &mut open {
            Some(file) => file,
            None => {
                let opened = kind.keep_open(&path, RECORDS, SYNC);
                open.insert(opened.ok_or("it cannot be kept open")??)
            }
        };
        let (mut count, began) = (0, Instant::now());
        while began.elapsed() < context.scale().sample() {
            file.put(&[(&key(number), VALUE)])?;
            number += 1;
            count += 1;
        }
        Ok::<_, String>(began.elapsed().as_secs_f64() / f64::from(count))
    };
    Box::new(move || turn().map(Sample::of).map_err(SuiteError::Library))
}
