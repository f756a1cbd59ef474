//! The base through LMDB: opening it, and the handles that its users share.

use std::{
    fs,
    path::Path,
    sync::{PoisonError, RwLock},
};

use crate::{limits, tree::files};

use super::{
    DATA_FILE,
    contents::{BaseContents, BaseOpenError, BaseOptions},
    format::{self, TreeEntry},
    lmdb::{Dbi, Environment, EnvironmentOptions, Insert, LmdbError, Step, WriteTxn},
    remove_copy,
    rescue::Rescue,
};

/// Slots: each database has a tree, there are two internal trees, and while a checkpoint replaces
/// trees by others, both take a slot.
const SLOTS_MAX: usize = 2 * (limits::DATABASES_MAX + 2);

/// The base, open in LMDB.
pub(super) struct LmdbBase {
    pub(super) environment: Environment,
    pub(super) directory: Dbi,
    /// The slots that views may use.
    pub(super) slots: RwLock<Vec<Dbi>>,
    /// A random number, the same in all files of a store.
    pub(super) store: u64,
    pub(super) rescue: Rescue,
}

/// Where a new base is made.
const NEW_DIRECTORY: &str = "base.new";

/// Makes an empty base, durably and as a whole: LMDB leaves the first pages of a new file unsynced,
/// and one that a power failure has torn there is no LMDB file.
fn create(path: &Path, options: &EnvironmentOptions, store: u64) -> Result<(), BaseOpenError> {
    let place = path.join(NEW_DIRECTORY);
    fs::create_dir(&place)?;
    let environment = Environment::open(&place, options)?;
    let mut txn = environment.write()?;
    let directory = txn.create_database(format::BASE)?;
    put(&mut txn, directory, format::FORMAT_KEY, &format::FORMAT_VERSION.to_le_bytes())?;
    put(&mut txn, directory, format::STORE_KEY, &store.to_le_bytes())?;
    txn.commit()?;
    drop(environment);
    fs::rename(place.join(DATA_FILE), path.join(DATA_FILE))?;
    files::sync_directory(path)?;
    fs::remove_dir_all(&place)?;
    Ok(())
}

fn environment_options(options: BaseOptions) -> EnvironmentOptions {
    EnvironmentOptions {
        map_size: options.size_max,
        readers_max: options.views_max,
        // The slots, the directory, and room for the look at the name after the last slot.
        databases_max: SLOTS_MAX as u32 + 2,
    }
}

impl LmdbBase {
    /// Opens the base in the directory `path`. If there is none, it makes an empty one for the store
    /// of the number that `new_store` gives.
    pub(super) fn open_or_make(
        path: &Path,
        options: BaseOptions,
        new_store: impl FnOnce() -> u64,
    ) -> Result<(Self, BaseContents), BaseOpenError> {
        let unfinished = path.join(NEW_DIRECTORY);
        if unfinished.exists() {
            fs::remove_dir_all(unfinished)?;
        }
        if !path.join(DATA_FILE).exists() {
            create(path, &environment_options(options), new_store())?;
        }
        Self::open(path, options)
    }

    /// Opens the base in the directory `path`.
    pub(super) fn open(
        path: &Path,
        options: BaseOptions,
    ) -> Result<(Self, BaseContents), BaseOpenError> {
        remove_copy(path)?;
        // LMDB would make one.
        fs::metadata(path.join(DATA_FILE))?;
        let options = environment_options(options);
        let environment = Environment::open(path, &options)?;
        let mut txn = environment.write()?;
        let directory = txn.find_database(format::BASE)?;
        let directory = directory
            .ok_or(BaseOpenError::Damaged("data.mdb is empty, or of another program than this"))?;
        let version = number::<4>(&mut txn, directory, format::FORMAT_KEY)?;
        match version.map(u32::from_le_bytes) {
            Some(format::FORMAT_VERSION) => {}
            Some(version) => return Err(BaseOpenError::Version(version)),
            None => return Err(BaseOpenError::Damaged("it has no version")),
        }
        let store = number::<8>(&mut txn, directory, format::STORE_KEY)?;
        let store = u64::from_le_bytes(store.ok_or(BaseOpenError::Damaged("it has no number"))?);
        let mut slots = Vec::new();
        while let Some(dbi) = txn.find_database(&format::slot_name(slots.len()))? {
            slots.push(dbi);
        }
        let sequence = number::<8>(&mut txn, directory, format::SEQUENCE_KEY)?;
        let sequence = sequence.map_or(0, u64::from_le_bytes);
        let trees = read_trees(&mut txn, directory)?;
        if trees.iter().any(|(_, entry)| entry.slot as usize >= slots.len()) {
            return Err(BaseOpenError::Damaged("a tree without a slot"));
        }
        if trees.iter().any(|(tree, _)| *tree == format::NO_TREE) {
            return Err(BaseOpenError::Damaged("a tree has a number that none can have"));
        }
        let trees = trees.into_iter().map(|(tree, entry)| (tree, entry.statistics)).collect();
        txn.commit()?;
        let slots = RwLock::new(slots);
        let rescue = Rescue::new(path.to_owned(), options);
        let base = Self { environment, directory, slots, store, rescue };
        Ok((base, BaseContents { sequence, trees }))
    }

    /// Commits what it holds once more, up to transaction `sequence`. What a process has left that
    /// was killed in the middle of a commit may be in the system's memory alone.
    pub(super) fn make_durable(&self, sequence: u64) -> Result<(), LmdbError> {
        let mut txn = self.environment.write()?;
        put(&mut txn, self.directory, format::SEQUENCE_KEY, &sequence.to_le_bytes())?;
        txn.commit()
    }

    pub(super) fn slots(&self) -> Vec<Dbi> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The entries of all trees.
pub(super) fn read_trees(
    txn: &mut WriteTxn,
    directory: Dbi,
) -> Result<Vec<(u32, TreeEntry)>, BaseOpenError> {
    let mut trees = Vec::new();
    let mut found = txn.step(directory, Step::AtOrAfter(format::TREE_PREFIX))?;
    while let Some((key, value)) = found {
        let Some(tree) = format::parse_tree_key(key) else { break };
        let entry = TreeEntry::decode(value).ok_or(BaseOpenError::Damaged("a tree's entry"))?;
        trees.push((tree, entry));
        found = txn.step(directory, Step::Next)?;
    }
    Ok(trees)
}

/// A number of `N` bytes.
fn number<const N: usize>(
    txn: &mut WriteTxn,
    directory: Dbi,
    key: &[u8],
) -> Result<Option<[u8; N]>, BaseOpenError> {
    let stored = txn.find(directory, key)?;
    let number = stored.map(|bytes| bytes.try_into()).transpose();
    number.map_err(|_| BaseOpenError::Damaged("a number of a wrong length"))
}

pub(super) fn put(
    txn: &mut WriteTxn,
    directory: Dbi,
    key: &[u8],
    bytes: &[u8],
) -> Result<(), LmdbError> {
    let room = match txn.insert(directory, key, bytes.len())? {
        Insert::Vacant(room) => room,
        Insert::Occupied(_) => txn.overwrite(directory, key, bytes.len())?,
    };
    room.copy_from_slice(bytes);
    Ok(())
}
