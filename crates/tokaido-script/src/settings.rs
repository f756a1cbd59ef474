//! What an operator may set for dialects, and what the virtual machines of a server share.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use mlua::Function;

use crate::{
    RuntimeError, SharedValues, TyrantSettings,
    bridge::{context::StoreOrReason, engine_of},
    state::LuaState,
    vm::cannot_start,
};

/// What an operator may set for dialects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The databases of Kyoto Tycoon's scripts, the first of which is `__kyototycoon__.db`.
    pub kyoto_databases: Vec<String>,
    /// The settings for Tokyo Tyrant's scripts.
    pub tyrant: TyrantSettings,
    /// The directory below which mod_lua scripts may read files; `None`: nowhere.
    pub document_root: Option<PathBuf>,
    /// Length of a request's body, in bytes, as mod_lua scripts are told.
    pub body_bytes_max: usize,
    /// The values that mod_lua requests leave for each other.
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

impl Settings {
    /// Passes the operator's settings to a dialect that takes them.
    pub(crate) fn tell(
        self: &Arc<Self>,
        state: &mut LuaState,
        store: &StoreOrReason,
    ) -> Result<(), RuntimeError> {
        let dialect = state.dialect();
        state.context().how_to_write = dialect.how_to_write();
        state.context().apache.configure(self);
        state.context().tyrant = Arc::clone(&self.tyrant.commons);
        let configure = || {
            let Some(configure) = state.core().get::<Option<Function>>("configure")? else {
                return Ok(());
            };
            let told = state.lua().create_table()?;
            told.set("kyoto_databases", self.kyoto_databases.clone())?;
            told.set("tyrant_database", self.tyrant.database.as_str())?;
            told.set("tyrant_engine", engine_of(store, &self.tyrant.database))?;
            told.set("process", std::process::id())?;
            configure.call::<()>(told)
        };
        configure().map_err(|error| cannot_start(&error))
    }
}
