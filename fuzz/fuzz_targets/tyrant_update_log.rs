//! Any bytes as an update log of Tokyo Tyrant.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/tyrant.rs"]
#[allow(dead_code, reason = "the other targets use the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_update_log(data));
