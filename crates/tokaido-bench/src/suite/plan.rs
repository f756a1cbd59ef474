//! How much is measured, and with which peers.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    contest::Rounds,
    dictionary::Dictionary,
    error::SuiteError,
    peer::{PEERS, Peer, Presence},
    run::Problem,
};

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Two minutes on two cores: shows whether everything works, with rough figures.
    Quick,
    /// A quarter of an hour.
    Default,
    /// As long as it needs.
    Long,
}

impl Scale {
    /// Samples of each subject in a load.
    pub(super) fn rounds(self) -> Rounds {
        Rounds::warm(self.pick(2, 4, 15))
    }

    /// How long a sample of a load takes.
    #[must_use]
    pub fn sample(self) -> Duration {
        Duration::from_millis(self.pick(80, 400, 1000))
    }

    /// Picks one of three values.
    pub(super) fn pick<T>(self, quick: T, default: T, long: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Default => default,
            Self::Long => long,
        }
    }
}

/// What a run should do.
pub struct Plan {
    /// How long it may take.
    pub scale: Scale,
    /// The program of Tokaido.
    pub tokaido: PathBuf,
    /// Names of peers to use instead of all that are installed.
    pub only: Option<Vec<String>>,
    /// Tokaido's subjects for the dictionary scenario.
    pub dictionaries: &'static [&'static dyn Dictionary],
    /// A list of companies to use instead of a generated one.
    pub list: Option<PathBuf>,
    /// Host and port of a Kyoto Tycoon that runs [the script](super::kyoto_tycoon_script), and whose records may be removed.
    pub kyoto_tycoon: Option<String>,
}

/// What scenarios need to know while they run.
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    /// The peers that are installed.
    pub(super) present: &'a Present,
    /// Set by whoever wants the run to end.
    pub(super) stop: &'a AtomicBool,
    /// Called with what is measured now.
    pub(super) progress: &'a dyn Fn(&str),
}

/// The kinds of files of a library.
pub(super) type Kinds = Vec<Box<dyn Dictionary>>;

/// Peers by name.
pub(super) type Present = BTreeMap<&'static str, Presence>;

/// Looks which of the peers that are to take part are installed.
pub(super) fn present(plan: &Plan) -> Present {
    let wanted = PEERS.iter().filter(|peer| plan.wants(peer.name));
    wanted.filter_map(|peer| Some((peer.name, peer.find()?))).collect()
}

impl Plan {
    fn wants(&self, peer: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == peer))
    }
}

impl Context<'_> {
    /// A peer, or the problem if it is missing. `None` if it is not to take part, or if it is
    /// missing and no package contains it.
    pub(super) fn find(&self, name: &str) -> Option<Result<&Presence, Problem>> {
        if let Some(presence) = self.present.get(name) {
            return Some(Ok(presence));
        }
        let packages = Peer::named(name).map_or("", |peer| peer.packages);
        let is_told = self.plan.wants(name) && (!packages.is_empty() || self.plan.only.is_some());
        is_told.then(|| {
            let packages = Some(packages).filter(|packages| !packages.is_empty());
            Err(Problem::Missing(packages.map(str::to_owned)))
        })
    }

    /// The kinds of files of a C library; as with [`Self::find`], the problem or `None` if there are none.
    pub(super) fn kinds(&self, library: &Peer) -> Option<Result<Kinds, Problem>> {
        let find = library.finder()?;
        let presence = self.find(library.name)?;
        Some(presence.map(|_| find().map_or_else(Vec::new, |found| found.kinds)))
    }

    pub(super) fn scale(&self) -> Scale {
        self.plan.scale
    }

    pub(super) fn check(&self) -> Result<(), SuiteError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(SuiteError::Stopped),
            false => Ok(()),
        }
    }
}
