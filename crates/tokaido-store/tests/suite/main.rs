//! The suites that every engine must pass.

mod collections;
mod concurrency;
mod dropping;
mod limits;
mod model;
mod observers;
mod options;
mod reader;
mod support;
