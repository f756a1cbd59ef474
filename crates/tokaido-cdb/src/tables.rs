//! The hash tables at the end of a file, and the header that points to them.

use std::io;

use super::{
    format::{self, HEADER_LEN, PAIR_LEN, SLOTS_PER_RECORD, TABLES},
    output::Output,
};

/// A record's entry in the tables.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) hash: u32,
    pub(super) position: u32,
}

/// Appends the tables of the records, which must be in the order of their positions, and returns
/// the header. The caller has made sure that all positions fit into 32 bits.
pub(super) fn append(entries: &[Entry], output: &mut Output) -> io::Result<Vec<u8>> {
    let (grouped, starts) = group(entries);
    let mut header = Vec::with_capacity(HEADER_LEN);
    let mut slots: Vec<[u8; PAIR_LEN]> = Vec::new();
    for number in 0..TABLES {
        let entries = &grouped[starts[number]..starts[number + 1]];
        let count = entries.len() * SLOTS_PER_RECORD;
        header.extend_from_slice(&format::encode_pair(output.len() as u32, count as u32));
        slots.clear();
        slots.resize(count, [0; PAIR_LEN]);
        for entry in entries {
            let mut slot = format::first_slot(entry.hash, count);
            while format::decode_pair(slots[slot]).1 != 0 {
                slot += 1;
                if slot == count {
                    slot = 0;
                }
            }
            slots[slot] = format::encode_pair(entry.hash, entry.position);
        }
        output.append(slots.as_flattened())?;
    }
    Ok(header)
}

/// The records grouped by table, in the order of their positions within each; and where each
/// table's records begin.
fn group(entries: &[Entry]) -> (Vec<Entry>, [usize; TABLES + 1]) {
    let mut starts = [0; TABLES + 1];
    for entry in entries {
        starts[format::table_of(entry.hash) + 1] += 1;
    }
    for number in 0..TABLES {
        starts[number + 1] += starts[number];
    }
    let mut next = starts;
    let mut grouped = vec![Entry::default(); entries.len()];
    for &entry in entries {
        let next = &mut next[format::table_of(entry.hash)];
        grouped[*next] = entry;
        *next += 1;
    }
    (grouped, starts)
}
