//! Making directories and files atomically: completely or not at all.

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

/// Bytes that an unprivileged user may still write to the file system of `path`.
pub(super) fn room(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statvfs` is plain data, for which all zeros is a value.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string and `room` a valid place for the result.
    match unsafe { libc::statvfs(path.as_ptr(), &raw mut room) } {
        0 => Ok(room.f_bavail * room.f_frsize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a write failed for lack of room.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The mode of a store's files, as LMDB makes its own: others have no access.
pub(super) const FILE_MODE: u32 = 0o640;

/// Makes a file that does not exist yet.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Makes creations, renames and removals in a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes the name of a directory durable, in its parent directory.
pub(super) fn sync_name(directory: &Path) -> io::Result<()> {
    let directory = fs::canonicalize(directory)?;
    let Some(above) = directory.parent() else { return Ok(()) };
    // The name of a mount point belongs to another file system, and was there before.
    if fs::metadata(above)?.dev() != fs::metadata(&directory)?.dev() {
        return Ok(());
    }
    match sync_directory(above) {
        // Only someone who may list a directory can sync it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Makes a directory and any missing parents. When one is made, its parent's name is durable; its
/// own is not yet.
pub(super) fn create_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path);
    create_directories(above)?;
    sync_name(above)?;
    match fs::create_dir(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// The directory that contains `path`.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A directory under a temporary name, beside its final one. If it is dropped before it gets that
/// name, it is removed with everything in it.
pub(super) struct DirectoryInMaking {
    path: PathBuf,
    is_done: bool,
}

impl DirectoryInMaking {
    /// Makes `TARGET.PID.making`, so that a user who finds one after a kill knows whose it is; with
    /// a number after PID if an earlier process with the same PID has left one.
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

    /// Gives the directory its final name, durably. `target` is absent, or an empty directory. The
    /// contents must have been synced.
    ///
    /// If the name cannot be made durable, it is taken back: a caller that is told of the failure
    /// and tries again must not find the name taken. The contents are removed only once the name is
    /// certainly gone, so that a power failure leaves nothing incomplete under it.
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

/// Whether a new directory can be made there: there is none, or an empty one.
pub(super) fn is_vacant(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(!path.is_symlink()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes of all files in a directory and its subdirectories.
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
