//! TinyCDB: constant databases.

use std::{
    ffi::{c_int, c_uchar, c_uint, c_void},
    fs::{self, File},
    os::fd::AsRawFd,
    path::Path,
};

use super::{Found, bytes, check, functions};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE},
};

/// `struct cdb` from the header of version 0.78.
#[repr(C)]
struct Cdb {
    fd: c_int,
    file_size: c_uint,
    data_end: c_uint,
    memory: *const c_uchar,
    value_at: c_uint,
    value_len: c_uint,
    key_at: c_uint,
    key_len: c_uint,
}

/// Room for `struct cdb_make`, which is a buffer of 4 KiB and 256 pointers.
#[repr(C, align(16))]
struct Make([u8; 16 << 10]);

functions!(Library {
    cdb_init: fn(*mut Cdb, c_int) -> c_int;
    cdb_free: fn(*mut Cdb);
    cdb_find: fn(*mut Cdb, *const c_void, c_uint) -> c_int;
    cdb_seqnext: fn(*mut c_uint, *mut Cdb) -> c_int;
    cdb_get: fn(*const Cdb, c_uint, c_uint) -> *const c_void;
    cdb_make_start: fn(*mut Make, c_int) -> c_int;
    cdb_make_add: fn(*mut Make, *const c_void, c_uint, *const c_void, c_uint) -> c_int;
    cdb_make_finish: fn(*mut Make) -> c_int;
});

/// The offset of the first record: after the table of tables.
const FIRST: c_uint = 2048;

pub(super) fn find() -> Option<Found> {
    let library = Library::load(&["libcdb.so.1"])?;
    // It does not report its version.
    Some(Found {
        name: "libcdb.so.1",
        version: "unknown".to_owned(),
        kinds: vec![Box::new(library)],
    })
}

impl Library {
    fn open(&self, file: &File) -> Result<Opened<'_>, String> {
        // SAFETY: a zeroed structure is what `cdb_init` gets in C.
        let mut cdb: Cdb = unsafe { std::mem::zeroed() };
        // SAFETY: `file` is open, and the structure is as in the header.
        let code = unsafe { (self.cdb_init)(&raw mut cdb, file.as_raw_fd()) };
        check(code == 0, "cdb_init")?;
        Ok(Opened { library: self, cdb })
    }
}

struct Opened<'a> {
    library: &'a Library,
    cdb: Cdb,
}

impl Opened<'_> {
    fn bytes(&self, len: c_uint, at: c_uint) -> Result<&[u8], String> {
        // SAFETY: the file is mapped until it is closed, and `cdb_get` checks the position.
        unsafe {
            let start = (self.library.cdb_get)(&raw const self.cdb, len, at);
            check(!start.is_null(), "cdb_get")?;
            Ok(bytes(start, len as usize))
        }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is not used any more.
        unsafe { (self.library.cdb_free)(&raw mut self.cdb) };
    }
}

impl Dictionary for Library {
    fn settings(&self) -> &'static str {
        "constant"
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let temporary = path.with_extension("tmp");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&temporary).map_err(|error| error.to_string())?;
        let mut make = Box::new(Make([0; 16 << 10]));
        // SAFETY: the file is open, there is more room than the structure needs, and lengths are those of the slices.
        unsafe {
            check((self.cdb_make_start)(&raw mut *make, file.as_raw_fd()) == 0, "cdb_make_start")?;
            for (key, value) in rows {
                let code = (self.cdb_make_add)(
                    &raw mut *make,
                    key.as_ptr().cast(),
                    key.len() as c_uint,
                    value.as_ptr().cast(),
                    value.len() as c_uint,
                );
                check(code == 0, "cdb_make_add")?;
            }
            check((self.cdb_make_finish)(&raw mut *make) == 0, "cdb_make_finish")?;
        }
        fs::rename(temporary, path).map_err(|error| error.to_string())
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut opened = self.open(&file)?;
        let mut place = FIRST;
        // SAFETY: the file is open.
        while unsafe { (self.cdb_seqnext)(&raw mut place, &raw mut opened.cdb) } > 0 {
            let Cdb { key_len, key_at, value_len, value_at, .. } = opened.cdb;
            visit(opened.bytes(key_len, key_at)?, opened.bytes(value_len, value_at)?);
        }
        Ok(())
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut opened = self.open(&file)?;
        // SAFETY: the file is open, and the length is that of the slice.
        let found = unsafe {
            (self.cdb_find)(&raw mut opened.cdb, key.as_ptr().cast(), key.len() as c_uint)
        };
        check(found > 0, NOT_THERE)?;
        let Cdb { value_len, value_at, .. } = opened.cdb;
        visit(opened.bytes(value_len, value_at)?);
        Ok(())
    }
}
