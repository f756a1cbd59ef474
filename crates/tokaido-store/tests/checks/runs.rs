//! Checks on the file of a run that must hold for arbitrary bytes.

use std::{fs, ops::Bound};

use crate::Direction;

use super::{
    Cursor, Run, RunEntry, RunList, Runs,
    format::{FOOTER_LEN, Footer, key_hash},
};

/// Takes any bytes as the list of runs, and as a run with a correct footer: only one with a correct checksum is trusted.
pub fn check_run(bytes: &[u8]) {
    if let Some(list) = RunList::decode(bytes) {
        assert_eq!(list.encode(), bytes);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let Some((body, footer)) = bytes.split_last_chunk::<FOOTER_LEN>() else { return };
    let mut bytes = bytes.to_vec();
    // A fuzzer hardly finds a checksum.
    let sum = crc32c::crc32c(&footer[..FOOTER_LEN - 4]);
    bytes[body.len() + FOOTER_LEN - 4..].copy_from_slice(&sum.to_le_bytes());
    let Some((footer, sum)) = bytes.last_chunk().and_then(Footer::decode) else { return };
    fs::write(&path, &bytes).expect("the file of a run");
    let entry =
        RunEntry { number: footer.number, bytes: bytes.len() as u64, entries: footer.entries, sum };
    // An index outside the file is refused at once.
    let Ok(run) = Run::open(&path, footer.store, entry) else { return };
    let is_sound = run.verify().is_ok();
    let runs = Runs::new(vec![std::sync::Arc::new(run)]);
    // None of these may panic, or loop forever.
    for key in [&b""[..], b"key", b"\xff\xff"] {
        let found = runs.find_hashed(key_hash(2, key), 2, key);
        assert!(found.is_ok() || !is_sound, "a sound run cannot be searched");
        for direction in [Direction::Forward, Direction::Backward] {
            for from in [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded] {
                let Ok(mut cursors) = runs.seek(2, from, direction) else {
                    assert!(!is_sound, "a sound run cannot be walked over");
                    continue;
                };
                if let Some(cursor) = cursors.first_mut() {
                    walk(cursor, direction, bytes.len());
                }
            }
        }
    }
    assert!(runs.last_tree().is_ok() || !is_sound, "a sound run has a last tree");
}

fn walk(cursor: &mut Cursor<'_>, direction: Direction, steps_max: usize) {
    for _ in 0..steps_max {
        if cursor.key().is_none() || cursor.step_in(2, direction).is_err() {
            return;
        }
    }
}
