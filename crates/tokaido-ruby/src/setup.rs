//! What a virtual machine is made with, at first and whenever it is replaced.

use std::{path::PathBuf, sync::Arc};

use tokaido_script::{Dialect, Interrupt, Limits, Source, Sources};
use tokaido_store::Store;

use crate::load::EXTENSION;

/// What a virtual machine is made with.
pub(crate) struct Setup {
    /// `None`: lines of a shell alone run in it, and none of them has a transaction.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) sources: Sources,
    pub(crate) limits: Limits,
    pub(crate) interrupt: Interrupt,
    /// What its files are written in: the native dialect, or that of mod_mruby.
    pub(crate) dialect: &'static Dialect,
    /// Below which it may look at files.
    pub(crate) document_root: Option<PathBuf>,
}

impl Setup {
    /// How many databases have been dropped so far.
    pub(crate) fn databases_dropped(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.databases_dropped())
    }

    /// Whether it is for scripts of mod_mruby's.
    pub(crate) fn is_mod_mruby(&self) -> bool {
        self.dialect.name == Dialect::MOD_MRUBY.name
    }

    /// The files that it loads. What is written in no dialect of Ruby's goes to the native one, to be refused.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Source> {
        self.sources.of(EXTENSION).filter(|source| {
            let is_script = source.dialect_name() == Dialect::MOD_MRUBY.name;
            is_script == self.is_mod_mruby()
        })
    }
}
