//! mruby, and the C functions through which `tokaido-ruby` uses it: `c/tokaido.h` describes each of them.
//!
//! An exception in mruby is a jump over C frames. Each of these functions that may raise does so
//! within its own protected call, so that no jump crosses a Rust frame.

#![allow(missing_docs)]

mod bindings;

pub use bindings::*;
