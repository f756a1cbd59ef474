//! The file: its two meta pages, and pages by number.
//!
//! ```text
//! meta page, after the header of 16 bytes:
//! 0   magic u32, version u32
//! 8   address u64, size of the map u64
//! 24  root of the free pages' tree (its first four bytes are the length of a page)
//! 72  root of the main tree
//! 120 last page u64, transaction u64
//!
//! root: padding u32, flags u16, depth u16, branch pages u64, leaf pages u64, overflow pages u64,
//!       entries u64, page u64
//! ```

use std::{
    fs::File,
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
};

use super::page::{HEADER_LEN, META, OVERFLOW, PageDamage, u16_at, u64_at};

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_LEN: usize = 136;
const ROOT_LEN: usize = 48;

/// The length of a page is a power of two between these.
const PAGE_LEN_MIN: usize = 256;
const PAGE_LEN_MAX: usize = 32 << 10;

/// The first page after the two meta pages.
const FIRST_PAGE: u64 = 2;

/// The root of a tree without pages.
const NO_PAGE: u64 = u64::MAX;

/// The flag of a tree whose keys are numbers in native byte order.
const INTEGER_KEY: u16 = 0x08;

/// Deepest tree that LMDB builds.
const DEPTH_MAX: u16 = 32;

/// Where a tree begins, and what LMDB records about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// What kind of tree it is.
    pub flags: u16,
    /// How many pages are on the path to an entry.
    pub depth: u16,
    /// Pages that lead to others.
    pub branch_pages: u64,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Pages with values that are too long for a leaf page.
    pub overflow_pages: u64,
    /// How many entries there are.
    pub entries: u64,
    /// `None` for an empty tree.
    pub page: Option<u64>,
}

impl Root {
    /// Decodes a root, if the bytes can be one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ROOT_LEN] = bytes.try_into().ok()?;
        let page = u64_at(bytes, 40)?;
        let root = Self {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branch_pages: u64_at(bytes, 8)?,
            leaf_pages: u64_at(bytes, 16)?,
            overflow_pages: u64_at(bytes, 24)?,
            entries: u64_at(bytes, 32)?,
            page: (page != NO_PAGE).then_some(page),
        };
        (root.depth <= DEPTH_MAX && root.page.is_some() == (root.depth > 0)).then_some(root)
    }

    /// Whether a key comes after another one.
    pub(super) fn is_above(&self, key: &[u8], other: &[u8]) -> bool {
        match self.flags & INTEGER_KEY {
            0 => key > other,
            _ => u64_at(key, 0) > u64_at(other, 0),
        }
    }
}

/// The file cannot be examined.
#[derive(Debug, thiserror::Error)]
pub enum PageFileError {
    /// The operating system cannot read it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not, or is no longer, an LMDB file.
    #[error("{0}")]
    Damaged(String),
}

impl From<PageFileError> for io::Error {
    fn from(error: PageFileError) -> Self {
        match error {
            PageFileError::Io(error) => error,
            PageFileError::Damaged(what) => Self::other(what),
        }
    }
}

struct Meta {
    page_len: usize,
    free: Root,
    main: Root,
    last_page: u64,
    transaction: u64,
}

impl Meta {
    /// The meta page that the next commit will write to: the two take turns.
    fn next_page(&self) -> usize {
        usize::from(self.transaction.is_multiple_of(2))
    }
}

/// An LMDB file as of its last commit.
pub struct PageFile {
    file: File,
    meta: Meta,
    /// The transaction number in the meta page that the next commit will write to.
    replaced_next: u64,
    /// What is wrong with one meta page, if the other is intact.
    damage: Option<PageDamage>,
}

