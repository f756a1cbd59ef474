//! Kyoto Tycoon: its procedures over HTTP, its REST interface and its binary protocol.
//! `docs/kyoto-tycoon.md` is its manual.
//!
//! The table of procedures is the codec's, `PROCEDURES` of `tokaido_wire::kyoto`; what a procedure may do
//! follows from it here, and so does the page of documentation. `records`, `bulk`, `matching` and
//! `cursors` are what procedures do to data; `http/kyoto.rs` is the door of HTTP, `binary` the other.

mod access;
mod binary;
mod bulk;
mod cursors;
mod databases;
mod documentation;
mod expiry;
mod figures;
mod inputs;
mod matching;
mod number;
mod records;
mod refusal;
mod report;
pub(crate) mod rest;
mod scripts;
mod signals;
mod state;
mod work;

pub(crate) use access::allow_call;
pub(crate) use binary::{Binary, refusal};
pub(crate) use cursors::{Cursor, Cursors};
pub(crate) use databases::named;
pub use documentation::documentation;
pub(crate) use figures::Figure;
pub(crate) use inputs::Inputs;
pub(crate) use refusal::{Kind, Refusal};
pub(crate) use report::report;
pub(crate) use scripts::Script;
pub(crate) use state::State;
pub(crate) use work::{Work, check_synchronize, work};
