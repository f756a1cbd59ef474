//! Peers that are C libraries: found at run time, and called in this process.

mod hiredis;
mod kyoto;
pub(super) mod kyoto_patterns;
mod libmemcached;
mod lmdb;
mod qdbm;
mod rocksdb;
mod sqlite;
mod tinycdb;
mod tokyo;

use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{dictionary::Dictionary, worker::Worker};

/// A library that was found, and its kinds of files.
pub(super) struct Found {
    /// The name of its file.
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) kinds: Vec<Box<dyn Dictionary>>,
}

/// Looks for a library.
pub(super) type Finder = fn() -> Option<Found>;

pub(super) const TINYCDB: Finder = tinycdb::find;
pub(super) const QDBM: Finder = qdbm::find;
pub(super) const TOKYO_CABINET: Finder = tokyo::find;
pub(super) const KYOTO_CABINET: Finder = kyoto::find;
pub(super) const LMDB: Finder = lmdb::find;
pub(super) const ROCKSDB: Finder = rocksdb::find;
pub(super) const SQLITE: Finder = sqlite::find;

/// A client library that was found, and can connect to a port of this machine.
pub(super) struct FoundClient {
    /// The name of its file.
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) connect: Connect,
}

/// Connects to a port.
type Connect = Box<dyn Fn(u16) -> Result<Box<dyn Worker>, String>>;

/// Looks for a client library.
pub(super) type ClientFinder = fn() -> Option<FoundClient>;

pub(super) const HIREDIS: ClientFinder = hiredis::find;
pub(super) const LIBMEMCACHED: ClientFinder = libmemcached::find;

/// Functions of a library, and the library itself, which must stay loaded as long as they do.
macro_rules! functions {
    ($name:ident { $($function:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        #[allow(non_snake_case, reason = "functions have the names that the library gives them")]
        struct $name {
            $($function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            #[allow(dead_code, reason = "it keeps the functions loaded, and only some libraries have variables")]
            library: libloading::Library,
        }

        impl $name {
            /// Loads the first library of these names that has all functions.
            fn load(names: &[&str]) -> Option<Self> {
                names.iter().find_map(|name| {
                    // SAFETY: a library of this name runs nothing but its own constructors, as for any program that links to
                    // it; the functions have the types that its header declares.
                    unsafe {
                        let library = libloading::Library::new(*name).ok()?;
                        Some(Self {
                            $($function: *library
                                .get(concat!(stringify!($function), "\0").as_bytes())
                                .ok()?,)*
                            library,
                        })
                    }
                })
            }
        }
    };
}
use functions;

/// The text that a variable of a library points to.
///
/// # Safety
/// The variable has the type `const char *`.
unsafe fn text_variable(library: &libloading::Library, name: &CStr) -> Option<String> {
    // SAFETY: the caller guarantees the type.
    unsafe {
        let variable = library.get::<*const *const c_char>(name.to_bytes_with_nul()).ok()?;
        let text = **variable;
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// A path as a C string.
fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())
}

/// Turns a library's failure into an error.
fn check(is_done: bool, what: &str) -> Result<(), String> {
    if is_done { Ok(()) } else { Err(format!("{what} failed")) }
}

/// The bytes at an address.
///
/// # Safety
/// There are `len` bytes at `start`, which stay valid and unchanged as long as the result is used.
unsafe fn bytes<'a>(start: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: the caller guarantees it.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

/// A length as an `int`.
fn int(bytes: &[u8]) -> i32 {
    // The records of a list are far shorter.
    i32::try_from(bytes.len()).unwrap_or(i32::MAX)
}
