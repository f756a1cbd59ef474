//! Any bytes as a cdb file.

#![no_main]

#[path = "../../crates/tokaido-cdb/tests/cdb/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(checks::check_bytes(data)));
