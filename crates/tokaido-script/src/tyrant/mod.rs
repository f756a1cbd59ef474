//! What the Tokyo Tyrant dialect (`lua/tyrant/`) shares between all virtual machines of a server.

mod commons;
mod settings;

pub use commons::TyrantCommons;
pub(crate) use commons::{StashFull, StashPut};
pub use settings::TyrantSettings;
