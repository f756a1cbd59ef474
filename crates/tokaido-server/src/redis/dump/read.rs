//! What DUMP returns.

use tokaido_collections::{Hash, List, Set, SortedSet, Span};
use tokaido_store::{Direction, Kind, ReadTransaction};
use tokaido_wire::rdb::{self, Encoder};

use crate::redis::{call::Call, failure::Failure};

/// The payload of the record under a key.
pub(in crate::redis) fn payload(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    key: &[u8],
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(record) = tx.get(call.database, key)? else { return Ok(None) };
    let mut payload = Vec::new();
    match record.kind {
        Kind::Bytes => Encoder::new(&mut payload).string(record.value),
        Kind::Stream => super::streams::write(call, tx, key, &mut payload)?,
        kind => collection(call, tx, key, kind, &mut payload)?,
    }
    rdb::seal(&mut payload);
    Ok(Some(payload))
}

/// Writes as many elements as were announced, or stops when the room is used up.
fn collection(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    key: &[u8],
    kind: Kind,
    payload: &mut Vec<u8>,
) -> Result<(), Failure> {
    let (database, mut written, mut room) = (call.database, 0, call.room());
    let mut encoder = Encoder::new(payload);
    let elements;
    match kind {
        Kind::Bytes | Kind::Stream => return Err(Failure::WrongKind),
        Kind::List => {
            let list = List::new(database, key);
            elements = list.len(tx)?;
            call.check_visit(elements)?;
            encoder.list(elements);
            list.visit(tx, 0..elements, Direction::Forward, |_, item| {
                encoder.text(item);
                written += 1;
                room.take(item.len())
            })?;
        }
        Kind::Set => {
            let set = Set::new(database, key);
            elements = set.len(tx)?;
            call.check_visit(elements)?;
            encoder.set(elements);
            set.visit(tx, |member| {
                encoder.text(member);
                written += 1;
                room.take(member.len())
            })?;
        }
        Kind::Hash => {
            let hash = Hash::new(database, key);
            elements = hash.len(tx)?;
            call.check_visit(elements)?;
            encoder.hash(elements);
            hash.visit(tx, |field, value| {
                encoder.text(field);
                encoder.text(value);
                written += 1;
                room.take(field.len() + value.len())
            })?;
        }
        Kind::SortedSet => {
            let set = SortedSet::new(database, key);
            elements = set.len(tx)?;
            call.check_visit(elements)?;
            encoder.sorted_set(elements);
            // From the highest score down, as in Redis, which restores this order fastest.
            set.visit(tx, &Span::all(), Direction::Backward, |member, score| {
                encoder.text(member);
                encoder.score(score);
                written += 1;
                room.take(member.len())
            })?;
        }
    }
    call.check_room(&room)?;
    call.check_written(written, elements as usize)
}
