//! Files below the document root. Each folder on the way is opened separately, and never through a symbolic
//! link, so that no path and no link leads out of the root.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, FromRawFd as _},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
};

/// Maximum number of folders on the way to a file.
const DEPTH_MAX: usize = 64;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It does not exist, or may not be read.
    #[error("{0}")]
    Missing(io::Error),
    /// It is not a path below the document root.
    #[error("{0} is not below the document root; name files as r.document_root .. \"/name\"")]
    Outside(String),
}

/// A folder whose files handlers may read.
#[derive(Clone, Debug)]
pub struct DocumentRoot {
    path: PathBuf,
}

impl DocumentRoot {
    /// A root at `path`, which is made absolute.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // By its components, so that it does not end with a slash.
        Self { path: absolute.components().collect() }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file by its path, which either begins with the root's path or is relative to it.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn open(&self, path: &[u8]) -> Result<File, FileError> {
        let outside = || FileError::Outside(String::from_utf8_lossy(path).into_owned());
        let root = match self.path.as_os_str().as_encoded_bytes() {
            b"/" => b"",
            root => root,
        };
        let within = match path.strip_prefix(root) {
            Some(within) if within.is_empty() || within[0] == b'/' => within,
            _ if path.starts_with(b"/") => return Err(outside()),
            _ => path,
        };
        let names = within.split(|&byte| byte == b'/');
        let names: Vec<&[u8]> = names.filter(|name| !name.is_empty() && *name != b".").collect();
        if names.len() > DEPTH_MAX || names.iter().any(|name| *name == b".." || name.contains(&0)) {
            return Err(outside());
        }
        // The root itself may be a link: the operator chose it.
        let options = libc::O_DIRECTORY | libc::O_CLOEXEC;
        let mut file = File::options()
            .read(true)
            .custom_flags(options)
            .open(&self.path)
            .map_err(FileError::Missing)?;
        for (place, name) in names.iter().enumerate() {
            let is_last = place + 1 == names.len();
            file = open_at(&file, name, is_last).map_err(FileError::Missing)?;
        }
        Ok(file)
    }

    /// The content of a regular file, up to one byte more than `len_max`.
    pub(crate) fn read(&self, path: &[u8], len_max: usize) -> Result<Vec<u8>, FileError> {
        let file = self.open(path)?;
        let metadata = file.metadata().map_err(FileError::Missing)?;
        if !metadata.is_file() {
            return Err(FileError::Missing(io::Error::other("this is no file")));
        }
        let mut content = Vec::new();
        // One byte more, so that the caller notices that it is too long.
        let read = file.take(len_max as u64 + 1).read_to_end(&mut content);
        read.map_err(FileError::Missing)?;
        Ok(content)
    }
}

/// Opens the entry of that name in a folder, unless it is a link. All but the last one must be folders. Special
/// files such as pipes are not waited for.
fn open_at(folder: &File, name: &[u8], is_last: bool) -> io::Result<File> {
    let name = CString::new(name).map_err(io::Error::other)?;
    let kind = if is_last { libc::O_NONBLOCK } else { libc::O_DIRECTORY };
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | kind;
    // SAFETY: the descriptor is open as long as `folder` lives, and the name ends with a zero byte.
    let descriptor = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened above, and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn nothing_is_read_outside_of_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("root/sub")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("root/sub/a.txt"), "hello").unwrap();
        symlink(at("secret"), at("root/link")).unwrap();
        symlink(directory.path(), at("root/up")).unwrap();
        symlink("sub", at("root/inner")).unwrap();
        let root = DocumentRoot::new(&at("root"));
        let read = |path: &str| root.read(path.as_bytes(), 100).map_err(|error| error.to_string());
        let absolute = format!("{}/sub/a.txt", at("root").display());
        for path in [&absolute, "sub/a.txt", "./sub//a.txt", "/root/../x"] {
            let found = read(path);
            assert_eq!(found.is_ok(), path != "/root/../x", "{path}: {found:?}");
        }
        let sibling = format!("{}-other/a", at("root").display());
        for path in [
            "../secret",
            "sub/../../secret",
            "link",
            "up/secret",
            "inner/a.txt",
            "sub",
            "",
            "sub/none",
            "sub/a.txt/",
            "sub/a.txt/b",
            "a\0b",
            "/etc/passwd",
            &sibling,
        ] {
            let found = read(path);
            assert!(found.is_err() || path == "sub/a.txt/", "{path}: {found:?}");
        }
        assert_eq!(root.read(b"sub/a.txt", 2).unwrap(), b"hel");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = CString::new(directory.path().join("pipe").to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        assert!(DocumentRoot::new(directory.path()).read(b"pipe", 10).is_err());
    }
}
