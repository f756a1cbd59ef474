//! What an operator may set for dialects, and what the virtual machines of a server have in common.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use crate::{SharedValues, TyrantSettings};

/// What an operator may set for dialects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The databases that scripts of Kyoto Tycoon's have, the first of which is `__kyototycoon__.db`.
    pub kyoto_databases: Vec<String>,
    /// What is set for scripts of Tokyo Tyrant's.
    pub tyrant: TyrantSettings,
    /// Below which scripts of mod_lua's may read files; `None`: nowhere.
    pub document_root: Option<PathBuf>,
    /// Length of a request's body, in bytes, as those are told.
    pub body_bytes_max: usize,
    /// What their requests leave for each other.
    pub shared_values: Arc<SharedValues>,
    /// When the server was started.
    pub started: SystemTime,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kyoto_databases: vec!["main".to_owned()],
            tyrant: TyrantSettings::default(),
            document_root: None,
            body_bytes_max: 64 << 20,
            shared_values: Arc::default(),
            started: SystemTime::now(),
        }
    }
}
