//! The time of a Lua function, by a method that does not mislead.
//!
//! [`Subject`] is the interface: the caller supplies a virtual machine, so this crate needs none. [`measure`] warms
//! up, determines how many calls a sample takes, and takes samples with the JIT on and off in turn. [`Traces`] is
//! what the compiler did meanwhile, and [`Report`] presents everything to a person or a program.

mod method;
mod report;
mod sample;
mod subject;
mod traces;
mod warning;

pub use method::{Measurement, Naive, Plan, Side, WarmUp, measure};
pub use report::Report;
pub use subject::{Sample, Subject, TraceEvent, TraceOutcome};
pub use traces::{Problem, Traces};
pub use warning::Warning;
