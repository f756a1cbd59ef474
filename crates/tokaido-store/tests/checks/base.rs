//! Checks on the base's entries that must hold for arbitrary bytes.

use super::{
    format::{self, TreeEntry},
    long_key,
};

/// Any bytes as the entry of a tree, its key, and a bucket of long keys.
pub fn check_base(bytes: &[u8]) {
    if let Some(entry) = TreeEntry::decode(bytes) {
        assert_eq!(entry.encode()[..], *bytes);
    }
    if let Some(tree) = format::parse_tree_key(bytes) {
        assert_eq!(format::tree_key(tree)[..], *bytes);
    }
    check_bucket(bytes);
}

fn check_bucket(bucket: &[u8]) {
    let pairs: Vec<_> = long_key::pairs(bucket).collect();
    assert!(pairs.len() <= bucket.len() / 8 + 1, "more keys than fit");
    let is_whole = pairs.iter().all(Result::is_ok);
    let mut keys: Vec<&[u8]> = pairs.iter().flatten().map(|(key, _)| *key).collect();
    // Some that exist, and one that hardly does.
    keys.truncate(8);
    keys.push(b"a key");
    let is_sorted = pairs.iter().flatten().is_sorted_by(|(a, _), (b, _)| a < b);
    for key in keys {
        let replaced = long_key::replace(bucket, key, Some(b"new"));
        let removed = long_key::replace(bucket, key, None);
        if !is_whole {
            assert!(replaced.is_err() && removed.is_err(), "damage was copied");
            continue;
        }
        let (replaced, removed) = (replaced.expect("it is whole"), removed.expect("it is whole"));
        assert!(replaced.len() <= bucket.len() + 8 + key.len() + 3, "it grew by more than that");
        if is_sorted {
            let found = long_key::find(&replaced, key).expect("it was just made");
            assert_eq!(found, Some(&b"new"[..]));
            assert_eq!(long_key::find(&removed, key).expect("it was just made"), None);
        }
    }
}
