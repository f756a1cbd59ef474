//! A check finds what is wrong, says where, and changes nothing.

use std::{fs, path::Path};

use tokaido_store::{
    OpenError,
    tree::{self, CheckError, CheckReport, Finding},
};

use crate::support::{Filled, damage, fast_directory, files, long_key, open};

/// Checks, and makes sure that no byte has changed.
fn check(directory: &Path) -> CheckReport {
    let before = files(directory);
    let report = tree::check(directory).unwrap();
    assert!(files(directory) == before, "a check changes nothing");
    report
}

#[track_caller]
fn findings(directory: &Path) -> Vec<String> {
    check(directory).findings.iter().map(Finding::to_string).collect()
}

#[test]
fn a_sound_store_is_counted() {
    let filled = Filled::new();
    let report = check(&filled.path());
    assert_eq!(report.findings, []);
    let databases: Vec<_> = report
        .databases
        .iter()
        .map(|d| (d.name.as_str(), d.statistics.records, d.expiring))
        .collect();
    // 200 short keys minus 20, 10 long ones minus one, and the large one.
    assert_eq!(databases, [("main", 190, 9), ("people", 220, 200), ("cleared", 1, 1)]);
    assert_eq!((report.base.sequence, report.log.transactions), (1, 21));
    assert_eq!(report.log.torn_at, None);
    // Deleting the long key removed its entry only if the memtable knew of its expiry.
    assert_eq!(report.expiry_entries_stale, 1);
}

#[test]
fn a_store_that_is_in_use_or_is_none_cannot_be_checked() {
    let filled = Filled::new();
    let store = open(&filled.path());
    assert!(matches!(tree::check(&filled.path()), Err(CheckError::Held { .. })));
    drop(store);
    assert!(tree::check(&filled.path()).is_ok());
    let nothing = filled.beside("nothing");
    assert!(matches!(tree::check(&nothing), Err(CheckError::NoStore { .. })));
    fs::create_dir(&nothing).unwrap();
    assert!(matches!(tree::check(&nothing), Err(CheckError::NoStore { .. })));
}

#[test]
fn a_store_cannot_be_opened_while_it_is_checked() {
    // The lock of a check, taken as the check takes it.
    let filled = Filled::new();
    let lock = fs::File::open(filled.path().join("tokaido.lock")).unwrap();
    lock.try_lock_shared().unwrap();
    assert!(tree::check(&filled.path()).is_ok(), "two checks do not exclude each other");
    let opened = tree::open(&filled.path(), tree::Options::default());
    assert!(matches!(opened, Err(OpenError::Locked { .. })));
}

/// Where the frames of a segment begin; the last is the mark of a store that was closed.
fn frames(segment: &Path) -> Vec<usize> {
    let bytes = fs::read(segment).unwrap();
    (48..bytes.len()).step_by(16).filter(|at| bytes[*at..].starts_with(b"TKdF")).collect()
}

#[test]
fn damage_in_the_log_is_placed_and_what_stands_around_it_is_counted() {
    let filled = Filled::new();
    let segment = filled.segment();
    let frames = frames(&segment);
    assert_eq!(frames.len(), 21 + 1);
    damage(&segment, frames[5] + 41);
    let report = check(&filled.path());
    let number: u64 = segment.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let what = "synced transactions are lost at this place".to_owned();
    let finding = Finding::Log { segment: number, byte: frames[5] as u64, what };
    assert_eq!(report.findings, [finding]);
    assert_eq!((report.log.transactions, report.log.transactions_behind), (5, 15));
}

#[test]
fn an_interrupted_write_is_no_damage() {
    let filled = Filled::new();
    let segment = filled.segment();
    let [.., last, mark] = frames(&segment)[..] else { panic!("frames and a mark") };
    // As a process leaves it that is killed before it has synced the last frame.
    fs::File::options().write(true).open(&segment).unwrap().set_len(mark as u64).unwrap();
    damage(&segment, last + 41);
    let report = check(&filled.path());
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.log.transactions, 20);
    assert_eq!(report.log.torn_at.unwrap().1, last as u64);
}

#[test]
fn a_log_of_another_store_is_found() {
    let (filled, other) = (Filled::new(), Filled::new());
    fs::copy(other.segment(), filled.segment()).unwrap();
    let found = findings(&filled.path());
    assert!(found[0].ends_with("byte 0: its header is not what it should be"), "{found:?}");
}

/// Damages a byte of each page of a kind in turn, and returns whether any of these is reported
/// with the given text. Free pages may hold anything.
fn is_found_on_a_page(flags: u16, at: usize, what: &str) -> bool {
    let filled = Filled::new();
    let data = filled.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let is_of_kind = |page: &usize| whole[page * 4096 + 10..].starts_with(&flags.to_le_bytes());
    (2..whole.len() / 4096).filter(is_of_kind).any(|page| {
        fs::write(&data, &whole).unwrap();
        damage(&data, page * 4096 + at);
        let place = format!("data.mdb, page {page}, ");
        findings(&filled.path()).iter().any(|f| f.starts_with(&place) && f.ends_with(what))
    })
}

