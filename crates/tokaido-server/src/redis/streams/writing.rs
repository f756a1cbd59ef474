//! Entries in replies, and whatever else the stream commands have in common.

use std::ops::{ControlFlow, RangeInclusive};

use tokaido_collections::{Fields, State, Stream, StreamId};
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};

use crate::redis::{
    call::{Call, check_visit},
    failure::Failure,
    reply::Reply,
    written::Written,
};

/// The stream named by the argument at `index`.
pub(super) fn stream<'c>(call: &Call<'c>, index: usize) -> Stream<'c> {
    Stream::new(call.database, call.arg(index))
}

/// Records a command's names for what it did to the stream that `index` refers to.
pub(super) fn tell(
    call: &Call<'_>,
    tx: &dyn WriteTransaction,
    index: usize,
    names: &'static [&'static str],
) {
    call.shared.notifier.note_names(call.database, call.arg(index), names, tx);
}

pub(super) fn write_id(reply: &mut dyn Reply, id: StreamId) {
    reply.bulk(id.to_string().as_bytes());
}

/// Writes an entry: its id, and its fields with their values.
pub(super) fn write_entry(reply: &mut dyn Reply, id: StreamId, fields: Fields<'_>) {
    reply.array(2);
    write_id(reply, id);
    reply.array(fields.len());
    fields.for_each(|text| reply.bulk(text));
}

/// Which entries of a stream to write.
pub(super) struct Wanted {
    pub(super) ids: RangeInclusive<StreamId>,
    pub(super) direction: Direction,
    /// Maximum number of entries.
    pub(super) count: u64,
}

/// Writes entries as one array, and calls `visit` with the id of each.
///
/// # Errors
/// [`Failure::TakesLong`] if there are many and others wait for the thread.
pub(super) fn write_entries(
    reply: &mut dyn Reply,
    tx: &mut (impl ReadTransaction + ?Sized),
    (stream, state): (Stream<'_>, &State),
    wanted: Wanted,
    may_take_long: bool,
    visit: &mut dyn FnMut(StreamId),
) -> Result<(), Failure> {
    let Wanted { ids, direction, count } = wanted;
    let (mut left, mut seen, mut checked) = (count, 0, Ok(()));
    let mut written = Written::begin(reply);
    if left > 0 {
        stream.visit(tx, state, ids, direction, &mut |id, fields| {
            seen += 1;
            left -= 1;
            checked = check_visit(may_take_long, seen);
            visit(id);
            let flow = written.element(|reply| write_entry(reply, id, fields));
            if left == 0 || checked.is_err() { ControlFlow::Break(()) } else { flow }
        })?;
    }
    written.end(|reply, len| reply.array(len));
    checked
}

/// The error for a missing group, or a missing stream.
pub(super) fn no_group(call: &Call<'_>, key: usize, group: usize, context: &str) -> Failure {
    Failure::NoGroup(format!(
        "No such key '{}' or consumer group '{}'{context}",
        shown(call.arg(key)),
        shown(call.arg(group))
    ))
}

/// The error for a group that the stream does not have.
pub(super) fn no_group_of(call: &Call<'_>, key: usize, group: usize) -> Failure {
    Failure::NoGroup(format!(
        "No such consumer group '{}' for key name '{}'",
        shown(call.arg(group)),
        shown(call.arg(key))
    ))
}

/// The error for arguments that are not options of the subcommand.
pub(super) fn wrong_options(call: &Call<'_>, command: &str) -> Failure {
    let name = shown(call.arg(1));
    Failure::other(format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try {command} HELP."
    ))
}

/// A client's text for use in an error, which is one line.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}
