//! `restore`: replays an update log that a Tokyo Tyrant has written, from a given time on.
//!
//! A migration dumps the old server first, loads the dump, and then replays what the old server has written
//! since. A log may be long, so it is replayed in turns, between which other connections are served.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    vec,
};

use tokaido_wire::tyrant::{
    Verb,
    binary::{self, Decoder, Request},
    update_log::{self, SUFFIX, UpdateLogError},
};

use super::{
    commands,
    refusal::{ErrorCode, Refusal},
    session::{Session, Stop},
};
use crate::{backups::BackupError, protocol::Context};

/// How many entries are replayed before other connections get their turn.
const ENTRIES_PER_TURN: usize = 256;

/// How many bytes are read at a time.
const READ_LEN: usize = 1 << 16;

/// The option that ends a replay at an update whose outcome differs from the logged one.
const IS_STRICT: i64 = 1;

/// A log was not replayed, or not to its end.
#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error(transparent)]
    Directory(#[from] BackupError),
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no update log: no file is called NUMBER{SUFFIX}", path.display())]
    NoLog { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Damaged { path: PathBuf, source: UpdateLogError },
    #[error("{}: a message of the update log is no request that changes records", path.display())]
    NoUpdate { path: PathBuf },
    #[error("{}: an update came out otherwise than when it was logged: {outcome}", path.display())]
    Inconsistent { path: PathBuf, outcome: String },
}

impl From<RestoreError> for Refusal {
    fn from(error: RestoreError) -> Self {
        match &error {
            RestoreError::Directory(error) => error.into(),
            RestoreError::Read { .. } => Self::new(ErrorCode::Other, error.to_string()),
            _ => Self::invalid(error.to_string()),
        }
    }
}

/// A replay in progress.
pub(super) struct Restore {
    files: vec::IntoIter<PathBuf>,
    /// The file that is being read.
    path: PathBuf,
    file: File,
    /// Bytes that were read; those from `at` on are not replayed yet.
    input: Vec<u8>,
    at: usize,
    since_us: u64,
    is_strict: bool,
    message_len_max: usize,
    replayed: u64,
    /// How many updates had an outcome that differs from the logged one.
    different: u64,
}

/// Replays a log, or goes on with it. The request stays at the head of the input until it is done.
pub(super) fn answer(
    session: &mut Session,
    request: &Request<'_>,
    context: &mut Context<'_>,
) -> Result<(), Stop> {
    let mut restore = match session.restoring.take() {
        Some(restore) => restore,
        None => Box::new(Restore::begin(session, request).inspect_err(|refusal| {
            tracing::warn!(reason = refusal.reason, "an update log was not replayed");
        })?),
    };
    match restore.turn(session, context) {
        Ok(true) => {
            let Restore { path, replayed, different, .. } = &*restore;
            tracing::info!(last = %path.display(), replayed, different, "an update log was replayed");
            Ok(())
        }
        Ok(false) => {
            session.restoring = Some(restore);
            session.wake();
            Err(Stop::Waits)
        }
        Err(Stop::Refused(refusal)) => {
            let (reason, replayed) = (&refusal.reason, restore.replayed);
            tracing::warn!(reason, replayed, "an update log was not replayed to its end");
            Err(refusal.into())
        }
        Err(elsewhere) => {
            session.restoring = Some(restore);
            Err(elsewhere)
        }
    }
}

impl Restore {
    fn begin(session: &Session, request: &Request<'_>) -> Result<Self, Refusal> {
        let [since_us, options, _] = request.numbers();
        let directory =
            session.shared.backups.find(request.key()).map_err(RestoreError::Directory)?;
        let mut files = list(&directory)?.into_iter();
        let path = files.next().ok_or(RestoreError::NoLog { path: directory })?;
        Ok(Self {
            file: open(&path)?,
            path,
            files,
            input: Vec::new(),
            at: 0,
            // As in C, a negative number becomes a time that is never reached.
            since_us: since_us as u64,
            is_strict: options & IS_STRICT != 0,
            message_len_max: session.shared.limits().tyrant_request_bytes_max,
            replayed: 0,
            different: 0,
        })
    }

    /// Replays some entries. Returns whether those were the last ones.
    fn turn(&mut self, session: &mut Session, context: &mut Context<'_>) -> Result<bool, Stop> {
        let mut message = Vec::new();
        for _ in 0..ENTRIES_PER_TURN {
            let decoded = update_log::decode(&self.input[self.at..], self.message_len_max);
            match decoded.map_err(|source| self.damaged(source))? {
                update_log::Decoded::Incomplete => {
                    if !self.read()? {
                        return Ok(true);
                    }
                }
                update_log::Decoded::Complete { consumed, entry } => {
                    if entry.time_us >= self.since_us {
                        let was_done = entry.request(&mut message);
                        let was_done = was_done.map_err(|source| self.damaged(source))?;
                        self.replay(&message, was_done, session, context)?;
                        self.replayed += 1;
                    }
                    self.at += consumed;
                }
            }
        }
        Ok(false)
    }

    /// Reads on, in the next file after the end of one. Returns whether there is more. An entry
    /// that is cut off by the end of a file was never finished.
    fn read(&mut self) -> Result<bool, Refusal> {
        self.input.drain(..self.at);
        self.at = 0;
        let mut piece = (&self.file).take(READ_LEN as u64);
        let failed = |source| RestoreError::Read { path: self.path.clone(), source };
        if piece.read_to_end(&mut self.input).map_err(failed)? > 0 {
            return Ok(true);
        }
        let Some(path) = self.files.next() else { return Ok(false) };
        self.input.clear();
        self.file = open(&path)?;
        self.path = path;
        Ok(true)
    }

    /// Does what an entry says.
    fn replay(
        &mut self,
        message: &[u8],
        was_done: bool,
        session: &mut Session,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let mut decoder = Decoder::new(self.message_len_max);
        let request = match decoder.decode(message) {
            Ok(binary::Decoded::Complete { consumed, request }) if consumed == message.len() => {
                request
            }
            _ => return Err(self.no_update().into()),
        };
        match request.command.verb {
            Verb::Put
            | Verb::PutKeep
            | Verb::PutCat
            | Verb::PutShl
            | Verb::Out
            | Verb::AddInt
            | Verb::AddDouble
            | Verb::Vanish
            | Verb::Misc => {}
            // They leave nothing to be done again.
            Verb::Sync | Verb::Optimize => return Ok(()),
            _ => return Err(self.no_update().into()),
        }
        commands::check(session, &request)?;
        let reason = match commands::answer(session, &request, context, &mut Vec::new()) {
            Ok(()) => None,
            Err(Stop::Refused(refusal)) if refusal.code != ErrorCode::Other => Some(refusal.reason),
            Err(stop) => return Err(stop),
        };
        if reason.is_none() == was_done {
            return Ok(());
        }
        self.different += 1;
        match self.is_strict {
            true => Err(Stop::Refused(self.inconsistent(reason).into())),
            false => Ok(()),
        }
    }

    fn damaged(&self, source: UpdateLogError) -> Refusal {
        RestoreError::Damaged { path: self.path.clone(), source }.into()
    }

    fn inconsistent(&self, reason: Option<String>) -> RestoreError {
        let outcome = reason.unwrap_or_else(|| "it was done".to_owned());
        RestoreError::Inconsistent { path: self.path.clone(), outcome }
    }

    fn no_update(&self) -> Refusal {
        RestoreError::NoUpdate { path: self.path.clone() }.into()
    }
}

/// The files of the log, in numerical order.
fn list(directory: &Path) -> Result<Vec<PathBuf>, RestoreError> {
    let failed = |source| RestoreError::Read { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) {
            files.push((number, directory.join(name)));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

fn open(path: &Path) -> Result<File, RestoreError> {
    File::open(path).map_err(|source| RestoreError::Read { path: path.to_owned(), source })
}
