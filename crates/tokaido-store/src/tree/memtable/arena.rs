//! An arena: memory that is handed out piece by piece and freed all at once.
//!
//! Most chunks are mapped, not allocated. The thread that frees a memtable is not the one that filled it, which may be
//! idle from then on, and an allocator would wait for that thread before it returned anything to the system. Only the
//! first two chunks, for memtables that stay small, and those of single pieces of 512 KiB to 2 MiB are allocated.

use std::{
    alloc::{Layout, handle_alloc_error},
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

use super::sync::{AtomicUsize, Mutex, Ordering, PoisonError};

/// Bytes of an ordinary chunk, the size of a huge page on most machines. A larger piece gets a chunk of its own.
const CHUNK_LEN: usize = if cfg!(miri) { 1 << 12 } else { 1 << 21 };

/// Bytes of the first chunk, which has room for a memtable's head and little more: most stores
/// opened for reading are not written to.
const FIRST_CHUNK_LEN: usize = 1 << 9;

/// Bytes of the second chunk: many stores are hardly written to.
const SECOND_CHUNK_LEN: usize = if cfg!(miri) { 1 << 11 } else { 1 << 18 };

/// Chunks of at least this many bytes are mapped.
const MAPPED_LEN_MIN: usize = CHUNK_LEN;

/// Pieces are aligned to this many bytes, and their lengths rounded up to it.
pub(super) const ALIGN: usize = align_of::<u64>();

/// A chunk. It owns its memory like a box, but a box could not be moved while others point into it.
struct Chunk(NonNull<[MaybeUninit<u64>]>);

impl Chunk {
    fn new(bytes: usize) -> Self {
        match Self::is_mapped(bytes) {
            true => Self::map(bytes),
            false => Self(NonNull::from(Box::leak(Box::new_uninit_slice(bytes / ALIGN)))),
        }
    }

    fn is_mapped(bytes: usize) -> bool {
        bytes >= MAPPED_LEN_MIN && !cfg!(miri)
    }

    fn map(bytes: usize) -> Self {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: this makes a new mapping and touches no existing one.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let start = NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED);
        let Some(start) = start else {
            handle_alloc_error(Layout::array::<u64>(bytes / ALIGN).unwrap_or(Layout::new::<u64>()))
        };
        // Huge pages need far fewer page table entries. It also works without them.
        // SAFETY: the range is the mapping.
        unsafe { libc::madvise(start.as_ptr(), bytes, libc::MADV_HUGEPAGE) };
        Self(NonNull::slice_from_raw_parts(start.cast(), bytes / ALIGN))
    }

    fn start(&self) -> NonNull<u8> {
        self.0.cast()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let bytes = self.0.len() * ALIGN;
        if Self::is_mapped(bytes) {
            // SAFETY: `map` made it with this many bytes, and all pointers into it are gone with the arena.
            unsafe { libc::munmap(self.0.as_ptr().cast(), bytes) };
            return;
        }
        // SAFETY: it was leaked by `new`, and all pointers into it are gone with the arena.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The chunks. They belong to the memtable, which readers share.
#[derive(Default)]
pub(super) struct Arena {
    chunks: Mutex<Vec<Chunk>>,
    bytes: AtomicUsize,
}

/// The writer's place in the newest chunk.
pub(super) struct Cursor {
    at: NonNull<u8>,
    left: usize,
}

impl Cursor {
    pub(super) fn new() -> Self {
        Self { at: NonNull::<u64>::dangling().cast(), left: 0 }
    }
}

impl Arena {
    /// Bytes taken from the system.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Allocates a piece of `len` bytes, which lives as long as the arena.
    #[inline]
    pub(super) fn allocate(&self, cursor: &mut Cursor, len: usize) -> NonNull<u8> {
        let len = len.next_multiple_of(ALIGN);
        if len <= cursor.left {
            let piece = cursor.at;
            // SAFETY: `left` bytes follow `at` in the same chunk, and `len` is no more than that.
            cursor.at = unsafe { piece.add(len) };
            cursor.left -= len;
            return piece;
        }
        self.allocate_chunk(cursor, len)
    }

    #[cold]
    fn allocate_chunk(&self, cursor: &mut Cursor, len: usize) -> NonNull<u8> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_large = len > CHUNK_LEN / 4;
        let chunk_len = match is_large {
            true => len,
            false if chunks.is_empty() && len <= FIRST_CHUNK_LEN => FIRST_CHUNK_LEN,
            false if chunks.len() <= 1 && len <= SECOND_CHUNK_LEN => SECOND_CHUNK_LEN,
            false => CHUNK_LEN,
        };
        let chunk = Chunk::new(chunk_len);
        let start = chunk.start();
        self.bytes.fetch_add(chunk_len, Ordering::Relaxed);
        chunks.push(chunk);
        if !is_large {
            // SAFETY: the chunk has `chunk_len` bytes, of which `len` are given away.
            cursor.at = unsafe { start.add(len) };
            cursor.left = chunk_len - len;
        }
        start
    }
}
