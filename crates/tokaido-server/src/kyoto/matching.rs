//! Procedures that search for keys.

use std::{collections::BTreeSet, ops::ControlFlow};

use tokaido_script::cabinet::{characters, compile, distance};
use tokaido_store::{DatabaseId, ReadTransaction};
use tokaido_wire::kyoto::Pairs;

use super::{
    inputs::{Inputs, output_name},
    refusal::{DatabaseError, Kind, Refusal},
};
use crate::search::visit;

/// Maximum length of an origin that keys are compared with, in characters. The time for a key is its
/// length times this.
const ORIGIN_LEN_MAX: usize = 1024;

/// Whether a search continues after a key.
type Visited = Result<ControlFlow<()>, Refusal>;

/// The keys found, in order: the outputs give each its place.
#[derive(Default)]
struct Found {
    keys: Vec<Vec<u8>>,
    bytes: usize,
}

impl Found {
    fn add(&mut self, key: &[u8], inputs: &Inputs) -> Result<(), Refusal> {
        self.bytes += key.len();
        inputs.check_reply(self.bytes)?;
        self.keys.push(key.to_vec());
        Ok(())
    }

    fn outputs(self) -> Pairs {
        let count = self.keys.len().to_string().into_bytes();
        let keys = self.keys.iter().enumerate();
        let mut outputs: Pairs =
            keys.map(|(place, key)| (output_name(key), place.to_string().into())).collect();
        outputs.insert(b"num".to_vec(), count);
        outputs
    }
}

pub(super) fn prefix(
    inputs: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let prefix = inputs.need("prefix")?;
    let (max, mut found) = (inputs.max(), Found::default());
    visit_keys(tx, database, prefix, &mut |key| {
        if key.starts_with(prefix) {
            if found.keys.len() == max {
                return Ok(ControlFlow::Break(()));
            }
            found.add(key, inputs)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found.outputs())
}

pub(super) fn regex(
    inputs: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let regex = compile(inputs.need("regex")?, false)
        .ok_or_else(|| DatabaseError::Logic.because("compilation failed"))?;
    let (max, mut found) = (inputs.max(), Found::default());
    visit_keys(tx, database, b"", &mut |key| {
        if regex.is_match(key) {
            if found.keys.len() == max {
                return Ok(ControlFlow::Break(()));
            }
            found.add(key, inputs)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found.outputs())
}

pub(super) fn similar(
    inputs: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let range = inputs.integer("range").and_then(|range| usize::try_from(range).ok()).unwrap_or(1);
    let is_utf8 = inputs.has("utf");
    let origin = characters(inputs.need("origin")?, is_utf8);
    if origin.len() > ORIGIN_LEN_MAX {
        let message = format!("origin has at most {ORIGIN_LEN_MAX} characters");
        return Err(Refusal::new(Kind::Invalid, message));
    }
    let max = inputs.max();
    let (mut nearest, mut reply_bytes) = (BTreeSet::new(), 0);
    visit_keys(tx, database, b"", &mut |key| {
        let key_characters = characters(key, is_utf8);
        if key_characters.len().abs_diff(origin.len()) <= range {
            let distance = distance(&origin, &key_characters);
            if distance <= range {
                reply_bytes += key.len();
                nearest.insert((distance, key.to_vec()));
            }
            if nearest.len() > max {
                reply_bytes -= nearest.pop_last().map_or(0, |(_, key)| key.len());
            }
            inputs.check_reply(reply_bytes)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let keys = nearest.into_iter().map(|(_, key)| key).collect();
    Ok(Found { keys, bytes: reply_bytes }.outputs())
}

/// Visits the keys of a database that begin with `prefix`, in order if the database has one. In a
/// database without an order, visits all keys.
fn visit_keys(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    visit_key: &mut dyn FnMut(&[u8]) -> Visited,
) -> Result<(), Refusal> {
    visit(tx, database, prefix, &mut |entry| visit_key(entry.key))
}