impl PageFile {
    /// Opens a file and reads its meta pages.
    pub fn open(path: &Path) -> Result<Self, PageFileError> {
        let file = open_for_reading(path)?;
        let meta_pages = read_meta_pages(&file)?;
        let [first, second] = meta_pages.each_ref().map(decode_meta);
        let damage = match (&first, &second) {
            (Some(_), Some(_)) => None,
            (None, _) => Some(PageDamage::new(0, "it is no meta page")),
            (_, None) => Some(PageDamage::new(1, "it is no meta page")),
        };
        let newest = [first, second].into_iter().flatten().max_by_key(|meta| meta.transaction);
        let Some(meta) = newest else {
            let what = match file.metadata()?.len() {
                0 => "data.mdb is empty",
                _ => "data.mdb is no LMDB file, or both of its meta pages are damaged",
            };
            return Err(PageFileError::Damaged(what.to_owned()));
        };
        let next = &meta_pages[meta.next_page()][TRANSACTION_AT..];
        let replaced_next = u64_at(next, 0).unwrap_or(0);
        Ok(Self { file, meta, replaced_next, damage })
    }

    /// What is wrong with one meta page, if the other is intact.
    pub fn damage(&self) -> Option<&PageDamage> {
        self.damage.as_ref()
    }

    /// Whether nobody has committed to the file, nor put another into its place, since it was
    /// opened. Then nothing that was read meanwhile has been overwritten: the pages of a commit
    /// stay as they are until the next one is complete.
    ///
    /// # Errors
    /// If the operating system cannot read it.
    pub fn is_current(&self) -> io::Result<bool> {
        let at = self.meta.next_page() * self.meta.page_len + TRANSACTION_AT;
        let mut transaction = [0; 8];
        read_from(&self.file, &mut transaction, at as u64)?;
        // A file that has been replaced has no name left.
        Ok(u64::from_le_bytes(transaction) == self.replaced_next
            && self.file.metadata()?.nlink() > 0)
    }

    /// The tree of free pages: transaction u64 → count u64, page numbers.
    pub fn free(&self) -> Root {
        self.meta.free
    }

    /// The tree of named trees.
    pub fn main(&self) -> Root {
        self.meta.main
    }

    /// Length of a page, in bytes.
    pub fn page_len(&self) -> usize {
        self.meta.page_len
    }

    /// The number of pages, used or free.
    pub fn pages(&self) -> u64 {
        self.meta.last_page.saturating_add(1)
    }

    /// Whether the page `number` can be part of a tree.
    pub fn has_page(&self, number: u64) -> bool {
        (FIRST_PAGE..self.pages()).contains(&number)
    }

    /// Asks the operating system to read the page `number` soon, so that reading it will not take long. Does not wait for it.
    pub fn will_need(&self, number: u64) {
        let len = self.meta.page_len as u64;
        let range = number.checked_mul(len).and_then(|at| i64::try_from(at).ok());
        let Some(at) = range.filter(|_| self.has_page(number)) else { return };
        // SAFETY: the descriptor is open, and the call takes no pointer. If it fails, reading takes longer.
        unsafe {
            libc::posix_fadvise(self.file.as_raw_fd(), at, len as i64, libc::POSIX_FADV_WILLNEED)
        };
    }

    pub(super) fn read_page(&self, number: u64) -> Result<Vec<u8>, PageDamage> {
        self.read(number, 0, self.meta.page_len)
    }

    /// Reads a value of `len` bytes from its own overflow pages; also returns how many those are.
    pub(super) fn read_overflow(
        &self,
        number: u64,
        len: usize,
    ) -> Result<(Vec<u8>, u64), PageDamage> {
        let damaged = |what: &str| PageDamage::new(number, what);
        let header = self.read(number, 0, HEADER_LEN)?;
        let pages = u64::from(u32::from_le_bytes([header[12], header[13], header[14], header[15]]));
        if u64_at(&header, 0) != Some(number) || u16_at(&header, 10) != Some(OVERFLOW) {
            return Err(damaged("it is not the beginning of a long value"));
        }
        // A value that was overwritten by a shorter one keeps its pages.
        if pages < ((HEADER_LEN + len).div_ceil(self.meta.page_len)) as u64
            || !self.has_page(number.saturating_add(pages - 1))
        {
            return Err(damaged("a long value has an impossible length"));
        }
        Ok((self.read(number, HEADER_LEN, len)?, pages))
    }

