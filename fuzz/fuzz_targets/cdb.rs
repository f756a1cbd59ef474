//! Any bytes as a cdb file.

#![no_main]

#[path = "../../crates/tokaido-store/tests/cdb/checks.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(checks::check_bytes(data)));
