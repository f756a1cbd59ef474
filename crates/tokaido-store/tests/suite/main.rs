//! The suites that every engine must pass.

mod concurrency;
mod disk;
mod limits;
mod model;
mod power_loss;
mod support;
