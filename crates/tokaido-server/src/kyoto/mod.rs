//! Kyoto Tycoon: its procedures over HTTP, its REST interface and its binary protocol. The manual
//! is `docs/kyoto-tycoon.md`.
//!
//! The codec has the table of procedures, `PROCEDURES` of `tokaido_wire::kyoto`. From it follow the
//! rights that a procedure needs, and the page of documentation. `records`, `bulk`, `matching` and
//! `cursors` are what procedures do to data; the entry points are `http/kyoto.rs` and `binary`.

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
