//! The checks of the fuzz targets on their corpus and on mutations of it, without a fuzzer.

use crate::{checks, text_checks};

#[path = "../../../tokaido-store/tests/checks/mutate.rs"]
mod mutate;

#[test]
fn any_bytes_as_a_file_do_no_harm() {
    mutate::smoke("cdb", 10_000, |bytes| drop(checks::check_bytes(bytes)));
}

#[test]
fn any_bytes_as_text_do_no_harm() {
    mutate::smoke("cdb_text", 20_000, text_checks::check_text);
}
