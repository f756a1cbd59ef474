//! A view of the base at one checkpoint: through LMDB, or by pages as long as LMDB is not needed.

use std::{
    cell::{OnceCell, RefCell},
    ops::Bound,
    sync::Arc,
};

use crate::{Direction, ReadError};

use super::{
    handle::{Base, PageView},
    lmdb_view::{LmdbScan, LmdbView, Stored},
    page_base::PageAnswer,
};

/// A view of the base. Invariant: while it is held, either `lmdb` or `page_view` is, both of the
/// same checkpoint.
pub(in crate::tree) struct BaseView {
    /// Once it reads through LMDB, it always does.
    lmdb: OnceCell<LmdbView>,
    page_view: RefCell<Option<PageView>>,
    /// What was read from pages.
    read: Records,
    base: Arc<Base>,
}

/// Records that stay where they are while others come.
#[derive(Default)]
struct Records {
    first: OnceCell<Box<Link>>,
}

struct Link {
    stored: Vec<u8>,
    next: OnceCell<Box<Link>>,
}

impl Records {
    /// Adds one behind the others, of which there are few.
    fn add(&self, stored: Vec<u8>) -> &[u8] {
        let mut place = &self.first;
        while let Some(link) = place.get() {
            place = &link.next;
        }
        &place.get_or_init(|| Box::new(Link { stored, next: OnceCell::new() })).stored
    }
}

fn not_held() -> ReadError {
    ReadError::Engine { message: "reading from a view that was let go".to_owned() }
}

impl BaseView {
    /// A view that is not held yet.
    pub(in crate::tree) fn new(base: Arc<Base>) -> Self {
        Self {
            lmdb: OnceCell::new(),
            page_view: RefCell::default(),
            read: Records::default(),
            base,
        }
    }

    /// Takes the newest view.
    pub(in crate::tree) fn renew(&mut self) -> Result<(), ReadError> {
        self.release();
        if let Some(view) = self.lmdb.get_mut() {
            return view.renew();
        }
        let page_view = PageView::take(&self.base);
        if page_view.is_some() {
            self.page_view.replace(page_view);
            return Ok(());
        }
        let mut view = LmdbView::new(Arc::clone(self.base.lmdb()?))?;
        view.renew()?;
        self.lmdb = OnceCell::from(view);
        Ok(())
    }

    /// Whether there is something to read from.
    pub(in crate::tree) fn is_held(&self) -> bool {
        self.lmdb.get().is_some() || self.page_view.borrow().is_some()
    }

    /// Lets go of the view.
    pub(in crate::tree) fn release(&mut self) {
        if let Some(view) = self.lmdb.get_mut() {
            view.release();
        }
        self.page_view.get_mut().take();
        self.read = Records::default();
    }

    /// The last transaction that the view holds.
    pub(in crate::tree) fn sequence(&self) -> u64 {
        match self.lmdb.get() {
            Some(view) => view.sequence(),
            None => self.page_view.borrow().as_ref().map_or(0, |view| view.pages().sequence),
        }
    }

    /// Whether the view has nothing of a tree.
    pub(in crate::tree) fn is_empty(&self, tree: u32) -> bool {
        match self.lmdb.get() {
            Some(view) => view.is_empty(tree),
            None => self.page_view.borrow().as_ref().is_none_or(|view| !view.pages().has(tree)),
        }
    }

    /// The stored record under `key`.
    #[inline]
    pub(in crate::tree) fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        match self.lmdb.get() {
            Some(view) => view.find(tree, key),
            None => self.find_by_pages(tree, key),
        }
    }

    #[cold]
    fn find_by_pages(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let answer = match &*self.page_view.borrow() {
            Some(view) => view.pages().find(tree, key)?,
            None => return Err(not_held()),
        };
        match answer {
            PageAnswer::Absent => Ok(None),
            PageAnswer::Unknown => self.through_lmdb()?.find(tree, key),
            PageAnswer::Stored(stored) => Ok(Some(self.read.add(stored))),
        }
    }

    /// The nearest entry from `from` on.
    pub(in crate::tree) fn seek(
        &self,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Stored<'_>>, ReadError> {
        self.through_lmdb()?.seek(tree, from, direction)
    }

    /// A scan that goes on from the entry that [`seek`](Self::seek) has just given.
    pub(in crate::tree) fn scan(
        &self,
        tree: u32,
        direction: Direction,
    ) -> Result<Option<LmdbScan<'_>>, ReadError> {
        self.through_lmdb()?.scan(tree, direction)
    }

    /// The same view in LMDB, from now on.
    #[inline]
    fn through_lmdb(&self) -> Result<&LmdbView, ReadError> {
        match self.lmdb.get() {
            Some(view) => Ok(view),
            None => self.exchange(),
        }
    }

    #[cold]
    fn exchange(&self) -> Result<&LmdbView, ReadError> {
        let mut page_view = self.page_view.borrow_mut();
        let (lmdb, txn) = page_view.as_mut().ok_or_else(not_held)?.exchange()?;
        // The transaction keeps the pages from now on, and nothing does if it cannot be used. What
        // was read stays where it is.
        page_view.take();
        let view = LmdbView::of(lmdb, txn)?;
        Ok(self.lmdb.get_or_init(|| view))
    }
}
