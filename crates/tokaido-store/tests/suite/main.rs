//! The suites that every engine must pass.

mod concurrency;
mod limits;
mod model;
mod options;
mod sealed;
mod support;
