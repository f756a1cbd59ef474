//! The files of the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Failure, Outcome},
    process::Command,
};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Every file that git tracks, or would track once added, whose name ends in one of `endings`;
/// relative to the root, sorted.
pub(crate) fn tracked(endings: &[&str]) -> Outcome<Vec<PathBuf>> {
    let listing = Command::new(
        "git",
        ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
    )
    .output()?;
    let mut files: Vec<PathBuf> = listing
        .split('\0')
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .map(PathBuf::from)
        .filter(|path| root().join(path).exists())
        .collect();
    files.sort();
    Ok(files)
}

/// The text of a file, by its path from the root.
pub(crate) fn read(path: impl AsRef<Path>) -> Outcome<String> {
    let path = root().join(path);
    fs::read_to_string(&path).map_err(Failure::of(format!("cannot read {}", path.display())))
}

/// Writes a file, by its path from the root.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> Outcome {
    let path = root().join(path);
    fs::write(&path, text).map_err(Failure::of(format!("cannot write {}", path.display())))
}
