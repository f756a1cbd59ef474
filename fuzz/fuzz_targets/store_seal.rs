//! Any bytes as a seal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokaido_store::fuzzing::check_seal(data));
