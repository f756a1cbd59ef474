//! Stores of every file format version that was ever released, opened by this one.
//!
//! `tests/fixtures/format-N/store` is a store in format N, and `contents.txt` lists its contents.
//! They were made by [`fill`](crate::support::fill) or [`fill_with_runs`] at the time, with
//!
//! ```sh
//! TOKAIDO_MAKE_FIXTURE=1 cargo test -p tokaido-store --test operations fixtures
//! ```
//!
//! which replaces the fixture of the present version. Do this once per version, before its release:
//! a fixture that is made again proves nothing about existing files.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use tokaido_store::tree;

use crate::support::{Contents, contents_of, copy, fast_directory, files, fill_with_runs};

const FORMAT: u32 = 3;

/// Maximum size of a fixture in bytes: it stays in the repository for ever.
const FIXTURE_BYTES_MAX: usize = 200_000;

fn fixture(format: u32) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("format-{format}"))
}

/// One line per record. For a long value, its length and first bytes.
fn printed(contents: &Contents) -> String {
    let mut text = String::new();
    for ((database, key), (value, flags, expires_at_ms)) in contents {
        let key = key.escape_ascii();
        let start = value[..value.len().min(20)].escape_ascii();
        let expiry = expires_at_ms.map_or("never".to_owned(), |at| at.to_string());
        let len = value.len();
        writeln!(text, "{database} {key} = {start} ({len}) flags {flags} expires {expiry}")
            .unwrap();
    }
    text
}

/// Keeps the store's own files: the others are created at each opening.
fn keep_what_matters(store: &Path) {
    fs::remove_file(store.join("lock.mdb")).unwrap();
    for entry in fs::read_dir(store.join("log")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        // The zeros that are written ahead; reading the log back does not need them.
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        bytes.truncate(end.next_multiple_of(16));
        fs::write(path, bytes).unwrap();
    }
}

fn make(fixture: &Path) {
    let store = fixture.join("store");
    let _ = fs::remove_dir_all(fixture);
    fill_with_runs(&store);
    keep_what_matters(&store);
    let opened = fast_directory();
    copy(&store, opened.path());
    fs::write(fixture.join("contents.txt"), printed(&contents_of(opened.path()))).unwrap();
}

#[test]
fn stores_of_all_formats_are_read() {
    if std::env::var_os("TOKAIDO_MAKE_FIXTURE").is_some() {
        make(&fixture(FORMAT));
    }
    for format in 1..=FORMAT {
        let fixture = fixture(format);
        let bytes: usize = files(&fixture).values().map(Vec::len).sum();
        assert!(bytes <= FIXTURE_BYTES_MAX, "format {format} takes {bytes} bytes");
        let store = fast_directory();
        copy(&fixture.join("store"), store.path());
        let report = tree::check(store.path()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert!(report.log.transactions > 10, "there is a log to be read back");
        let expected = fs::read_to_string(fixture.join("contents.txt")).unwrap();
        let found = printed(&contents_of(store.path()));
        let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "format {format}");
        assert_eq!(found.lines().count(), expected.lines().count(), "format {format}");
    }
}
