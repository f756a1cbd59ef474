//! Replacing a file as a whole: whoever reads it finds what was there or what is there now, and a power
//! failure leaves one of them. Several may replace the same file at a time; the last one stays.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Maximum number of names that are tried for the new file. Those who write at the same moment have one each,
/// and so has each crash while one was written.
const NAMES_MAX: usize = 1000;

/// Puts a file with `contents` in the place of `path`. It is on disk then. Who may read it stays as it
/// was; of a new file that is its owner alone.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // A link stays one: what it points to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (new, file) = create_beside(path)?;
    let written = write_new(file, path, contents).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What went wrong is told; a rest of the file changes nothing about it.
        let _ = fs::remove_file(&new);
    }
    written?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// A file that was not there, beside the one that it is to replace: `NAME.new`, or `NAME.new1` and so on.
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
        // As a crash leaves it.
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

    /// Whether the file is one letter, as often as it was written.
    fn texts_hold(path: &Path) -> bool {
        let found = fs::read(path).expect("the file");
        found.len() == 1 << 20 && found.iter().all(|byte| *byte == found[0])
    }
}
