//! A second, minimal writer of the format, to compare the real one with.

use std::path::Path;

use tokaido_cdb::{Duplicates, MakeError, Options, Put, Writer};

/// Key and value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A record in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Whether it is in the hash tables.
    pub(crate) is_found: bool,
}

pub(crate) fn pair(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Pair {
    (key.as_ref().to_vec(), value.as_ref().to_vec())
}

/// The records in a file after these pairs were put, by the rules of the `cdb` tool.
pub(crate) fn model(pairs: &[Pair], duplicates: Duplicates) -> Vec<Stored> {
    let mut records: Vec<Stored> = Vec::new();
    for (key, value) in pairs {
        let found = records.iter().position(|record| record.is_found && record.key == *key);
        match (duplicates, found) {
            (Duplicates::KeepFirst | Duplicates::Refuse, Some(_)) => continue,
            (Duplicates::Replace, Some(found)) => drop(records.remove(found)),
            (Duplicates::ZeroFill, Some(found)) if found + 1 == records.len() => {
                records.pop();
            }
            (Duplicates::ZeroFill, Some(found)) => {
                let old = &mut records[found];
                let value = vec![0; old.key.len() + old.value.len()];
                *old = Stored { key: Vec::new(), value, is_found: false };
            }
            _ => {}
        }
        records.push(Stored { key: key.clone(), value: value.clone(), is_found: true });
    }
    records
}

/// The bytes of a file with these records.
pub(crate) fn encode(records: &[Stored]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut tables: Vec<Vec<(u32, u32)>> = vec![Vec::new(); 256];
    for Stored { key, value, is_found } in records {
        let hash = key.iter().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(*byte));
        if *is_found {
            tables[hash as usize % 256].push((hash, 2048 + data.len() as u32));
        }
        data.extend((key.len() as u32).to_le_bytes());
        data.extend((value.len() as u32).to_le_bytes());
        data.extend(key);
        data.extend(value);
    }
    let mut header = Vec::new();
    for table in tables {
        header.extend((2048 + data.len() as u32).to_le_bytes());
        header.extend((2 * table.len() as u32).to_le_bytes());
        let mut slots = vec![(0, 0); 2 * table.len()];
        for (hash, position) in table {
            let mut slot = (hash as usize / 256) % slots.len();
            while slots[slot].1 != 0 {
                slot = (slot + 1) % slots.len();
            }
            slots[slot] = (hash, position);
        }
        data.extend(
            slots
                .iter()
                .flat_map(|(hash, position)| [hash.to_le_bytes(), position.to_le_bytes()].concat()),
        );
    }
    [header, data].concat()
}

/// The bytes of a file with these pairs.
pub(crate) fn encode_pairs(pairs: &[Pair]) -> Vec<u8> {
    encode(&model(pairs, Duplicates::Keep))
}

/// Options for tests: they need not wait for the disk.
pub(crate) fn options(duplicates: Duplicates) -> Options {
    Options { duplicates, sync: false, ..Options::default() }
}

/// Makes a file, and returns the results of `put`. Refused duplicates are left out.
pub(crate) fn make(path: &Path, pairs: &[Pair], options: &Options) -> Vec<Put> {
    let mut writer = Writer::create(path, options).unwrap();
    let mut said = Vec::new();
    for (key, value) in pairs {
        match writer.put(key, value) {
            Ok(put) => said.push(put),
            Err(MakeError::Duplicate { .. }) => said.push(Put::Duplicate),
            Err(error) => panic!("{error}"),
        }
    }
    writer.finish().unwrap();
    said
}
