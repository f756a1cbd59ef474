//! Any bytes as the log of a store, which is opened and used. Its corpus is that of `store_log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokaido_store::fuzzing::check_store(data));
