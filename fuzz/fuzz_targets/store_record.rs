//! Any bytes as a stored record.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokaido_store::fuzzing::check_record(data));
