//! Any bytes as the text formats of the `cdb` tool.

#![no_main]

#[path = "../../crates/tokaido/src/formats/cdb_text/mod.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod cdb_text;
#[path = "../../crates/tokaido-cdb/tests/cdb/text_checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_text(data));
