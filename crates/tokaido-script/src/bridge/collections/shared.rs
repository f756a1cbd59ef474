//! What the calls of all kinds of collections share.

use std::{
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
};

use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};

use crate::bridge::{
    context::{Context, Fault, database},
    pages::LoadedPage,
    write::own_database,
};
pub(super) use crate::fault::{check_elements, check_value};

/// A page ends after this many bytes. The first entry is read whatever its size.
const PAGE_BYTES_MAX: usize = 16 << 10;

/// The transaction to read from, and the database; `None` if it does not exist.
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

/// A random number.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// A page being filled: up to that many entries, and about [`PAGE_BYTES_MAX`].
pub(super) struct Filling<'c> {
    page: &'c mut LoadedPage,
    left: i32,
}

impl<'c> Filling<'c> {
    /// Starts empty.
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

    /// Takes an entry that makes several entries of the page; breaks off if it is the last one.
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
