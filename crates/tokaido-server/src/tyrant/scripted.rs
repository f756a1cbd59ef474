//! `_misc`: the functions of `misc` for Tokyo Tyrant scripts, in the transaction of the script.

use tokaido_script::{CommandError, MiscCall, Transaction};
use tokaido_store::{DatabaseId, WriteTransaction};

use super::{
    misc::{self, Arguments, Results, Work},
    refusal::{ErrorCode, Refusal},
};
use crate::{Shared, selected::Selected};

/// Calls a function of `misc`; returns nothing if it refused. A script is the operator's, so masks and rules do not apply.
pub(crate) fn misc_of_script(
    shared: &Shared,
    transaction: Transaction<'_>,
    call: MiscCall<'_>,
) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
    let Transaction::Write(tx) = transaction else {
        let message = "misc is for procedures that write".to_owned();
        return Err(CommandError::Refused(message));
    };
    match run(shared, tx, call) {
        Ok(results) => Ok(Some(results.items)),
        Err(Refusal { code: ErrorCode::Other, reason }) => Err(CommandError::Failed(reason)),
        Err(refusal) => {
            tracing::debug!(reason = refusal.reason, "misc of a script was refused");
            Ok(None)
        }
    }
}

fn run(
    shared: &Shared,
    tx: &mut dyn WriteTransaction,
    MiscCall { name, arguments, commons }: MiscCall<'_>,
) -> Result<Results, Refusal> {
    let id = database(shared, tx)?;
    let arguments = Arguments::new(arguments.iter().copied());
    let function = misc::find(name, &arguments, shared.tables().has(id))?;
    let mut results = Results::new(shared.limits().tyrant_reply_bytes_max);
    match function.work {
        Work::Read(read) | Work::Search(read) => read(&arguments, tx, id, &mut results)?,
        Work::Write(write) => write(&arguments, tx, id, &mut results)?,
        Work::Iterate(iterate) => {
            let mut iterator = commons.iterator();
            iterate(&arguments, &mut iterator, tx, id, &mut results)?;
        }
        // What a call has written is on disk when it is answered.
        Work::Sync => {}
        // A script sees what its own calls return.
        Work::Error => results.error(ErrorCode::Success)?,
        Work::Refuse(reason) => return Err(Refusal::invalid(reason)),
    }
    Ok(results)
}

/// Whether the database is a table in the store, whatever the configuration says by now.
pub(crate) fn is_table(shared: &Shared) -> bool {
    let id = shared.store().find_database(shared.tyrant.database());
    id.is_some_and(|id| shared.tables().has(id))
}

fn database(shared: &Shared, tx: &mut dyn WriteTransaction) -> Result<DatabaseId, Refusal> {
    let selected = Selected::new(&**shared.store(), shared.tyrant.database());
    let selected = selected.map_err(|error| Refusal::invalid(error.to_string()))?;
    Ok(selected.open_in(tx, shared)?)
}
