//! Checks on the store's files that must hold for arbitrary bytes. Each panics if they do not.
//!
//! They are for tests and for the fuzz targets in `fuzz/`, and otherwise not part of the crate.

use crate::record::{self, Header};

pub use crate::tree::fuzzing::{check_base, check_log, check_run, check_store, valid_sums};

/// Takes arbitrary bytes as a stored record.
pub fn check_record(stored: &[u8]) {
    let Ok(found) = record::decode(stored) else { return };
    assert!(found.value.len() < stored.len(), "a value and no header");
    let value = found.value;
    let header = Header::new(&found.with_same_value(value), found.version);
    assert!(header.as_bytes().len() + value.len() <= stored.len(), "it has become longer");
    let again = [header.as_bytes(), value].concat();
    assert_eq!(record::decode(&again).expect("it was just encoded"), found);
}

#[cfg(test)]
#[path = "mutate.rs"]
mod mutate;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_as_a_record_do_no_harm() {
        mutate::smoke("store_record", 20_000, check_record);
    }

    #[test]
    fn any_bytes_as_a_log_do_no_harm() {
        mutate::smoke("store_log", 20_000, check_log);
    }

    #[test]
    fn any_bytes_in_the_base_do_no_harm() {
        mutate::smoke("store_base", 20_000, check_base);
    }

    #[test]
    fn any_bytes_as_a_run_do_no_harm() {
        mutate::smoke("store_run", 5000, check_run);
    }

    /// Each input opens a store three times, so there are fewer.
    #[test]
    fn a_store_with_any_bytes_as_its_log_can_be_used_or_is_refused() {
        mutate::smoke("store_log", 1000, check_store);
    }
}
