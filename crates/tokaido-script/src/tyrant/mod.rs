//! What the dialect of Tokyo Tyrant (`lua/tyrant/`) has in common between all virtual machines of a server.

mod commons;
mod settings;

pub use commons::TyrantCommons;
pub(crate) use commons::{StashFull, StashPut};
pub use settings::TyrantSettings;
