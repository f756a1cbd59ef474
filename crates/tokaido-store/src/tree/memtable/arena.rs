//! Memory that is handed out piece by piece and freed all at once.

use std::{mem::MaybeUninit, ptr::NonNull};

use super::sync::{AtomicUsize, Mutex, Ordering, PoisonError};

/// Bytes of an ordinary chunk; a larger piece gets a chunk of its own.
const CHUNK_LEN: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };

/// Bytes of the first chunk, which has room for a memtable's head and little more: most stores that
/// are opened to be read are not written to.
const FIRST_CHUNK_LEN: usize = 1 << 9;

/// Pieces are aligned to this many bytes, and their lengths rounded up to it.
pub(super) const ALIGN: usize = align_of::<u64>();

/// A chunk. It owns its memory as a box does, which could not be moved while others point into it.
struct Chunk(NonNull<[MaybeUninit<u64>]>);

impl Chunk {
    fn new(bytes: usize) -> Self {
        Self(NonNull::from(Box::leak(Box::new_uninit_slice(bytes / ALIGN))))
    }

    fn start(&self) -> NonNull<u8> {
        self.0.cast()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was leaked by `new`, and whoever points into it is gone with the arena.
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

    /// A piece of `len` bytes, which live as long as the arena.
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
