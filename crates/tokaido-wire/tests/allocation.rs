//! What the codec allocates: nothing for a request once it is warm, and never memory for what a
//! peer has only announced.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use proptest::prelude::*;
use tokaido_wire::resp::{
    Decoded, Limits, ReplyDecoder, ReplyWriter, RequestDecoder, Version, encode_command,
};

/// The system's allocator, which also counts the bytes that this thread requests.
struct Counting;

thread_local! {
    static ALLOCATED_BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    ALLOCATED_BYTES.with(|allocated| allocated.set(allocated.get() + bytes));
}

// SAFETY: every call goes to the system's allocator unchanged. The counter is a `Cell` that is
// initialised at compile time and needs no destructor, so counting neither allocates nor fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        count(new_len);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that `work` allocates, whether or not it frees them.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATED_BYTES.with(Cell::get);
    work();
    ALLOCATED_BYTES.with(Cell::get) - before
}

fn decode_requests(decoder: &mut RequestDecoder, mut input: &[u8]) {
    while let Ok(Decoded::Complete { consumed }) = decoder.decode(input) {
        input = &input[consumed..];
    }
}

fn decode_replies(decoder: &mut ReplyDecoder, mut input: &[u8]) {
    while let Ok(Some((_, len))) = decoder.decode(input) {
        input = &input[len..];
    }
}

#[test]
fn a_warm_decoder_allocates_nothing() {
    let mut pipeline = Vec::new();
    for _ in 0..100 {
        encode_command(&mut pipeline, &["SET", "key", "value"]);
        encode_command(&mut pipeline, &["GET", "key"]);
        pipeline.extend_from_slice(b"ECHO \"an inline request\"\r\n");
    }
    let mut decoder = RequestDecoder::new(Limits::default());
    decode_requests(&mut decoder, &pipeline);
    assert_eq!(allocated_by(|| decode_requests(&mut decoder, &pipeline)), 0);
}

#[test]
fn a_warm_writer_allocates_nothing() {
    let mut out = Vec::with_capacity(4096);
    let allocated = allocated_by(|| {
        let mut replies = ReplyWriter::new(&mut out, Version::Resp3);
        replies.map(1);
        replies.bulk(b"a value of some length");
        replies.integer(i64::MIN);
        replies.double(0.1);
        replies.error("ERR none");
        replies.verbatim("txt", "text");
    });
    assert_eq!(allocated, 0);
}

#[test]
fn what_is_only_announced_is_not_allocated() {
    for announced in ["*1048576\r\n", "*1\r\n$67108864\r\n", "*2\r\n$1\r\nx\r\n$67108864\r\nx"] {
        let mut decoder = RequestDecoder::new(Limits::default());
        let allocated = allocated_by(|| decode_requests(&mut decoder, announced.as_bytes()));
        assert!(allocated <= 1024, "{announced:?} takes {allocated} bytes");
    }
    for announced in ["*4000000\r\n", "%2000000\r\n", "$500000000\r\n", "!500000000\r\nx"] {
        let mut decoder = ReplyDecoder::new();
        let allocated = allocated_by(|| decode_replies(&mut decoder, announced.as_bytes()));
        assert!(allocated <= 4096, "{announced:?} takes {allocated} bytes");
    }
}

proptest! {
    /// An argument takes eight bytes besides the six that announced it, and vectors grow by
    /// doubling.
    #[test]
    fn requests_take_memory_in_proportion(data in "([*$]?-?[0-9]{0,7}\r?\n?[ -~]?){0,60}") {
        let mut decoder = RequestDecoder::new(Limits::default());
        let allocated = allocated_by(|| decode_requests(&mut decoder, data.as_bytes()));
        prop_assert!(allocated <= 8 * data.len() + 1024, "{} bytes", allocated);
    }

    /// An element may be four bytes on the wire (`*0` and its line end) and a `Reply` in memory.
    #[test]
    fn replies_take_memory_in_proportion(data in "([*$%~>|+:][0-9]{0,7}\r\n){0,60}") {
        let mut decoder = ReplyDecoder::new();
        let allocated = allocated_by(|| decode_replies(&mut decoder, data.as_bytes()));
        let room_per_aggregate = 16 * size_of::<tokaido_wire::resp::Reply>();
        prop_assert!(allocated <= room_per_aggregate * (data.len() / 4) + 4096, "{} bytes", allocated);
    }
}
