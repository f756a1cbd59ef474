//! Any bytes as a segment of the log: operations, frames, recovery.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokaido_store::fuzzing::check_log(data));
