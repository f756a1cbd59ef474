//! Replaces `ruby.rs` in a program that is built without Ruby.

use std::{path::Path, sync::Arc};

use tokaido_script::{HostFunction, Interrupt};
use tokaido_store::{Store, Writer};

use super::language::Outcome;
use crate::error::{Error, without_ruby};

/// It does not exist.
pub(super) enum Ruby {}

impl Ruby {
    pub(super) fn of_store(
        _store: &Arc<dyn Store>,
        _directory: Option<&Path>,
        _interrupt: Interrupt,
    ) -> Result<Self, Error> {
        Err(without_ruby())
    }

    pub(super) fn of_server(_command: HostFunction, _interrupt: Interrupt) -> Result<Self, Error> {
        Err(without_ruby())
    }

    pub(super) fn run(&mut self, _writer: Option<&mut dyn Writer>, _text: &str) -> Outcome {
        match *self {}
    }

    pub(super) fn has_name(&self, _name: &str) -> bool {
        match *self {}
    }
}
