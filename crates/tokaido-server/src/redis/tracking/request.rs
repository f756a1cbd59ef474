//! One request of a session, as far as tracking is concerned.

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

/// A request begins. A session that tracks keys reads what was committed until now.
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

/// Notes that a command reads its keys, if the session tracks them, and lets it read what is committed now.
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

/// A request has run: what it has changed is the session's own, and what CLIENT CACHING has chosen was for it.
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
