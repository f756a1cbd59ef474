//! The list of native functions, each with the C type that Lua casts its address to.
//!
//! The C type is derived from the Rust type, so the two sides cannot disagree.

use std::ffi::c_void;

use super::{Context, cache, databases, exchange, many, pages, read, scan, script, write};

/// What `ffi.cast` needs to make an address callable.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) c_type: String,
    pub(crate) address: *mut c_void,
}

/// A Rust type with the C type that LuaJIT's FFI has for it.
trait Parameter {
    const C_TYPE: &'static str;
}

impl Parameter for i32 {
    const C_TYPE: &'static str = "int32_t";
}
impl Parameter for u32 {
    const C_TYPE: &'static str = "uint32_t";
}
impl Parameter for i64 {
    const C_TYPE: &'static str = "int64_t";
}
impl Parameter for f64 {
    const C_TYPE: &'static str = "double";
}
impl Parameter for *const u8 {
    const C_TYPE: &'static str = "const char *";
}

/// A function that takes the context first and answers a code.
trait Native {
    fn c_type() -> String;
    fn address(self) -> *mut c_void;
}

macro_rules! native {
    ($($parameter:ident)*) => {
        impl<$($parameter: Parameter),*> Native
            for unsafe extern "C" fn(*mut Context $(, $parameter)*) -> i32
        {
            fn c_type() -> String {
                let parameters: &[&str] = &["void *" $(, $parameter::C_TYPE)*];
                format!("int32_t (*)({})", parameters.join(", "))
            }
            fn address(self) -> *mut c_void {
                self as *mut c_void
            }
        }
    };
}

native!();
native!(A);
native!(A B);
native!(A B C);
native!(A B C D);
native!(A B C D E);
native!(A B C D E F);
native!(A B C D E F G);
native!(A B C D E F G H);

fn function<F: Native>(name: &'static str, f: F) -> Function {
    Function { name, c_type: F::c_type(), address: f.address() }
}

macro_rules! table {
    ($($module:ident :: $name:ident ( $($parameter:ident),* );)*) => {
        vec![$(function(
            stringify!($name),
            $module::$name as unsafe extern "C" fn(*mut Context $(, table!(@ $parameter))*) -> i32,
        )),*]
    };
    (@ int) => { i32 };
    (@ len) => { u32 };
    (@ long) => { i64 };
    (@ double) => { f64 };
    (@ bytes) => { *const u8 };
}

/// Every native function. The casts check the parameters against the definitions.
pub(crate) fn functions() -> Vec<Function> {
    table! {
        databases::open(bytes, len);
        databases::writable();
        databases::now();
        databases::number_text(double);
        databases::log(int, bytes, len);
        read::get(int, bytes, len);
        read::exists(int, bytes, len);
        read::record(int, bytes, len);
        read::statistics(int);
        many::many_begin();
        many::many_add(bytes, len);
        many::many_run(int);
        many::many_next();
        many::all_run(int, bytes, len);
        pages::page_load(int, double, int, int);
        pages::page_next();
        scan::scan_ahead(int, bytes, len, bytes, len, int);
        write::put(int, bytes, len, bytes, len);
        write::put_with(int, bytes, len, bytes, len, double, double, int);
        write::swap(int, bytes, len, bytes, int, bytes, int);
        write::delete(int, bytes, len);
        write::increment(int, bytes, len, long);
        write::increment_float(int, bytes, len, double);
        write::append(int, bytes, len, bytes, len);
        write::expire(int, bytes, len, double);
        write::clear(int);
        cache::cache_get(int, bytes, len);
        cache::cache_exists(int, bytes, len);
        cache::cache_record(int, bytes, len);
        cache::cache_put(int, bytes, len, bytes, len);
        cache::cache_put_with(int, bytes, len, bytes, len, double, double, int);
        cache::cache_swap(int, bytes, len, bytes, int, bytes, int);
        cache::cache_delete(int, bytes, len);
        cache::cache_increment(int, bytes, len, long);
        cache::cache_increment_float(int, bytes, len, double);
        cache::cache_append(int, bytes, len, bytes, len);
        cache::cache_expire(int, bytes, len, double);
        cache::cache_clear(int);
        exchange::request_field(int);
        exchange::request_pairs(int);
        exchange::request_pair(int);
        exchange::response_header(bytes, len, bytes, len, int);
        exchange::response_header_get(bytes, len);
        exchange::response_write(bytes, len);
        exchange::respond(int, int, bytes, len);
        script::begin_write();
        script::begin_read();
        script::commit();
        script::rollback();
    }
}
