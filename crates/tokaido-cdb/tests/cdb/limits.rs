//! The format's limit of 4 GiB, and smaller limits instead.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
};

use tokaido_cdb::{Duplicates, FILE_LEN_MAX, MakeError, Options, Reader, Temporary, Writer};

use crate::support::options;

/// The length of a file with one record of 3 + 5 bytes.
const ONE_RECORD_LEN: u64 = 2048 + 8 + 3 + 5 + 16;

#[test]
fn a_record_that_does_not_fit_is_refused_and_the_others_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let limited = Options { len_max: 2 * ONE_RECORD_LEN - 2048, ..options(Duplicates::Keep) };
    let mut writer = Writer::create(&path, &limited).unwrap();
    writer.put(b"one", b"value").unwrap();
    let error = writer.put(b"two", b"values").unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 2 would make the file 2113 bytes long, and the most is 2112 (the format has at \
         most 4294967295); divide the records over several files"
    );
    writer.put(b"two", b"value").unwrap();
    assert!(matches!(writer.put(b"", b"").unwrap_err(), MakeError::TooLarge { record: 3, .. }));
    writer.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), limited.len_max);
    assert_eq!(Reader::open(&path).unwrap().iter().count(), 2);
}

#[test]
fn a_file_without_records_is_always_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let limited = Options { len_max: 0, ..options(Duplicates::Keep) };
    let mut writer = Writer::create(&path, &limited).unwrap();
    assert!(matches!(writer.put(b"", b"").unwrap_err(), MakeError::TooLarge { .. }));
    writer.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 2048);
}

#[test]
fn replacing_needs_room_for_what_stays_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let limited = Options { len_max: 2 * ONE_RECORD_LEN - 2048, ..options(Duplicates::Replace) };
    let mut writer = Writer::create(&path, &limited).unwrap();
    for round in 0..100 {
        writer.put(b"one", format!("v{round:04}").as_bytes()).unwrap();
        writer.put(b"two", format!("w{round:04}").as_bytes()).unwrap();
    }
    assert!(matches!(writer.put(b"one", b"v00100"), Err(MakeError::TooLarge { .. })));
    writer.finish().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.get(b"one").unwrap(), Some(&b"v0099"[..]));
    assert_eq!(reader.get(b"two").unwrap(), Some(&b"w0099"[..]));
    assert_eq!(fs::metadata(&path).unwrap().len(), limited.len_max);
}

#[test]
fn replacing_does_not_make_the_temporary_file_longer_than_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (path, temporary) = (directory.path().join("a.cdb"), directory.path().join("t"));
    let options = Options {
        len_max: 3 << 20,
        temporary: Temporary::At(temporary.clone()),
        ..options(Duplicates::Replace)
    };
    let mut writer = Writer::create(&path, &options).unwrap();
    for round in 0..20u8 {
        for key in [b"one", b"two"] {
            writer.put(key, &vec![round; 1 << 20]).unwrap();
            assert!(fs::metadata(&temporary).unwrap().len() <= options.len_max);
        }
    }
    writer.finish().unwrap();
    assert_eq!(Reader::open(&path).unwrap().get(b"two").unwrap().unwrap()[7], 19);
}

#[test]
fn zeros_need_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let limited = Options { len_max: 2 * ONE_RECORD_LEN - 2048, ..options(Duplicates::ZeroFill) };
    let mut writer = Writer::create(&path, &limited).unwrap();
    writer.put(b"one", b"value").unwrap();
    writer.put(b"two", b"value").unwrap();
    writer.put(b"two", b"other").unwrap();
    assert!(matches!(writer.put(b"one", b""), Err(MakeError::TooLarge { .. })));
    writer.finish().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(
        reader.get(b"one").unwrap(),
        Some(&b"value"[..]),
        "what was refused changes nothing"
    );
    assert_eq!(reader.get(b"two").unwrap(), Some(&b"other"[..]));
}

/// Makes a file of the maximum length, nearly all of it a hole: a record with an empty key and the
/// hole as its value, and `key` with `value` at the very end.
#[cfg(target_pointer_width = "64")]
fn make_largest(path: &Path) {
    let file = File::create(path).unwrap();
    let data_end = u32::MAX - 16;
    let last = data_end - 16;
    let hash = b"key".iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(*byte));
    let write = |position: u32, numbers: [u32; 2]| {
        let bytes = numbers.map(u32::to_le_bytes).concat();
        file.write_all_at(&bytes, u64::from(position)).unwrap();
    };
    for table in 0..256 {
        let slots = if table == hash % 256 { 2 } else { 0 };
        write(8 * table, [data_end, slots]);
    }
    write(2048, [0, HOLE_LEN as u32]);
    write(last, [3, 5]);
    file.write_all_at(b"keyvalue", u64::from(last) + 8).unwrap();
    write(data_end, [0, 0]);
    write(data_end + 8, [0, 0]);
    write(data_end + 8 * (hash / 256 % 2), [hash, last]);
    assert_eq!(file.metadata().unwrap().len(), FILE_LEN_MAX);
}

#[cfg(target_pointer_width = "64")]
const HOLE_LEN: u64 = FILE_LEN_MAX - 16 - 16 - 2048 - 8;

#[test]
#[cfg(target_pointer_width = "64")]
fn the_last_byte_of_4_gib_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.cdb");
    make_largest(&path);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.get(b"key").unwrap(), Some(&b"value"[..]));
    let lengths: Vec<usize> = reader.iter().map(|record| record.unwrap().value.len()).collect();
    assert_eq!(lengths, [HOLE_LEN as usize, 5]);
    assert_eq!(reader.statistics().unwrap().records, 2);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn no_option_allows_more_than_the_format() {
    let directory = tempfile::tempdir().unwrap();
    let (large, path) = (directory.path().join("large.cdb"), directory.path().join("a.cdb"));
    make_largest(&large);
    let reader = Reader::open(&large).unwrap();
    let hole = reader.iter().next().unwrap().unwrap().value;
    let unlimited = Options { len_max: u64::MAX, ..options(Duplicates::Keep) };
    let mut writer = Writer::create(&path, &unlimited).unwrap();
    // One byte too many; it is refused before a byte of the hole is read.
    let key = [b'k'; (FILE_LEN_MAX + 1 - HOLE_LEN) as usize - 2048 - 8 - 16];
    let error = writer.put(&key, hole).unwrap_err();
    let MakeError::TooLarge { len, len_max, .. } = error else { panic!("{error}") };
    assert_eq!((len, len_max), (FILE_LEN_MAX + 1, FILE_LEN_MAX));
    drop(writer);
    assert!(!path.exists());
}