/// Replaces every `old` in a file with `new`: there may be a copy on a free page.
fn replace(path: &Path, old: &[u8], new: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_pages_are_found_by_their_number() {
    const LEAF: u16 = 2;
    const OVERFLOW: u16 = 4;
    for (flags, at, what) in [
        (LEAF, 0, "it has another page's number"),
        (LEAF, 10, "it is neither a branch nor a leaf"),
        (LEAF, 13, "its free space has impossible bounds"),
        (LEAF, 17, "its node 0 is damaged"),
        (OVERFLOW, 0, "it is not the beginning of a long value"),
        (OVERFLOW, 14, "a long value has an impossible length"),
    ] {
        assert!(is_found_on_a_page(flags, at, what), "{what}");
    }
}

#[test]
fn keys_out_of_order_are_found() {
    let filled = Filled::new();
    replace(&filled.path().join("data.mdb"), b"key:0050", b"key:9050");
    let found = findings(&filled.path());
    assert!(found.iter().any(|f| f.ends_with("its keys are out of order")), "{found:?}");
}

#[test]
fn a_file_that_was_cut_off_is_damage_and_no_crash() {
    let filled = Filled::new();
    let data = filled.path().join("data.mdb");
    let len = fs::metadata(&data).unwrap().len();
    for kept in [len - 4096, len / 2, 8192, 4096, 100, 0] {
        fs::File::options().write(true).open(&data).unwrap().set_len(kept).unwrap();
        assert!(!check(&filled.path()).is_sound(), "{kept} of {len} bytes");
    }
    fs::remove_file(&data).unwrap();
    assert_eq!(findings(&filled.path()), ["data.mdb: the file is not there"]);
}

#[test]
fn a_changed_byte_of_the_base_is_never_a_panic() {
    let filled = Filled::new();
    let data = filled.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let mut found = 0;
    // The heads of pages, and some of everything.
    let places = (0..whole.len()).filter(|at| at % 4096 < 20 || at % 307 == 0);
    for (n, at) in places.enumerate() {
        let mut bytes = whole.clone();
        bytes[at] = bytes[at].wrapping_add([1, 0x80, 0xFF, 7][n % 4]);
        fs::write(&data, bytes).unwrap();
        found += usize::from(!tree::check(&filled.path()).unwrap().is_sound());
    }
    assert!(found > 300, "only {found} were found");
}

#[test]
fn keys_that_share_a_head_are_told_apart() {
    let filled = Filled::new();
    replace(&filled.path().join("data.mdb"), &long_key(1), &long_key(0));
    let found = findings(&filled.path());
    let what = "the bucket of keys that begin so is damaged";
    assert!(found.iter().any(|finding| finding.ends_with(what)), "{found:?}");
}

#[test]
fn a_later_version_is_refused_by_name() {
    let filled = Filled::new();
    replace(&filled.path().join("data.mdb"), b"format\x01\0\0\0", b"format\x09\0\0\0");
    let expected = "has format version 9, this program knows version 3";
    let checked = tree::check(&filled.path()).unwrap_err().to_string();
    let opened = tree::open(&filled.path(), tree::Options::default()).err().unwrap().to_string();
    assert!(checked.contains(expected) && opened.contains(expected), "{checked}, {opened}");
}

#[test]
fn a_log_of_a_later_version_is_refused_by_name() {
    let filled = Filled::new();
    let segment = filled.segment();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[8] = 3;
    let crc = crc32c::crc32c(&bytes[..32]).to_le_bytes();
    bytes[32..36].copy_from_slice(&crc);
    fs::write(&segment, bytes).unwrap();
    let expected = "has format version 3, this program knows version 1";
    let checked = tree::check(&filled.path()).unwrap_err().to_string();
    let opened = tree::open(&filled.path(), tree::Options::default()).err().unwrap().to_string();
    assert!(checked.contains(expected) && opened.contains(expected), "{checked}, {opened}");
}

#[test]
fn a_store_whose_making_was_interrupted_is_unfinished_and_not_damaged() {
    let directory = fast_directory();
    let path = directory.path();
    fs::write(path.join("tokaido.lock"), "").unwrap();
    let unfinished = || {
        let report = check(path);
        assert!(report.is_sound(), "{:?}", report.findings);
        report.is_unfinished
    };
    assert!(unfinished());
    fs::create_dir(path.join("base.new")).unwrap();
    assert!(unfinished());
    fs::write(path.join("base.new/data.mdb"), [0; 100]).unwrap();
    fs::write(path.join("base.new/lock.mdb"), "").unwrap();
    assert!(unfinished());
    drop(open(path));
    assert!(!unfinished());
    // If the base of an existing store is missing, that is reported.
    fs::remove_file(path.join("data.mdb")).unwrap();
    assert_eq!(findings(path), ["data.mdb: the file is not there"]);
    fs::remove_dir_all(path.join("log")).unwrap();
    assert_eq!(findings(path), ["data.mdb: the file is not there"]);
}

#[test]
fn a_store_that_nobody_has_written_to_is_sound() {
    let filled = Filled::new();
    let new = filled.beside("new");
    drop(open(&new));
    let report = check(&new);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.base.sequence, report.databases.len()), (0, 0));
    tree::backup(&new, &filled.beside("copy")).unwrap();
    assert!(check(&filled.beside("copy")).is_sound());
}
