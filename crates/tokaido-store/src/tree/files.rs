//! Making directories and files that are there as a whole or not at all.

use std::{
    ffi::CString,
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

/// Bytes that a user may still write to the file system of `path`.
pub(super) fn room(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statvfs` is plain data, for which all zeros is a value.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string and `room` a place for the answer.
    match unsafe { libc::statvfs(path.as_ptr(), &raw mut room) } {
        0 => Ok(room.f_bavail * room.f_frsize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a write failed for want of room.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// What a file of a store may be used for by whom: as LMDB makes its own, it is nobody else's.
pub(super) const FILE_MODE: u32 = 0o640;

/// Makes a file that is not there yet.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Makes creations, renamings and removals in a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes the name of a directory durable, in the one above it.
pub(super) fn sync_name(directory: &Path) -> io::Result<()> {
    let directory = fs::canonicalize(directory)?;
    let Some(above) = directory.parent() else { return Ok(()) };
    // The name of a mount belongs to another file system, and was there before.
    if fs::metadata(above)?.dev() != fs::metadata(&directory)?.dev() {
        return Ok(());
    }
    match sync_directory(above) {
        // Nobody but whoever may list a directory can sync it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Makes a directory, and those above it that are not there. When one is made, the name of the one
/// that it is in is durable; its own is not yet.
pub(super) fn create_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path);
    create_directories(above)?;
    sync_name(above)?;
    match fs::create_dir(path) {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// The directory in which `path` is.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A directory under a temporary name beside the one that it is to become. Dropped before that, it
/// is removed with all that is in it.
pub(super) struct DirectoryInMaking {
    path: PathBuf,
    is_done: bool,
}

impl DirectoryInMaking {
    /// Makes `TARGET.PID.making`, so that a user who finds one, after a kill, knows whose it is; with
    /// a number behind PID if an earlier process of the same one has left that.
    pub(super) fn beside(target: &Path) -> io::Result<Self> {
        const NAMES_MAX: u32 = 1000;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let process = std::process::id();
        for nth in 0..NAMES_MAX {
            let mut name = name.to_owned();
            match nth {
                0 => name.push(format!(".{process}.making")),
                nth => name.push(format!(".{process}-{nth}.making")),
            }
            let path = target.with_file_name(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, is_done: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, durably. `target` is absent, or an empty directory. What is in it must
    /// have been synced.
    ///
    /// If the name cannot be made durable, it is taken back: whoever is told of a failure, and tries
    /// again, shall not find the name taken. What is in the directory goes only after its name is
    /// surely gone, so that a power failure leaves nothing under it that is not whole.
    pub(super) fn become_target(mut self, target: &Path) -> io::Result<()> {
        let above = parent(target);
        sync_directory(&self.path)?;
        fs::rename(&self.path, target)?;
        self.is_done = true;
        sync_directory(above).inspect_err(|_| {
            let taken_back = fs::rename(target, &self.path).and_then(|()| sync_directory(above));
            self.is_done = taken_back.is_err();
        })
    }
}

impl Drop for DirectoryInMaking {
    fn drop(&mut self) {
        if !self.is_done
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "an unfinished copy remains");
        }
    }
}

/// Whether nothing stands in the way of a new directory: there is none, or an empty one.
pub(super) fn is_vacant(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(!path.is_symlink()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes of all files in a directory and those below it.
pub(super) fn bytes_below(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_of_the_same_number_has_left_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("monday");
        let left = directory.path().join(format!("monday.{}.making", std::process::id()));
        fs::create_dir(&left).unwrap();
        let making = DirectoryInMaking::beside(&target).unwrap();
        let made = making.path().to_owned();
        assert!(made.to_str().unwrap().ends_with("-1.making"), "{}", made.display());
        making.become_target(&target).unwrap();
        assert!(target.is_dir() && !made.exists() && left.is_dir());
    }
}
