//! Ruby as a language for procedures, on mruby.
//!
//! [`Ruby`] is the language, for [`tokaido_script::start`]. A virtual machine belongs to one
//! thread, lives between calls, and is replaced when it can no longer be trusted.

#![deny(missing_docs)]

mod call;
mod collections;
mod context;
mod database;
mod exchange;
mod items;
mod load;
mod machine;
mod mod_mruby;
mod operation;
mod pattern;
mod regexp;
mod report;
mod scan;
mod script;
mod setup;
mod state;
mod vm;

pub use script::{LineOutcome, ShownValue};
pub use state::Usage;
pub use vm::{Ruby, RubyVm};
