//! The file that a writer builds, from its creation until it replaces the target. If anything fails
//! in between, it is removed.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::TempPath;

use super::{
    error::MakeError,
    options::{Options, Temporary},
};

/// The permissions of a file, before the umask.
const PERMISSIONS_DEFAULT: u32 = 0o666;

/// The maximum of a file's permissions: no set-user-id bits.
const PERMISSIONS_MAX: u32 = 0o777;

/// The names of temporary files. Those left over after a crash may be removed.
const TEMPORARY_PREFIX: &str = ".tokaido-";
const TEMPORARY_SUFFIX: &str = ".cdb.tmp";

/// Where a file is built, and where it goes.
pub(super) struct Target {
    /// Removed when dropped.
    built: TempPath,
    path: PathBuf,
    is_in_place: bool,
    sync: bool,
}

impl Target {
    /// Creates the file to write to.
    pub(super) fn create(path: &Path, options: &Options) -> Result<(Self, File), MakeError> {
        if let Some(permissions) = options.permissions.filter(|mode| *mode > PERMISSIONS_MAX) {
            return Err(MakeError::BadPermissions { permissions });
        }
        let explicit = match &options.temporary {
            Temporary::Beside => None,
            Temporary::At(temporary) => Some(temporary.as_path()),
            Temporary::None => Some(path),
        };
        let error_path = explicit.unwrap_or(path);
        let io_error = |source| MakeError::Io { path: error_path.to_owned(), source };
        let (file, built) = match explicit {
            None => create_beside(path),
            Some(temporary) => create_anew(temporary),
        }
        .map_err(io_error)?;
        if let Some(mode) = options.permissions {
            file.set_permissions(Permissions::from_mode(mode)).map_err(io_error)?;
        }
        let is_in_place = explicit == Some(path);
        Ok((Self { built, path: path.to_owned(), is_in_place, sync: options.sync }, file))
    }

    /// The file that is written to.
    pub(super) fn built(&self) -> &Path {
        &self.built
    }

    /// Puts the finished file in its place.
    pub(super) fn install(self, file: &File) -> Result<(), MakeError> {
        let Self { built, path, is_in_place, sync } = self;
        if sync {
            let io_error = |source| MakeError::Io { path: built.to_path_buf(), source };
            file.sync_all().map_err(io_error)?;
        }
        let installed = if is_in_place {
            built.keep().map(drop).map_err(|error| error.error)
        } else {
            built.persist(&path).map_err(|error| error.error)
        };
        installed.map_err(|source| MakeError::Io { path: path.clone(), source })?;
        if sync {
            let synced = File::open(directory_of(&path)).and_then(|handle| handle.sync_all());
            synced.map_err(|source| MakeError::NotSynced { path, source })?;
        }
        Ok(())
    }
}

fn create_beside(path: &Path) -> io::Result<(File, TempPath)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX);
    builder.permissions(Permissions::from_mode(PERMISSIONS_DEFAULT));
    builder.tempfile_in(directory_of(path)).map(tempfile::NamedTempFile::into_parts)
}

/// Creates a file of this name, without following a link. An existing file or link is removed
/// first, but not, say, a device.
fn create_anew(path: &Path) -> io::Result<(File, TempPath)> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_symlink() => fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there, and no file"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(PERMISSIONS_DEFAULT);
    let file = options.open(path)?;
    Ok((file, TempPath::try_from_path(path)?))
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
