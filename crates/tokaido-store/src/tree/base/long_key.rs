//! Keys longer than LMDB accepts.
//!
//! All keys that share their first [`HEAD_LEN`] bytes are in one *bucket*: an entry of the tree
//! under those bytes, which holds the keys in order, each with its record. A shorter key is an
//! entry of its own. Since a tree key of exactly that length is always a bucket and nothing else,
//! the two cannot be confused, and the order of the tree remains the order of the keys.
//!
//! ```text
//! bucket = { key length u32, record length u32, key, record }*      (little-endian)
//! ```
//! Buckets are rewritten whole; they are meant for the few keys that are that long.

use tokaido_lmdb::LMDB_KEY_LEN_MAX;

use crate::ReadError;

/// How many bytes of a long key are in the tree.
pub(in crate::tree) const HEAD_LEN: usize = 500;

const _: () = assert!(HEAD_LEN <= LMDB_KEY_LEN_MAX);

/// Whether `key` belongs in a bucket.
pub(in crate::tree) fn is_long(key: &[u8]) -> bool {
    key.len() >= HEAD_LEN
}

/// Whether an entry of a tree is a bucket.
pub(in crate::tree) fn is_bucket(tree_key: &[u8]) -> bool {
    tree_key.len() == HEAD_LEN
}

/// The tree key under which `key` is found, on its own or in a bucket.
pub(in crate::tree) fn tree_key(key: &[u8]) -> &[u8] {
    &key[..key.len().min(HEAD_LEN)]
}

/// A key and its stored record.
type Pair<'b> = (&'b [u8], &'b [u8]);

/// The pairs of a bucket, in the order of their keys.
pub(in crate::tree) struct Pairs<'b> {
    rest: &'b [u8],
}

pub(in crate::tree) fn pairs(bucket: &[u8]) -> Pairs<'_> {
    Pairs { rest: bucket }
}

impl<'b> Iterator for Pairs<'b> {
    type Item = Result<Pair<'b>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let pair = self.take();
        if pair.is_none() {
            self.rest = &[];
        }
        Some(pair.ok_or_else(|| ReadError::damaged("a bucket of long keys")))
    }
}

impl<'b> Pairs<'b> {
    fn take(&mut self) -> Option<Pair<'b>> {
        let (key_len, rest) = self.rest.split_first_chunk::<4>()?;
        let (record_len, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*record_len) as usize)?;
        self.rest = rest;
        Some((key, record))
    }
}

/// The record of `key` in a bucket.
pub(in crate::tree) fn find<'b>(
    bucket: &'b [u8],
    key: &[u8],
) -> Result<Option<&'b [u8]>, ReadError> {
    for pair in pairs(bucket) {
        let (found, record) = pair?;
        if found == key {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The bucket with `record` under `key`, or without that key for `None`.
pub(super) fn replace(
    bucket: &[u8],
    key: &[u8],
    record: Option<&[u8]>,
) -> Result<Vec<u8>, ReadError> {
    let mut out = Vec::with_capacity(bucket.len() + 8 + key.len() + record.map_or(0, <[u8]>::len));
    let mut pending = record;
    for pair in pairs(bucket) {
        let (found, old) = pair?;
        if found >= key
            && let Some(new) = pending.take()
        {
            push(&mut out, key, new);
        }
        if found != key {
            push(&mut out, found, old);
        }
    }
    if let Some(new) = pending {
        push(&mut out, key, new);
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, key: &[u8], record: &[u8]) {
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(record.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(record);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    proptest::proptest! {
        #[test]
        fn a_bucket_is_an_ordered_map(
            changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        ) {
            let mut bucket = Vec::new();
            let mut model = BTreeMap::new();
            for (key, record) in changes {
                bucket = replace(&bucket, &key, record.as_deref()).unwrap();
                match record {
                    Some(record) => { model.insert(key.clone(), record); }
                    None => { model.remove(&key); }
                }
                proptest::prop_assert_eq!(find(&bucket, &key).unwrap(), model.get(&key).map(Vec::as_slice));
            }
            let all: Vec<_> = pairs(&bucket).map(Result::unwrap).collect();
            let expected: Vec<_> = model.iter().map(|(k, v)| (&k[..], &v[..])).collect();
            proptest::prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn a_damaged_bucket_is_an_error_not_a_panic() {
        for bucket in [&b"\x01"[..], b"\xff\xff\xff\xff\0\0\0\0k", b"\x01\0\0\0\x09\0\0\0kv"] {
            assert!(find(bucket, b"x").is_err());
        }
    }
}
