//! Runs lines of Ruby that were typed into the shell.

use std::{path::Path, sync::Arc};

use tokaido_ruby::{LineOutcome, RubyVm};
use tokaido_script::{HostFunction, Interrupt};
use tokaido_store::{Store, Writer};

use super::language::{Outcome, Shown};
use crate::{error::Error, procedures};

/// The shell's Ruby.
pub(super) struct Ruby(RubyVm);

impl Ruby {
    /// Creates one with transactions on a store, which may require the files of a directory.
    pub(super) fn of_store(
        store: &Arc<dyn Store>,
        directory: Option<&Path>,
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        Ok(Self(procedures::start_ruby_of_lines(store, directory, interrupt)?))
    }

    /// Creates one whose `command` sends commands to a server.
    pub(super) fn of_server(command: HostFunction, interrupt: Interrupt) -> Result<Self, Error> {
        let mut vm = RubyVm::without_store(interrupt);
        vm.set_command(command);
        Ok(Self(vm))
    }

    pub(super) fn run(&mut self, writer: Option<&mut dyn Writer>, text: &str) -> Outcome {
        match self.0.run_line(text, writer) {
            Ok(LineOutcome::Value(value)) => {
                Outcome::Shown(vec![Shown { notation: value.inspected, plain: value.plain }])
            }
            Ok(LineOutcome::Unfinished) => Outcome::Unfinished,
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Whether a name is a constant or a local variable of Ruby.
    pub(super) fn has_name(&self, name: &str) -> bool {
        name.starts_with(|first: char| first.is_ascii_uppercase()) || self.0.has_local(name)
    }
}
