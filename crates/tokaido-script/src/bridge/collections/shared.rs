//! What the calls of all kinds of collections have in common.

use std::{
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
};

use tokaido_store::{
    DatabaseId, ReadError, ReadTransaction, WriteError, WriteTransaction, limits::VALUE_LEN_MAX,
};

use crate::{
    Limits,
    bridge::{
        context::{Context, Fault, database},
        pages::LoadedPage,
        write::own_database,
    },
};

/// A page ends when so much has been read. The first entry is read whatever its size.
const PAGE_BYTES_MAX: usize = 16 << 10;

/// The transaction to read from, and the database; `None` for one that is not there.
pub(super) fn to_read<'t>(
    context: &Context,
    index: i32,
) -> Result<Option<(&'t mut (dyn ReadTransaction + 'static), DatabaseId)>, Fault> {
    let transaction = context.read()?;
    Ok(database(index)?.map(|id| (transaction, id)))
}

/// The transaction to write to, and the database.
pub(super) fn to_write<'t>(
    context: &mut Context,
    index: i32,
) -> Result<(&'t mut (dyn WriteTransaction + 'static), DatabaseId), Fault> {
    Ok((context.write()?, own_database(index)?))
}

/// Why a change of a collection failed. What it is refused for before anything is written leaves the
/// transaction as it was; anything else may have come half way.
pub(super) fn half_done(error: WriteError) -> Fault {
    match error {
        WriteError::Read(ReadError::OtherKind | ReadError::KeyLength { .. })
        | WriteError::FieldLength { .. } => error.into(),
        _ => Fault::Poisoned(error.to_string()),
    }
}

/// Refuses a value that no element has room for, before anything is written.
pub(super) fn check_value(value: &[u8]) -> Result<(), Fault> {
    match value.len() {
        0..=VALUE_LEN_MAX => Ok(()),
        len => Err(Fault::refused(WriteError::ValueLength { len, max: VALUE_LEN_MAX })),
    }
}

/// Refuses to go through so many elements in one call, within which no time limit is looked at.
pub(super) fn check_elements(limits: &Limits, elements: u64) -> Result<(), Fault> {
    let max = limits.many_keys_max;
    if elements <= max as u64 {
        return Ok(());
    }
    Err(Fault::Refused(format!(
        "at most {max} elements are gone through in one call, these are {elements}; do it in parts"
    )))
}

/// A random number.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// A page that is being filled: up to so many entries, and about [`PAGE_BYTES_MAX`].
pub(super) struct Filling<'c> {
    page: &'c mut LoadedPage,
    left: i32,
}

impl<'c> Filling<'c> {
    /// Begins with none.
    pub(super) fn begin(page: &'c mut LoadedPage, entries: i32) -> Self {
        page.clear(2 * PAGE_BYTES_MAX);
        Self { page, left: entries }
    }

    /// Takes an entry; breaks off if it is the last one.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.page.push(key, value, 0.0);
        self.flow()
    }

    /// Takes a member with its score; breaks off if it is the last one.
    pub(super) fn push_scored(&mut self, member: &[u8], score: f64) -> ControlFlow<()> {
        self.page.push(member, &[], score);
        self.flow()
    }

    /// Takes an entry that is several ones of the page; breaks off if it is the last one.
    pub(super) fn push_all(&mut self, push: impl FnOnce(&mut LoadedPage)) -> ControlFlow<()> {
        push(self.page);
        self.flow()
    }

    fn flow(&mut self) -> ControlFlow<()> {
        self.left -= 1;
        if self.left > 0 && self.page.len() < PAGE_BYTES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
