//! The steps of a request that concern tracking.

use std::sync::Arc;

use super::reader::Reader;
use crate::{
    protocol::Target,
    redis::{
        call::Call,
        command::Command,
        execute::{Step, Wanted},
        failure::Failure,
        session::Session,
    },
};

/// Begins a request. A session that tracks keys gets a snapshot of everything committed so far.
pub(in crate::redis) fn begin(
    session: &Session,
    target: &mut Target<'_>,
) -> Result<Option<Arc<Reader>>, Failure> {
    let reader = session.begin_reading();
    if let (Some(_), Target::Snapshot(snapshot)) = (&reader, target) {
        snapshot.renew()?;
    }
    Ok(reader)
}

/// Records that a command reads its keys, if the session tracks them, and lets it read what is committed now.
pub(in crate::redis) fn note_reads(
    command: &Command,
    call: &Call<'_>,
    target: &mut Target<'_>,
) -> Result<(), Failure> {
    if let Some(reader) = &call.reader
        && !reader.remember(command, call)
        && let Target::Snapshot(snapshot) = target
    {
        snapshot.renew()?;
    }
    Ok(())
}

/// Ends a request: its changes count as the session's own, and the choice of CLIENT CACHING was for it.
pub(in crate::redis) fn end(
    session: &mut Session,
    call: &Call<'_>,
    wanted: Wanted,
    result: &Result<Step, Failure>,
) {
    if let Some(number) = call.committed {
        session.note_commit(number);
    }
    if !matches!(result, Ok(Step::NeedsWriter | Step::NeedsPool | Step::Block { .. })) {
        session.end_choice(wanted.name().starts_with("client"));
    }
}
