//! Any bytes as the requests of a Kyoto Tycoon client, in the binary protocol.

#![no_main]

#[path = "../../crates/tokaido-wire/tests/checks/kyoto.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_binary(data));
