//! mruby, and the C functions through which `tokaido-ruby` uses it: `c/tokaido.h` says what each does.
//!
//! What mruby raises is a jump over frames of C. Each of these functions that may raise does so within a protected
//! call of its own, so that no jump crosses a frame of Rust.

#![allow(missing_docs)]

mod bindings;

pub use bindings::*;