    /// The length of the file, in bytes.
    fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read(&self, number: u64, at: usize, len: usize) -> Result<Vec<u8>, PageDamage> {
        if !self.has_page(number) {
            return Err(PageDamage::new(number, "there is no such page, but another refers to it"));
        }
        let offset = number * self.meta.page_len as u64 + at as u64;
        // Checked before allocating what a damaged length asks for.
        if len > PAGE_LEN_MAX && offset + len as u64 > self.len() {
            return Err(PageDamage::new(number, "the file ends before it"));
        }
        let mut bytes = vec![0; len];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(PageDamage::new(number, "the file ends before it"))
            }
            Err(error) => Err(PageDamage::unread(number, &error)),
        }
    }
}

/// Opens a file so that reading it does not change its access time. Only the file's owner may ask
/// for that; others open it as usual.
fn open_for_reading(path: &Path) -> io::Result<File> {
    match File::options().read(true).custom_flags(libc::O_NOATIME).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        opened => opened,
    }
}

/// The usual length of a page.
const USUAL_PAGE_LEN: usize = 4096;

/// Where a meta page has its transaction number.
const TRANSACTION_AT: usize = HEADER_LEN + 128;

/// Bytes of a meta page that have a meaning.
const META_PAGE_LEN: usize = HEADER_LEN + META_LEN;

/// The beginnings of the two meta pages; zeros beyond the end of the file.
type MetaPages = [[u8; META_PAGE_LEN]; 2];

/// Reads both meta pages, with one call unless pages have an unusual length.
fn read_meta_pages(file: &File) -> io::Result<MetaPages> {
    let mut head = [0; USUAL_PAGE_LEN + META_PAGE_LEN];
    read_from(file, &mut head, 0)?;
    let (first_page, second) = head.split_at(USUAL_PAGE_LEN);
    let mut pages = [[0; META_PAGE_LEN]; 2];
    pages[0].copy_from_slice(&first_page[..META_PAGE_LEN]);
    pages[1].copy_from_slice(second);
    // If the first meta page does not say how long pages are, the usual length is assumed.
    let page_len = decode_meta(&pages[0]).map_or(USUAL_PAGE_LEN, |meta| meta.page_len);
    if page_len != USUAL_PAGE_LEN {
        pages[1] = [0; META_PAGE_LEN];
        read_from(file, &mut pages[1], page_len as u64)?;
    }
    Ok(pages)
}

/// Fills `bytes` from the file, from `at` on, as far as the file goes.
fn read_from(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, at) {
            Ok(0) => break,
            Ok(len) => (bytes, at) = (&mut bytes[len..], at + len as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn decode_meta(bytes: &[u8; META_PAGE_LEN]) -> Option<Meta> {
    let (header, meta) = bytes.split_at(HEADER_LEN);
    let u32_at = |at: usize| Some(u32::from_le_bytes(*meta.get(at..)?.first_chunk()?));
    if u16_at(header, 10)? != META || u32_at(0)? != MAGIC || u32_at(4)? != VERSION {
        return None;
    }
    let page_len = u32_at(24)? as usize;
    if !page_len.is_power_of_two() || !(PAGE_LEN_MIN..=PAGE_LEN_MAX).contains(&page_len) {
        return None;
    }
    Some(Meta {
        page_len,
        free: Root::decode(&meta[24..72])?,
        main: Root::decode(&meta[72..120])?,
        last_page: u64_at(meta, 120).filter(|page| *page < 1 << 40)?,
        transaction: u64_at(meta, 128)?,
    })
}

/// A set of page numbers.
pub struct PageSet {
    bits: Vec<u64>,
    count: u64,
}

impl PageSet {
    /// For the pages that `file` has room for, however many it claims to have.
    pub fn of(file: &PageFile) -> Self {
        let pages = file.len() / file.meta.page_len as u64;
        Self { bits: vec![0; (pages / 64 + 1) as usize], count: 0 }
    }

    /// Adds a page; returns whether it is new. One beyond the file's end always is: LMDB need not
    /// have written the last pages if they are free.
    pub fn insert(&mut self, page: u64) -> bool {
        let bit = 1 << (page % 64);
        let Some(word) = usize::try_from(page / 64).ok().and_then(|at| self.bits.get_mut(at))
        else {
            self.count += 1;
            return true;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// How many pages are in the set.
    pub fn count(&self) -> u64 {
        self.count
    }
}
