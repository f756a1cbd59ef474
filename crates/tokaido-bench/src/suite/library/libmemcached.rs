//! libmemcached, the C client of memcached.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::Arc,
};

use super::{FoundClient, bytes, check, functions};
use crate::suite::worker::{Spent, VALUE, Work, Worker, key};

type Client = *mut c_void;

functions!(Library {
    memcached_lib_version: fn() -> *const c_char;
    memcached_create: fn(Client) -> Client;
    memcached_free: fn(Client);
    memcached_server_add: fn(Client, *const c_char, u16) -> c_int;
    memcached_behavior_set: fn(Client, c_int, u64) -> c_int;
    memcached_set: fn(Client, *const c_char, usize, *const c_char, usize, i64, u32) -> c_int;
    memcached_get: fn(Client, *const c_char, usize, *mut usize, *mut u32, *mut c_int) -> *mut c_void;
});

// From memcached.h.
const SUCCESS: c_int = 0;
const TCP_NODELAY: c_int = 1;

pub(super) fn find() -> Option<FoundClient> {
    let library = Arc::new(Library::load(&["libmemcached.so.11"])?);
    // SAFETY: it returns a text.
    let version = unsafe { CStr::from_ptr((library.memcached_lib_version)()) };
    let version = version.to_string_lossy().into_owned();
    let connect = move |port| Connection::open(&library, port).map(|it| Box::new(it) as Box<_>);
    Some(FoundClient { name: "libmemcached.so.11", version, connect: Box::new(connect) })
}

struct Connection {
    library: Arc<Library>,
    client: Client,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the client is freed once.
        unsafe { (self.library.memcached_free)(self.client) };
    }
}

impl Connection {
    fn open(library: &Arc<Library>, port: u16) -> Result<Self, String> {
        // SAFETY: the client is created in its own memory, and gets a zero-terminated address.
        unsafe {
            let client = (library.memcached_create)(std::ptr::null_mut());
            check(!client.is_null(), "memcached_create")?;
            let connection = Self { library: Arc::clone(library), client };
            let code = (library.memcached_behavior_set)(client, TCP_NODELAY, 1);
            check(code == SUCCESS, "memcached_behavior_set")?;
            let code = (library.memcached_server_add)(client, c"127.0.0.1".as_ptr(), port);
            check(code == SUCCESS, "memcached_server_add")?;
            Ok(connection)
        }
    }

    fn set(&self, key: &[u8]) -> Result<(), String> {
        // SAFETY: the lengths are those of the slices.
        let code = unsafe {
            (self.library.memcached_set)(
                self.client,
                key.as_ptr().cast(),
                key.len(),
                VALUE.as_ptr().cast(),
                VALUE.len(),
                0,
                0,
            )
        };
        check(code == SUCCESS, "memcached_set")
    }

    fn get(&self, key: &[u8]) -> Result<(), String> {
        let (mut len, mut flags, mut code) = (0, 0, 0);
        // SAFETY: lengths are those of the slices; a value has the length returned with it, and was allocated by malloc.
        unsafe {
            let value = (self.library.memcached_get)(
                self.client,
                key.as_ptr().cast(),
                key.len(),
                &raw mut len,
                &raw mut flags,
                &raw mut code,
            );
            check(!value.is_null(), "memcached_get")?;
            let is_same = bytes(value, len) == VALUE;
            libc::free(value);
            check(is_same, "memcached_get")
        }
    }
}

impl Worker for Connection {
    fn turn(&mut self, work: Work, count: u64) -> Result<Spent, String> {
        Spent::of(|| {
            (0..count).try_for_each(|number| match work {
                Work::Set => self.set(&key(number)),
                Work::Get => self.get(&key(number)),
            })
        })
    }
}
