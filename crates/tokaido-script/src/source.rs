//! Procedure files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One file of Lua source.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name that `require` knows it by, and the first part of its procedures' names:
    /// `shop/cart.lua` is `shop.cart`.
    pub module: String,
    /// Where it was read from; errors name it.
    pub path: PathBuf,
    /// The text.
    pub text: Arc<[u8]>,
}

/// All files that a VM loads, sorted by module.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Reads every `*.lua` below `directory`.
    ///
    /// # Errors
    /// If the directory or one of its files cannot be read.
    pub fn read(_directory: &Path) -> io::Result<Self> {
        unimplemented!()
    }

    /// Adds one file, in place of another of the same module.
    pub fn add(&mut self, _source: Source) {
        unimplemented!()
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[Source] {
        &self.files
    }
}

/// Why a file is not in service. The others are.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{}: {message}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// The line, where Lua names one.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}
