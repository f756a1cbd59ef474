//! Any bytes as the text formats of the `cdb` tool.

#![no_main]

#[path = "../../crates/tokaido-store/tests/cdb/checks.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_text(data));
