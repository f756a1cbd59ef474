//! Any bytes as entries of the base.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokaido_store::fuzzing::check_base(data));
