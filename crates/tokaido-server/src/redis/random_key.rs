//! RANDOMKEY: a key drawn by lot from an order that says nothing of how many keys there are between two.
//!
//! A database of up to [`WALK_MAX`] records is walked through to the chosen one, so that each is as likely as any
//! other: some 50 ns a record. In a larger one a path is taken from the first byte on, at each place by lot
//! among the bytes that keys have there, which favours keys with few neighbours. So [`CANDIDATES`] are drawn, and
//! one of them is chosen with a chance that makes up for that: some hundreds of look-ups.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, ReadTransaction, ScanRange, Scanner};

use super::{failure::Failure, random::random};

/// Maximum number of records that are walked through.
const WALK_MAX: u64 = 10_000;

/// How many keys are drawn in a larger database, for one of them to be chosen.
const CANDIDATES: usize = 8;

/// Some key of a database whose keys have an order.
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
        // Some records have expired and were counted all the same.
        Err(live) => Ok(walk(tx, database, random() % live)?.ok()),
    }
}

/// The key at a place in the order, or how many there are.
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

/// Chooses one of the candidates, in proportion to how unlikely each was.
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

/// A random number from 0 up to, but not, 1.
fn fraction() -> f64 {
    const BITS: u32 = 53;
    (random() >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// A key, and the product of the numbers of ways at all places where the path to it parted from others.
fn descend(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Option<(Vec<u8>, f64)>, Failure> {
    /// So many ways are told from more; the sum for all candidates is a number yet.
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

/// The bytes that follow `prefix` in keys; none for the key that ends there.
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

/// The first or the last key that begins with `prefix`.
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
