//! What each procedure amounts to.

use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};
use tokaido_wire::kyoto::{Pairs, Verb};

use super::{
    bulk,
    cursors::{self, Cursor},
    figures::Figure,
    inputs::Inputs,
    matching, records,
    refusal::{DatabaseError, Kind, Refusal},
    report,
};

type Outcome = Result<Pairs, Refusal>;

/// What a procedure does with its inputs.
pub(crate) enum Work {
    /// It is answered at once.
    Answer(fn(&Inputs) -> Outcome),
    /// It reads a database.
    Read(fn(&Inputs, &mut dyn ReadTransaction, DatabaseId) -> Outcome),
    /// It reads all of a database, and may take long.
    Search(fn(&Inputs, &mut dyn ReadTransaction, DatabaseId) -> Outcome),
    /// It writes to a database.
    Write(fn(&Inputs, &mut dyn WriteTransaction, DatabaseId) -> Outcome),
    /// It reads at a cursor.
    ReadAt(fn(&Inputs, &mut Cursor, &mut dyn ReadTransaction, DatabaseId) -> Outcome),
    /// It writes at a cursor.
    WriteAt(fn(&Inputs, &mut Cursor, &mut dyn WriteTransaction, DatabaseId) -> Outcome),
    /// It forgets a cursor.
    Forget,
    /// It reports on the server.
    Report,
    /// It waits until all is durable.
    Synchronize,
    /// It calls one of the operator's procedures.
    Script,
}

/// What a procedure does, and what it is counted as.
pub(crate) fn work(verb: Verb) -> (Work, Figure) {
    use Figure::{Get, Misc, Remove, Script, Set};
    match verb {
        Verb::Void => (Work::Answer(|_| Ok(Pairs::new())), Misc),
        Verb::Echo => (Work::Answer(|inputs| Ok(inputs.pairs().clone())), Misc),
        Verb::TuneReplication => (Work::Answer(|_| refuse("there is no replication")), Misc),
        Verb::UlogList | Verb::UlogRemove => {
            (Work::Answer(|_| refuse("no update log allows no replication")), Misc)
        }
        Verb::Report => (Work::Report, Misc),
        Verb::PlayScript => (Work::Script, Script),
        Verb::Status => (Work::Read(report::status), Misc),
        Verb::Clear => (Work::Write(records::clear), Misc),
        Verb::Synchronize => (Work::Synchronize, Misc),
        Verb::Set => (Work::Write(records::set), Set),
        Verb::Add => (Work::Write(records::add), Set),
        Verb::Replace => (Work::Write(records::replace), Set),
        Verb::Append => (Work::Write(records::append), Set),
        Verb::Increment => (Work::Write(records::increment), Set),
        Verb::IncrementDouble => (Work::Write(records::increment_double), Set),
        Verb::Cas => (Work::Write(records::cas), Set),
        Verb::Remove => (Work::Write(records::remove), Remove),
        Verb::Get => (Work::Read(records::get), Get),
        Verb::Check => (Work::Read(records::check), Get),
        Verb::Seize => (Work::Write(records::seize), Get),
        Verb::SetBulk => (Work::Write(bulk::set), Set),
        Verb::RemoveBulk => (Work::Write(bulk::remove), Remove),
        Verb::GetBulk => (Work::Read(bulk::get), Get),
        Verb::Vacuum => (Work::Read(|_, _, _| Ok(Pairs::new())), Misc),
        Verb::MatchPrefix => (Work::Search(matching::prefix), Misc),
        Verb::MatchRegex => (Work::Search(matching::regex), Misc),
        Verb::MatchSimilar => (Work::Search(matching::similar), Misc),
        Verb::CurJump => (Work::ReadAt(cursors::jump), Misc),
        Verb::CurJumpBack => (Work::ReadAt(cursors::jump_back), Misc),
        Verb::CurStep => (Work::ReadAt(cursors::step), Misc),
        Verb::CurStepBack => (Work::ReadAt(cursors::step_back), Misc),
        Verb::CurSetValue => (Work::WriteAt(cursors::set_value), Set),
        Verb::CurRemove => (Work::WriteAt(cursors::remove), Remove),
        Verb::CurGetKey => (Work::ReadAt(cursors::get_key), Get),
        Verb::CurGetValue => (Work::ReadAt(cursors::get_value), Get),
        Verb::CurGet => (Work::ReadAt(cursors::get), Get),
        Verb::CurSeize => (Work::WriteAt(cursors::seize), Get),
        Verb::CurDelete => (Work::Forget, Misc),
    }
}

/// Refuses what does not exist here.
fn refuse(reason: &str) -> Outcome {
    Err(Refusal::new(Kind::NotImplemented, reason))
}

/// Refuses to run a system command for a client.
pub(crate) fn check_synchronize(inputs: &Inputs) -> Result<(), Refusal> {
    match inputs.get("command") {
        None | Some(b"") => Ok(()),
        Some(_) => {
            let reason = "commands are not run for clients; `tokaido backup` copies a store in use";
            Err(DatabaseError::Logic.because(reason))
        }
    }
}
