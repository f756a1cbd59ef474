//! What a virtual machine is created with, at first and whenever it is replaced.

use std::{path::PathBuf, sync::Arc};

use tokaido_script::{Dialect, Interrupt, Limits, Source, Sources};
use tokaido_store::Store;

use crate::load::EXTENSION;

/// What a virtual machine is created with.
pub(crate) struct Setup {
    /// `None`: only the lines of a shell run in it, and none of them has a transaction.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) sources: Sources,
    pub(crate) limits: Limits,
    pub(crate) interrupt: Interrupt,
    /// The dialect of its files: the native one or mod_mruby.
    pub(crate) dialect: &'static Dialect,
    /// The directory below which it may access files.
    pub(crate) document_root: Option<PathBuf>,
}

impl Setup {
    /// How many databases have been dropped so far.
    pub(crate) fn databases_dropped(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.databases_dropped())
    }

    /// Whether it is for mod_mruby scripts.
    pub(crate) fn is_mod_mruby(&self) -> bool {
        self.dialect.name == Dialect::MOD_MRUBY.name
    }

    /// The files that it loads. Those in no dialect of Ruby go to the native one, which refuses them.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Source> {
        self.sources.of(EXTENSION).filter(|source| {
            let is_script = source.dialect_name() == Dialect::MOD_MRUBY.name;
            is_script == self.is_mod_mruby()
        })
    }
}
