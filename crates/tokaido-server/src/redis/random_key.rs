//! RANDOMKEY: a random key from an order that does not tell how many keys lie between two others.
//!
//! A database of up to [`WALK_MAX`] records is walked through to the chosen one, so that all are equally likely,
//! at some 50 ns per record. In a larger one, a key is drawn byte by byte, each at random from the bytes that
//! keys have at that position. This favours keys with few neighbours. So [`CANDIDATES`] are drawn, and one of
//! them is chosen with a probability that makes up for that: some hundreds of look-ups.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, ReadTransaction, ScanRange, Scanner};

use super::{failure::Failure, random::random};

/// Maximum number of records to walk over.
const WALK_MAX: u64 = 10_000;

/// How many keys to draw in a larger database, one of which is then chosen.
const CANDIDATES: usize = 8;

/// Draws a key from a database whose keys are ordered.
pub(super) fn draw(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Option<Vec<u8>>, Failure> {
    let records = tx.statistics(database)?.records;
    if records > WALK_MAX {
        return draw_of_many(tx, database);
    }
    let place = random() % records.max(1);
    match walk(tx, database, place)? {
        Ok(key) => Ok(Some(key)),
        Err(0) => Ok(None),
        // The count included expired records.
        Err(live) => Ok(walk(tx, database, random() % live)?.ok()),
    }
}

/// The key at an index in the order, or the number of keys if there are fewer.
fn walk(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    place: u64,
) -> Result<Result<Vec<u8>, u64>, Failure> {
    let mut found = Err(0);
    Scanner::new(database, ScanRange::all(), usize::MAX).visit(tx, |entry| match &mut found {
        Err(seen) if *seen < place => {
            *seen += 1;
            ControlFlow::Continue(())
        }
        _ => {
            found = Ok(entry.key.to_vec());
            ControlFlow::Break(())
        }
    })?;
    Ok(found)
}

/// Chooses one of the candidates, weighted by how unlikely each was to be drawn.
fn draw_of_many(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Option<Vec<u8>>, Failure> {
    let (mut chosen, mut total) = (None, 0.0);
    for _ in 0..CANDIDATES {
        let Some((key, ways)) = descend(tx, database)? else { continue };
        total += ways;
        if fraction() * total < ways {
            chosen = Some(key);
        }
    }
    Ok(chosen)
}

/// A random number from 0 (inclusive) to 1 (exclusive).
fn fraction() -> f64 {
    const BITS: u32 = 53;
    (random() >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// Draws a key. Also returns the product of the numbers of branches at all forks on its path.
fn descend(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Option<(Vec<u8>, f64)>, Failure> {
    /// Products are capped here, so that the sum over all candidates stays finite.
    const WAYS_MAX: f64 = 1e300;
    let (mut prefix, mut ways) = (Vec::new(), 1.0_f64);
    loop {
        let Some(first) = end(tx, database, &prefix, Direction::Forward)? else { return Ok(None) };
        let Some(last) = end(tx, database, &prefix, Direction::Backward)? else { return Ok(None) };
        if first == last {
            return Ok(Some((first, ways)));
        }
        let common = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
        prefix = first[..common].to_vec();
        let branches = branches(tx, database, &prefix, first)?;
        ways = (ways * branches.len() as f64).min(WAYS_MAX);
        match branches[random() as usize % branches.len()] {
            Some(byte) => prefix.push(byte),
            None => return Ok(Some((prefix, ways))),
        }
    }
}

/// The bytes that follow `prefix` in keys; `None` stands for the key that ends there.
fn branches(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    first: Vec<u8>,
) -> Result<Vec<Option<u8>>, Failure> {
    let (mut branches, mut next) = (Vec::new(), Some(first));
    while let Some(key) = next.filter(|key| key.starts_with(prefix)) {
        let byte = key.get(prefix.len()).copied();
        branches.push(byte);
        let behind = match byte.map(|byte| byte.checked_add(1)) {
            Some(None) => break,
            Some(Some(byte)) => [prefix, &[byte]].concat(),
            None => [prefix, &[0]].concat(),
        };
        let found = tx.seek(database, Bound::Included(&behind), Direction::Forward)?;
        next = found.map(|entry| entry.key.to_vec());
    }
    Ok(branches)
}

/// The first or last key with this prefix.
fn end(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    direction: Direction,
) -> Result<Option<Vec<u8>>, Failure> {
    let range = ScanRange::prefix(prefix);
    let range = if direction == Direction::Forward { range } else { range.reversed() };
    let mut scanner = Scanner::new(database, range, 1);
    Ok(scanner.next(tx)?.map(|entry| entry.key.to_vec()))
}
