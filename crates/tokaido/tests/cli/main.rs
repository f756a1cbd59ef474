//! Black-box tests of the built binary: what a user types, sees, and finds on disk afterwards.

mod bad_input;
mod bench;
mod call;
mod cdb;
mod demo;
mod dump;
mod exit_status;
mod help;
mod load;
mod operations;
mod records;
mod run;
mod serve;
mod shell;
mod support;
