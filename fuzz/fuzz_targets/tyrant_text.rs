//! Any bytes as the requests of a Tokyo Tyrant client, in lines of memcached's.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/tyrant.rs"]
#[allow(dead_code, reason = "the other targets use the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_text(data));
