//! `c/tokaido.h` for Rust.

use std::ffi::{c_char, c_int, c_void};

pub const NIL: i32 = 0;
pub const FALSE: i32 = 1;
pub const TRUE: i32 = 2;
pub const INTEGER: i32 = 3;
pub const NUMBER: i32 = 4;
pub const BYTES: i32 = 5;
pub const ARRAY: i32 = 6;
pub const MAP: i32 = 7;
pub const DATABASE: i32 = 8;

pub const DONE: c_int = 0;
pub const RAISED: c_int = 1;
pub const UNFINISHED: c_int = 3;

/// A value, or the head of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub kind: i32,
    pub integer: i64,
    pub number: f64,
    pub bytes: *const c_char,
    pub len: usize,
}

/// The functions of Rust that C calls. None of these may unwind.
#[repr(C)]
pub struct Calls {
    pub native: unsafe extern "C" fn(
        context: *mut c_void,
        operation: i32,
        this: i64,
        arguments: *const Item,
        count: usize,
        answer: *mut *const Item,
    ) -> c_int,
    pub gather_begin: unsafe extern "C" fn(context: *mut c_void),
    pub gather: unsafe extern "C" fn(context: *mut c_void, item: *const Item) -> c_int,
}

/// A virtual machine.
#[repr(C)]
pub struct RawVm {
    _private: [u8; 0],
}

unsafe extern "C" {
    pub fn tokaido_open(calls: *const Calls, context: *mut c_void, limit: usize) -> *mut RawVm;
    pub fn tokaido_close(vm: *mut RawVm);
    pub fn tokaido_set_limit(vm: *mut RawVm, limit: usize);
    pub fn tokaido_load(
        vm: *mut RawVm,
        text: *const c_char,
        len: usize,
        path: *const c_char,
    ) -> c_int;
    pub fn tokaido_call(
        vm: *mut RawVm,
        method: *const c_char,
        arguments: *const Item,
        count: usize,
    ) -> c_int;
    pub fn tokaido_run_procedure(
        vm: *mut RawVm,
        place: usize,
        is_handler: bool,
        arguments: *const Item,
        count: usize,
    ) -> c_int;
    pub fn tokaido_answer(vm: *mut RawVm, place: usize) -> c_int;
    pub fn tokaido_type(
        vm: *mut RawVm,
        text: *const c_char,
        len: usize,
        path: *const c_char,
    ) -> c_int;
    pub fn tokaido_has_local(vm: *mut RawVm, name: *const c_char) -> bool;
    pub fn tokaido_stop(vm: *mut RawVm);
    pub fn tokaido_go_on(vm: *mut RawVm);
    pub fn tokaido_is_refused(vm: *const RawVm) -> bool;
    pub fn tokaido_is_sound(vm: *const RawVm) -> bool;
    pub fn tokaido_used(vm: *const RawVm) -> usize;
    pub fn tokaido_symbols(vm: *const RawVm) -> usize;
    pub fn tokaido_arena(vm: *const RawVm) -> c_int;
    pub fn tokaido_live(vm: *mut RawVm) -> usize;
}
