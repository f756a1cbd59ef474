//! Any bytes as the requests of a memcached client, in the text protocol.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/memcached.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_text(data));
