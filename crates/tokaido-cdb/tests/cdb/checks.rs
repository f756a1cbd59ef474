//! What must hold for arbitrary bytes read as a cdb file. Used by a fuzzer, and by the tests with
//! damaged files.

use tokaido_cdb::{Damaged, View};

/// How many records' keys are looked up; a hostile file may make each look-up slow.
const LOOKED_UP_MAX: usize = 64;

/// Reads the file in every way. Must end, not panic, and return only bytes of the file.
pub(crate) fn check_bytes(bytes: &[u8]) -> Result<(), Damaged> {
    let inside = |slice: &[u8]| {
        let file = bytes.as_ptr_range();
        let slice = slice.as_ptr_range();
        assert!(file.start <= slice.start && slice.end <= file.end, "bytes of another place");
    };
    let view = View::new(bytes)?;
    let mut count = 0;
    let mut keys: Vec<&[u8]> = vec![b"", b"a", b"key", b"\0\0\0\0"];
    let mut records = view.iter();
    for record in records.by_ref() {
        count += 1;
        assert!(count <= bytes.len() / 8, "more records than fit");
        let Ok(record) = record else { break };
        inside(record.key);
        inside(record.value);
        if keys.len() < LOOKED_UP_MAX {
            keys.push(record.key);
        }
    }
    assert_eq!(records.next(), None, "something after the end or an error");
    for key in keys {
        let mut values = view.get_all(key);
        let first = values.clone().next().transpose();
        assert_eq!(view.get(key), first);
        let mut found = 0;
        for value in values.by_ref() {
            found += 1;
            assert!(found <= bytes.len() / 8, "more values than slots");
            match value {
                Ok(value) => inside(value),
                Err(_) => break,
            }
        }
        assert_eq!(values.next(), None, "something after the end or an error");
    }
    view.statistics().map(drop)
}
