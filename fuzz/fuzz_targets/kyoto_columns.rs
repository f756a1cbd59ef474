//! Any bytes as the body of a Kyoto Tycoon call.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/kyoto.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_columns(data));
