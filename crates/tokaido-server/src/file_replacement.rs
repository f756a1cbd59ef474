//! Replacing a file as a whole: whoever reads it finds what was there or what is there now, and a power
//! failure leaves one of them.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Puts a file with `contents` in the place of `path`. It is on disk then. Who may read it stays as it
/// was; of a new file that is its owner alone.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // A link stays one: what it points to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = write_new(&new, path, contents).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What went wrong is told; a rest of the file changes nothing about it.
        let _ = fs::remove_file(&new);
    }
    written?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn write_new(new: &Path, old: &Path, contents: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(new)?;
    if let Ok(metadata) = fs::metadata(old) {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(contents)?;
    file.sync_all()
}
