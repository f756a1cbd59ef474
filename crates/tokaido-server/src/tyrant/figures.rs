//! Counts of what clients did, for `stat`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokaido_wire::tyrant::{COMMANDS, Verb};

/// Number of commands, each of which is counted.
const COMMAND_COUNT: usize = Verb::Repl as usize + 1;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Command(Verb),
    /// Records that were not put.
    PutMiss,
    /// Missing records that were to be removed.
    OutMiss,
    /// Missing records that were to be read.
    GetMiss,
}

impl Figure {
    const MISSES: [(Self, &'static str); 3] =
        [(Self::PutMiss, "put_miss"), (Self::OutMiss, "out_miss"), (Self::GetMiss, "get_miss")];

    fn place(self) -> usize {
        match self {
            Self::Command(verb) => verb as usize,
            Self::PutMiss => COMMAND_COUNT,
            Self::OutMiss => COMMAND_COUNT + 1,
            Self::GetMiss => COMMAND_COUNT + 2,
        }
    }

    /// The figure that counts refusals of a command.
    pub(crate) fn miss(verb: Verb) -> Option<Self> {
        Some(match verb {
            Verb::Put | Verb::PutKeep | Verb::PutCat | Verb::PutShl | Verb::PutNr => Self::PutMiss,
            Verb::Out => Self::OutMiss,
            Verb::Get => Self::GetMiss,
            _ => return None,
        })
    }
}

/// Counted once for each request, or for each key of a `get` in the text protocol.
#[derive(Default)]
pub(crate) struct Figures([AtomicU64; COMMAND_COUNT + Figure::MISSES.len()]);

impl Figures {
    pub(crate) fn count(&self, figure: Figure) {
        self.0[figure.place()].fetch_add(1, Relaxed);
    }

    pub(super) fn get(&self, figure: Figure) -> u64 {
        self.0[figure.place()].load(Relaxed)
    }

    /// Each with its name, in the order of Tokyo Tyrant.
    pub(super) fn each(&self) -> impl std::iter::Iterator<Item = (&'static str, u64)> {
        let commands = COMMANDS.iter().map(|c| (c.name, self.get(Figure::Command(c.verb))));
        commands.chain(Figure::MISSES.iter().map(|&(figure, name)| (name, self.get(figure))))
    }
}
