//! Backups that clients ask for: where they go, and the thread that makes them, one at a time.
//!
//! A backup takes longer the larger the store is. So it has a thread of its own, and only the
//! request for the backup waits for it.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use tokaido_store::tree::{self, BackupReport, Copier, UpkeepError};

use crate::affinity;

/// A backup was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error(
        "no directory for backups is configured: set backups in tokaido.toml, or run `tokaido backup` on the server's machine"
    )]
    NotConfigured,
    #[error("{path:?} is no path of a backup: {reason}")]
    Path { path: String, reason: &'static str },
    #[error("the directory of backups, {}, or one below it, cannot be used: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("a backup is being made; try again when it is done")]
    Busy,
    #[error("the server is stopping")]
    Stopping,
    #[error("the system gives no thread: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Upkeep(#[from] UpkeepError),
    #[error("an error in the server itself, see its log")]
    Panicked,
}

impl BackupError {
    /// Whether the request was invalid.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::NotConfigured | Self::Path { .. } => true,
            Self::Upkeep(error) => matches!(error, UpkeepError::Exists { .. }),
            _ => false,
        }
    }
}

/// The result of a backup.
pub(crate) type Outcome = Result<BackupReport, BackupError>;

/// The backups of a server.
pub(crate) struct Backups {
    directory: Option<PathBuf>,
    copier: Option<Arc<Copier>>,
    making: Arc<Mutex<Making>>,
    /// Set when the server stops; the backup in progress is then abandoned.
    stop: Arc<AtomicBool>,
}

/// The backup thread, if there is or was one.
#[derive(Default)]
struct Making {
    is_under_way: bool,
    thread: Option<JoinHandle<()>>,
}

impl Backups {
    /// Without a directory, or without a copier for the store, all backups are refused.
    pub(crate) fn new(directory: Option<PathBuf>, copier: Option<Arc<Copier>>) -> Self {
        Self { directory, copier, making: Arc::default(), stop: Arc::default() }
    }

    /// Begins a backup at a path that a client names, below the backup directory. `done` is called
    /// on another thread once the backup is on disk, or has failed.
    pub(crate) fn begin(
        &self,
        path: &[u8],
        done: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<(), BackupError> {
        let (Some(directory), Some(copier)) = (&self.directory, &self.copier) else {
            return Err(BackupError::NotConfigured);
        };
        let destination = destination(directory, path)?;
        let mut making = lock(&self.making);
        if self.stop.load(Ordering::Relaxed) {
            return Err(BackupError::Stopping);
        }
        if making.is_under_way {
            return Err(BackupError::Busy);
        }
        join(making.thread.take());
        let (copier, stop) = (Arc::clone(copier), Arc::clone(&self.stop));
        let state = Arc::clone(&self.making);
        let run = move || {
            affinity::unbind();
            let outcome = make(&copier, &destination, &stop);
            // A client that is told that it is done may ask for the next backup at once.
            lock(&state).is_under_way = false;
            done(outcome);
        };
        let thread = Builder::new().name("tokaido-backup".to_owned()).spawn(run);
        making.thread = Some(thread.map_err(BackupError::Thread)?);
        making.is_under_way = true;
        Ok(())
    }

    /// The directory below the backup directory from which a client wants to restore.
    pub(crate) fn find(&self, path: &[u8]) -> Result<PathBuf, BackupError> {
        let directory = self.directory.as_ref().ok_or(BackupError::NotConfigured)?;
        let (root, relative) = below(directory, path)?;
        let unusable = |source| BackupError::Directory { path: directory.clone(), source };
        let found = root.join(relative).canonicalize().map_err(unusable)?;
        match found.starts_with(&root) {
            true => Ok(found),
            false => Err(leads_out(path)),
        }
    }

    /// Begins no more backups, and abandons the one in progress.
    pub(crate) fn stop(&self) {
        let thread = {
            let mut making = lock(&self.making);
            self.stop.store(true, Ordering::Relaxed);
            making.thread.take()
        };
        join(thread);
    }
}

fn lock(making: &Mutex<Making>) -> MutexGuard<'_, Making> {
    making.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(Err(_)) = thread.map(JoinHandle::join) {
        tracing::error!("the thread of a backup panicked");
    }
}

fn make(copier: &Copier, destination: &Path, stop: &AtomicBool) -> Outcome {
    let made = catch_unwind(AssertUnwindSafe(|| copier.backup(destination, stop)));
    let outcome = made.map_or(Err(BackupError::Panicked), |made| made.map_err(Into::into));
    match &outcome {
        Ok(BackupReport { sequence, bytes, .. }) => {
            tracing::info!(destination = %destination.display(), sequence, bytes, "a backup was made");
        }
        Err(error) => tracing::warn!(%error, "a backup was not made"),
    }
    outcome
}

/// Where the backup with this name goes. The directories above it must exist.
fn destination(directory: &Path, path: &[u8]) -> Result<PathBuf, BackupError> {
    let (root, relative) = below(directory, path)?;
    let Some(name) = relative.file_name() else {
        return Err(refused(path, "it has no name"));
    };
    let above = root.join(relative.parent().unwrap_or(Path::new("")));
    let unusable = |source| BackupError::Directory { path: directory.to_owned(), source };
    let above = above.canonicalize().map_err(unusable)?;
    if !above.starts_with(&root) {
        return Err(leads_out(path));
    }
    let is_store =
        |directory: &&Path| tree::exists(directory) || directory.join("data.mdb").exists();
    let within = above.ancestors().take_while(|directory| directory.starts_with(&root));
    if within.into_iter().any(|directory| is_store(&directory)) {
        return Err(refused(path, "it lies within a store, or within another backup"));
    }
    Ok(above.join(name))
}

/// The backup directory without symbolic links, and a client's path below it, which may contain some.
fn below<'p>(directory: &Path, path: &'p [u8]) -> Result<(PathBuf, &'p Path), BackupError> {
    if path.starts_with(b"@") {
        return Err(refused(path, "commands are not run for clients"));
    }
    if path.contains(&0) {
        return Err(refused(path, "it has a NUL byte"));
    }
    let relative = Path::new(OsStr::from_bytes(path));
    let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !relative.components().all(is_below) {
        return Err(refused(
            path,
            "it must lead below the directory of backups, without `/` before it and without `..`",
        ));
    }
    let unusable = |source| BackupError::Directory { path: directory.to_owned(), source };
    Ok((directory.canonicalize().map_err(unusable)?, relative))
}

fn leads_out(path: &[u8]) -> BackupError {
    refused(path, "a symbolic link in it leads out of the directory of backups")
}

fn refused(path: &[u8], reason: &'static str) -> BackupError {
    BackupError::Path { path: String::from_utf8_lossy(path).into_owned(), reason }
}

#[cfg(test)]
mod tests;
