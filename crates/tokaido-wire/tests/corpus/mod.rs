//! The corpus of the fuzz targets, which is part of the repository.

use std::{fs, path::Path};

/// Runs a check on each file of a fuzz target's corpus, whole and cut at every byte. There must be
/// at least `files_min` files.
pub(crate) fn check(target: &str, files_min: usize, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&directory).expect("the corpus is part of the repository") {
        let data = fs::read(entry.expect("the corpus can be listed").path()).expect("a file");
        for len in 0..=data.len() {
            check(&data[..len]);
        }
        count += 1;
    }
    assert!(count >= files_min, "{} has {count} files", directory.display());
}
