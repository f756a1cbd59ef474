//! Intersection, difference and union of sets.

use std::{collections::HashSet, ops::ControlFlow};

use tokaido_store::{ReadError, ReadTransaction};

use super::set::Set;

/// How many members of one set are looked up in the others at a time.
const BATCH_MEMBERS: usize = 256;

/// Calls `visit` with the members that all of the sets have, until it breaks off.
///
/// # Errors
/// As [`Set::len`], of any of them.
pub fn intersect(
    tx: &mut (impl ReadTransaction + ?Sized),
    sets: &[Set<'_>],
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut lens = Vec::with_capacity(sets.len());
    for (i, set) in sets.iter().enumerate() {
        lens.push((set.len(tx)?, i));
    }
    lens.sort_unstable();
    let order: Vec<Set<'_>> = lens.iter().map(|&(_, i)| sets[i]).collect();
    match (order.split_first(), lens.first()) {
        (Some((smallest, others)), Some((1.., _))) => {
            filter(tx, smallest, others, true, &mut visit)
        }
        _ => Ok(()),
    }
}

/// Calls `visit` with the members that only the first of the sets has, until it breaks off.
///
/// # Errors
/// As [`Set::len`], of any of them.
pub fn subtract(
    tx: &mut (impl ReadTransaction + ?Sized),
    sets: &[Set<'_>],
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    for set in sets {
        set.len(tx)?;
    }
    let Some((first, others)) = sets.split_first() else { return Ok(()) };
    filter(tx, first, others, false, &mut visit)
}

/// Calls `visit` with the members that any of the sets has, each once, until it breaks off. Keeps
/// all of them in memory.
///
/// # Errors
/// As [`Set::len`], of any of them.
pub fn unite(
    tx: &mut (impl ReadTransaction + ?Sized),
    sets: &[Set<'_>],
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let (mut members, mut flow) = (HashSet::new(), ControlFlow::Continue(()));
    for set in sets {
        set.visit(tx, |member| {
            if flow.is_continue() && !members.contains(member) {
                members.insert(member.to_vec());
                flow = visit(member);
            }
            flow
        })?;
    }
    Ok(())
}

/// Calls `visit` with the members of `set` that each of the others has, or that none of them has.
fn filter(
    tx: &mut (impl ReadTransaction + ?Sized),
    set: &Set<'_>,
    others: &[Set<'_>],
    wanted: bool,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut cursor = 0;
    loop {
        let mut members = Vec::new();
        cursor = set.page(tx, cursor, BATCH_MEMBERS, |member| {
            members.push(member.to_vec());
            ControlFlow::Continue(())
        })?;
        for other in others {
            let mut found = Vec::with_capacity(members.len());
            other
                .look_up(tx, members.iter().map(Vec::as_slice), |is_there| found.push(is_there))?;
            let mut found = found.into_iter();
            members.retain(|_| found.next() == Some(wanted));
        }
        if members.iter().any(|member| visit(member).is_break()) || cursor == 0 {
            return Ok(());
        }
    }
}
