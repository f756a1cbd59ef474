//! The writer and the reader in the file system: which files exist when, with which permissions.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use tokaido_cdb::{Duplicates, MakeError, OpenError, Options, Reader, Temporary, Writer};

use crate::support::{make, options, pair};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_dropped_writer_leaves_the_target_alone_and_nothing_else_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    fs::write(&path, "old").unwrap();
    let large = vec![0; 1 << 20];
    for temporary in [Temporary::Beside, Temporary::At(directory.path().join("t"))] {
        let options = Options { temporary, ..options(Duplicates::Keep) };
        let mut writer = Writer::create(&path, &options).unwrap();
        writer.put(b"key", &large).unwrap();
        assert_eq!(names(directory.path()).len(), 2);
        drop(writer);
        assert_eq!(names(directory.path()), ["a.cdb"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}

#[test]
fn a_finished_file_takes_the_place_of_the_target_or_of_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("a.cdb"), directory.path().join("other"));
    fs::write(&other, "other").unwrap();
    symlink(&other, &path).unwrap();
    let temporary = directory.path().join("t");
    // A leftover at the temporary file's path does no harm, and a link is not followed.
    symlink(&other, &temporary).unwrap();
    let at = Options { temporary: Temporary::At(temporary), ..Options::default() };
    make(&path, &[pair("a", "1")], &at);
    assert_eq!(names(directory.path()), ["a.cdb", "other"]);
    assert_eq!(fs::read(&other).unwrap(), b"other");
    assert_eq!(Reader::open(&path).unwrap().get(b"a").unwrap(), Some(&b"1"[..]));
}

#[test]
fn in_place_the_target_is_refused_until_it_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    make(&path, &[pair("a", "old")], &Options::default());
    let in_place = Options { temporary: Temporary::None, ..Options::default() };
    let mut writer = Writer::create(&path, &in_place).unwrap();
    writer.put(b"a", &vec![b'n'; 1 << 20]).unwrap();
    assert!(matches!(Reader::open(&path), Err(OpenError::Damaged { .. })));
    writer.finish().unwrap();
    assert_eq!(names(directory.path()), ["a.cdb"]);
    assert_eq!(Reader::open(&path).unwrap().get(b"a").unwrap().unwrap().len(), 1 << 20);
}

#[test]
fn what_is_no_file_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("directory");
    fs::create_dir(&inner).unwrap();
    let path = directory.path().join("a.cdb");
    let at = Options { temporary: Temporary::At(inner.clone()), ..Options::default() };
    let in_place = Options { temporary: Temporary::None, ..Options::default() };
    for (path, options) in [(&path, at), (&inner, in_place)] {
        let error = Writer::create(path, &options).err().unwrap();
        assert!(error.to_string().contains("it is there, and no file"), "{error}");
    }
    // With a temporary file beside it, only `finish` finds that the target cannot be replaced.
    let error = Writer::create(&inner, &Options::default()).unwrap().finish().unwrap_err();
    assert!(matches!(error, MakeError::Io { .. }), "{error}");
    assert_eq!(names(directory.path()), ["directory"]);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing/a.cdb");
    let error = Writer::create(&path, &Options::default()).err().unwrap();
    let start = format!("cannot write {}: No such file or directory", path.display());
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn permissions_are_those_asked_for_or_the_usual_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (path, usual) = (directory.path().join("a.cdb"), directory.path().join("usual"));
    File::create(&usual).unwrap();
    make(&path, &[], &Options::default());
    assert_eq!(mode(&path), mode(&usual));
    for permissions in [0o600, 0o666, 0o777, 0o444] {
        make(&path, &[], &Options { permissions: Some(permissions), ..Options::default() });
        assert_eq!(mode(&path), permissions);
    }
    let bad = Options { permissions: Some(0o4755), ..Options::default() };
    let error = Writer::create(&path, &bad).err().unwrap();
    assert_eq!(error.to_string(), "0o4755 are no permissions of a file; the most is 0o777");
}

#[test]
fn two_writers_of_one_target_do_not_meet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let mut first = Writer::create(&path, &Options::default()).unwrap();
    let mut second = Writer::create(&path, &Options::default()).unwrap();
    first.put(b"key", b"first").unwrap();
    second.put(b"key", b"second").unwrap();
    first.finish().unwrap();
    assert_eq!(Reader::open(&path).unwrap().get(b"key").unwrap(), Some(&b"first"[..]));
    second.finish().unwrap();
    assert_eq!(Reader::open(&path).unwrap().get(b"key").unwrap(), Some(&b"second"[..]));
}

#[test]
fn a_reader_knows_when_its_file_was_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    make(&path, &[pair("key", "old")], &options(Duplicates::Keep));
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.path(), path);
    assert!(!reader.is_stale().unwrap());
    make(&path, &[pair("key", "new")], &options(Duplicates::Keep));
    assert!(reader.is_stale().unwrap());
    assert_eq!(reader.get(b"key").unwrap(), Some(&b"old"[..]));
    let reopened = reader.reopen().unwrap();
    assert_eq!(reopened.get(b"key").unwrap(), Some(&b"new"[..]));
    assert!(!reopened.is_stale().unwrap());

    let touch = |time| {
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    touch(an_hour_ago);
    assert!(reopened.is_stale().unwrap());
    let reopened = reopened.reopen().unwrap();
    assert!(!reopened.is_stale().unwrap());
    touch(an_hour_ago + Duration::from_millis(1));
    assert!(reopened.is_stale().unwrap());

    fs::remove_file(&path).unwrap();
    assert!(matches!(reopened.is_stale(), Err(OpenError::Io { .. })));
    assert!(matches!(reopened.reopen(), Err(OpenError::Io { .. })));
    assert_eq!(reopened.get(b"key").unwrap(), Some(&b"new"[..]));
    assert_eq!(reader.get(b"key").unwrap(), Some(&b"old"[..]));
}

/// Stops the readers, even if the writer panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer replaces the file again and again, while readers switch to the new one. Each sees one
/// version as a whole, and never an older one than before.
#[test]
fn a_served_file_is_exchanged_at_once() {
    const KEYS: usize = 50;
    const VERSIONS: usize = 100;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let publish = |version: usize| {
        let pairs: Vec<_> =
            (0..KEYS).map(|key| pair(key.to_string(), version.to_string())).collect();
        make(&path, &pairs, &options(Duplicates::Keep));
    };
    publish(0);
    let served = RwLock::new(Arc::new(Reader::open(&path).unwrap()));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let reader = Arc::clone(&served.read().unwrap());
                    let value = |key: usize| {
                        let key = key.to_string();
                        let value = reader.get(key.as_bytes()).unwrap().unwrap();
                        std::str::from_utf8(value).unwrap().parse::<usize>().unwrap()
                    };
                    let version = value(0);
                    assert!(version >= newest);
                    newest = version;
                    assert!((1..KEYS).all(|key| value(key) == version));
                }
            });
        }
        let _done = Done(&is_done);
        for version in 1..=VERSIONS {
            publish(version);
            let reader = Arc::clone(&served.read().unwrap());
            assert!(reader.is_stale().unwrap());
            *served.write().unwrap() = Arc::new(reader.reopen().unwrap());
        }
    });
    let last = served.read().unwrap();
    assert_eq!(last.get(b"7").unwrap(), Some(VERSIONS.to_string().as_bytes()));
}
