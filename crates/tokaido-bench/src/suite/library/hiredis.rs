//! hiredis, the C client of Redis.

use std::{
    ffi::{c_char, c_int, c_longlong, c_void},
    sync::Arc,
};

use super::{FoundClient, bytes, check, functions};
use crate::suite::worker::{Spent, VALUE, Work, Worker, key};

type Context = *mut c_void;

functions!(Library {
    redisConnect: fn(*const c_char, c_int) -> Context;
    redisFree: fn(Context);
    redisCommandArgv: fn(Context, c_int, *const *const c_char, *const usize) -> *mut Reply;
    freeReplyObject: fn(*mut Reply);
});

/// The start of `redisReply` in this version.
#[repr(C)]
struct Reply {
    kind: c_int,
    integer: c_longlong,
    len: usize,
    text: *const c_char,
}

/// The start of `redisContext`.
#[repr(C)]
struct State {
    error: c_int,
}

// From hiredis.h and read.h.
const STRING: c_int = 1;
const STATUS: c_int = 5;

pub(super) fn find() -> Option<FoundClient> {
    let library = Arc::new(Library::load(&["libhiredis.so.0.14"])?);
    let connect = move |port| Connection::open(&library, port).map(|it| Box::new(it) as Box<_>);
    let connect = Box::new(connect);
    // The library reports no version beyond its name.
    Some(FoundClient { name: "libhiredis.so.0.14", version: "0.14".to_owned(), connect })
}

struct Connection {
    library: Arc<Library>,
    context: Context,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the connection is freed once; a null pointer is allowed.
        unsafe { (self.library.redisFree)(self.context) };
    }
}

impl Connection {
    fn open(library: &Arc<Library>, port: u16) -> Result<Self, String> {
        // SAFETY: the address is zero-terminated.
        let context = unsafe { (library.redisConnect)(c"127.0.0.1".as_ptr(), port.into()) };
        let connection = Self { library: Arc::clone(library), context };
        // SAFETY: a pointer that is not null is a connection, which begins with its error number.
        let is_open = !context.is_null() && unsafe { (*context.cast::<State>()).error } == 0;
        check(is_open, "redisConnect")?;
        Ok(connection)
    }

    /// Checks that a command gets the expected answer.
    fn ask(&self, words: &[&[u8]], kind: c_int, expected: &[u8]) -> Result<(), String> {
        let starts: [_; 3] = std::array::from_fn(|at| {
            words.get(at).map_or(std::ptr::null(), |word| word.as_ptr().cast())
        });
        let lens: [_; 3] = std::array::from_fn(|at| words.get(at).map_or(0, |word| word.len()));
        // SAFETY: there are `words.len()` words, at most three, with these lengths; a reply is ours
        // until it is freed, and a string in it has the length that it states.
        unsafe {
            let reply = (self.library.redisCommandArgv)(
                self.context,
                words.len() as c_int,
                starts.as_ptr(),
                lens.as_ptr(),
            );
            check(!reply.is_null(), "redisCommandArgv")?;
            let is_expected = (*reply).kind == kind
                && !(*reply).text.is_null()
                && bytes((*reply).text.cast(), (*reply).len) == expected;
            (self.library.freeReplyObject)(reply);
            check(is_expected, "a command")
        }
    }
}

impl Worker for Connection {
    fn turn(&mut self, work: Work, count: u64) -> Result<Spent, String> {
        Spent::of(|| {
            (0..count).try_for_each(|number| match work {
                Work::Set => self.ask(&[b"SET", &key(number), VALUE], STATUS, b"OK"),
                Work::Get => self.ask(&[b"GET", &key(number)], STRING, VALUE),
            })
        })
    }
}
