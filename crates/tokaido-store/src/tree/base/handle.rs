//! The base as the engine holds it: open in LMDB, or read by its pages until LMDB is needed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use crate::tree::shared::lock;

use super::{
    contents::{BaseContents, BaseOpenError, BaseOptions},
    lmdb::ReadTxn,
    lmdb_base::LmdbBase,
    page_base::{PageBase, PageDirectory},
};

pub(in crate::tree) struct Base {
    path: PathBuf,
    options: BaseOptions,
    /// A random number, the same in all files of a store.
    store: u64,
    /// Before `lmdb`, which closes the environment.
    page_views: Mutex<PageViews>,
    lmdb: OnceLock<Arc<LmdbBase>>,
    /// If it was opened without LMDB.
    pages: Option<PageBase>,
}

/// Those who read by pages. LMDB does not know of them; so whoever opens it takes a read transaction
/// for each, which keeps the pages that they read from being used for something else.
enum PageViews {
    /// LMDB is not open. There are so many.
    Alone(usize),
    /// LMDB is open. These are of the commit that the pages are of, one for each who is left.
    Kept(Vec<ReadTxn>),
}

/// Most views that read by pages at one time. Each takes one of the snapshots that LMDB has room for.
const PAGE_VIEWS_MAX: usize = 16;

impl Base {
    /// Opens the base in the directory `path`, or makes an empty one for a new store, of the number
    /// that `new_store` gives.
    pub(in crate::tree) fn open(
        path: &Path,
        options: BaseOptions,
        new_store: impl FnOnce() -> u64,
    ) -> Result<(Self, BaseContents), BaseOpenError> {
        let (lmdb, contents) = LmdbBase::open_or_make(path, options, new_store)?;
        let base = Self {
            path: path.to_owned(),
            options,
            store: lmdb.store,
            page_views: Mutex::new(PageViews::Kept(Vec::new())),
            lmdb: OnceLock::from(Arc::new(lmdb)),
            pages: None,
        };
        Ok((base, contents))
    }

    /// Opens the base in the directory `path` without LMDB, if its file is at the commit that
    /// `directory` tells of.
    pub(in crate::tree) fn open_pages(
        path: &Path,
        options: BaseOptions,
        directory: &PageDirectory,
    ) -> Option<Self> {
        Some(Self {
            path: path.to_owned(),
            options,
            store: directory.store,
            page_views: Mutex::new(PageViews::Alone(0)),
            lmdb: OnceLock::new(),
            pages: Some(PageBase::open(path, directory)?),
        })
    }

    fn page_views_max(&self) -> usize {
        PAGE_VIEWS_MAX.min(self.options.views_max as usize)
    }

    pub(in crate::tree) fn store(&self) -> u64 {
        self.store
    }

    /// Opens LMDB, if nobody has done so.
    pub(in crate::tree) fn open_lmdb(&self) -> Result<(), BaseOpenError> {
        self.lmdb().map(drop)
    }

    /// As [`LmdbBase::make_durable`].
    pub(in crate::tree) fn make_durable(&self, sequence: u64) -> Result<(), BaseOpenError> {
        Ok(self.lmdb()?.make_durable(sequence)?)
    }

    /// Whether nothing can be written to it until the store is opened anew.
    pub(in crate::tree) fn is_given_up(&self) -> bool {
        self.lmdb.get().is_some_and(|lmdb| lmdb.is_given_up())
    }

    /// LMDB's side of it, which is opened now if it is not.
    pub(super) fn lmdb(&self) -> Result<&Arc<LmdbBase>, BaseOpenError> {
        match self.lmdb.get() {
            Some(lmdb) => Ok(lmdb),
            None => self.open_now(&mut lock(&self.page_views)),
        }
    }

    /// Opens LMDB, unless whoever had the lock before has done so.
    fn open_now(&self, page_views: &mut PageViews) -> Result<&Arc<LmdbBase>, BaseOpenError> {
        if let Some(lmdb) = self.lmdb.get() {
            return Ok(lmdb);
        }
        let (lmdb, contents) = LmdbBase::open(&self.path, self.options)?;
        let is_the_same = lmdb.store == self.store
            && self.pages.as_ref().is_none_or(|pages| pages.sequence == contents.sequence);
        if !is_the_same {
            return Err(BaseOpenError::Damaged(
                "data.mdb is another file than the seal in tokaido.lock says; write something, or \
                 empty tokaido.lock while nobody has the store, and restart",
            ));
        }
        if let PageViews::Alone(views) = *page_views {
            let kept = (0..views).map(|_| lmdb.read()).collect::<Result<_, _>>()?;
            *page_views = PageViews::Kept(kept);
        }
        // From here on somebody may write to it.
        Ok(self.lmdb.get_or_init(|| Arc::new(lmdb)))
    }
}

/// The right to read by pages: until it is dropped, they stay what they are.
pub(super) struct PageView {
    base: Arc<Base>,
    /// Whether it is among those of [`PageViews`].
    is_counted: bool,
}

impl PageView {
    /// `None` if LMDB is open, or is to be opened now.
    pub(super) fn take(base: &Arc<Base>) -> Option<Self> {
        base.pages.as_ref()?;
        match &mut *lock(&base.page_views) {
            PageViews::Alone(views) if *views < base.page_views_max() => *views += 1,
            PageViews::Alone(_) | PageViews::Kept(_) => return None,
        }
        Some(Self { base: Arc::clone(base), is_counted: true })
    }

    pub(super) fn pages(&self) -> &PageBase {
        self.base.pages.as_ref().expect("nobody takes a view without them")
    }

    /// Gives the right up for a read transaction of the same commit. LMDB is opened for it, if it
    /// is not.
    pub(super) fn exchange(&mut self) -> Result<(Arc<LmdbBase>, ReadTxn), BaseOpenError> {
        let mut page_views = lock(&self.base.page_views);
        let lmdb = Arc::clone(self.base.open_now(&mut page_views)?);
        let PageViews::Kept(kept) = &mut *page_views else { unreachable!("LMDB is open") };
        let txn = kept.pop().expect("there is one for each view");
        self.is_counted = false;
        Ok((lmdb, txn))
    }
}

impl Drop for PageView {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        match &mut *lock(&self.base.page_views) {
            PageViews::Alone(views) => *views -= 1,
            PageViews::Kept(kept) => drop(kept.pop()),
        }
    }
}
