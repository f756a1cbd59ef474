//! Replaces a file as a whole: a reader finds either the old contents or the new, also after a power
//! failure. Several may replace the same file at the same time; the last one wins.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Maximum number of names that are tried for the new file. Each concurrent writer takes one, and
/// so does each crash during a write.
const NAMES_MAX: usize = 1000;

/// Replaces the file at `path` by one with `contents`. It is on disk on return. Its permissions
/// stay as they were; a new file is accessible to its owner only.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // A symbolic link stays a link: what it points to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (new, file) = create_beside(path)?;
    let written = write_new(file, path, contents).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The error is reported; a leftover file changes nothing about it.
        let _ = fs::remove_file(&new);
    }
    written?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// A file that did not exist, next to the one to be replaced: `NAME.new`, or `NAME.new1` and so on.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0..NAMES_MAX {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        if number > 0 {
            name.push(number.to_string());
        }
        let new = path.with_file_name(name);
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (new, file)),
        }
    }
    let message =
        format!("{NAMES_MAX} files named {}.new… are in the way; remove them", path.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

fn write_new(mut file: File, old: &Path, contents: &[u8]) -> io::Result<()> {
    if let Ok(metadata) = fs::metadata(old) {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(contents)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_replaces_a_file_at_the_same_time_leaves_it_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users.acl");
        // What a crash leaves behind.
        fs::write(directory.path().join("users.acl.new"), "a part").expect("a file");
        let texts = [b'a', b'b', b'c', b'd'].map(|byte| vec![byte; 1 << 20]);
        thread::scope(|scope| {
            for text in &texts {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        replace(path, text).expect("it is replaced");
                        assert!(texts_hold(path), "a part of a text");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 2);
    }

    /// Whether the file consists of one letter, repeated as often as it was written.
    fn texts_hold(path: &Path) -> bool {
        let found = fs::read(path).expect("the file");
        found.len() == 1 << 20 && found.iter().all(|byte| *byte == found[0])
    }
}
