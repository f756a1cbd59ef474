//! Finding records that were put earlier, and the gaps that removed ones leave.

use std::{collections::HashMap, io};

use super::{
    format::{self, PAIR_LEN},
    output::Output,
    tables::Entry,
};

/// Bytes of a key that are compared at once.
const COMPARE_LEN_MAX: usize = 4096;

/// No further record.
const NONE: u32 = u32::MAX;

/// The records by the hash of their keys. The keys themselves stay in the file.
#[derive(Default)]
pub(super) struct Index {
    /// The number of the newest record with a hash.
    newest: HashMap<u32, u32>,
    /// For each record, the number of the one before it with the same hash.
    older: Vec<u32>,
}

impl Index {
    /// Adds the next record.
    pub(super) fn add(&mut self, hash: u32) {
        // A file has less than 2^32 bytes, and a record has at least 8.
        let number = self.older.len() as u32;
        self.older.push(self.newest.insert(hash, number).unwrap_or(NONE));
    }

    /// The number of a record with this key, and the length of that record.
    pub(super) fn find(
        &self,
        key: &[u8],
        hash: u32,
        entries: &[Entry],
        output: &mut Output,
    ) -> io::Result<Option<(usize, u64)>> {
        let mut number = self.newest.get(&hash).copied().unwrap_or(NONE);
        while number != NONE {
            let position = u64::from(entries[number as usize].position);
            if let Some(len) = record_with(key, position, output)? {
                return Ok(Some((number as usize, len)));
            }
            number = self.older[number as usize];
        }
        Ok(None)
    }
}

/// The length of the record at `position`, if it has this key.
fn record_with(key: &[u8], position: u64, output: &mut Output) -> io::Result<Option<u64>> {
    let mut lengths = [0; PAIR_LEN];
    output.read(position, &mut lengths)?;
    let (key_len, value_len) = format::decode_pair(lengths);
    if key_len as usize != key.len() {
        return Ok(None);
    }
    let mut at = position + PAIR_LEN as u64;
    let mut stored = [0; COMPARE_LEN_MAX];
    for part in key.chunks(COMPARE_LEN_MAX) {
        let stored = &mut stored[..part.len()];
        output.read(at, stored)?;
        if stored != part {
            return Ok(None);
        }
        at += part.len() as u64;
    }
    Ok(Some(PAIR_LEN as u64 + u64::from(key_len) + u64::from(value_len)))
}

/// The gaps that removed records have left in the file.
#[derive(Default)]
pub(super) struct Gaps {
    /// The position and length of each.
    gaps: Vec<(u64, u64)>,
    len: u64,
}

impl Gaps {
    /// Total bytes in gaps.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn add(&mut self, position: u64, len: u64) {
        self.gaps.push((position, len));
        self.len += len;
    }

    /// Moves the records together, as if the removed ones had never existed.
    pub(super) fn close(&mut self, entries: &mut [Entry], output: &mut Output) -> io::Result<()> {
        if self.gaps.is_empty() {
            return Ok(());
        }
        self.gaps.sort_unstable();
        let end = output.len();
        let mut to = self.gaps[0].0;
        for (number, &(position, len)) in self.gaps.iter().enumerate() {
            let from = position + len;
            let next = self.gaps.get(number + 1).map_or(end, |next| next.0);
            output.move_down(from, to, next - from)?;
            to += next - from;
        }
        output.shorten(to);
        self.move_entries(entries);
        *self = Self::default();
        Ok(())
    }

    fn move_entries(&self, entries: &mut [Entry]) {
        let mut total = 0;
        let before: Vec<(u64, u64)> = self
            .gaps
            .iter()
            .map(|&(position, len)| {
                total += len;
                (position, total)
            })
            .collect();
        for entry in entries {
            let position = u64::from(entry.position);
            let gaps = before.partition_point(|gap| gap.0 < position);
            if gaps > 0 {
                entry.position -= before[gaps - 1].1 as u32;
            }
        }
    }
}
