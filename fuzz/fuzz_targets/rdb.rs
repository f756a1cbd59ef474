//! Any bytes as a value in Redis's format.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/rdb.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check(data));
