//! CLIENT PAUSE and UNPAUSE.

use std::time::{Duration, Instant};

use super::{
    call::Call,
    command::{Command, rows},
    execute::Step,
    failure::Failure,
};
use crate::pause::Paused;

pub(super) const COMMANDS: &[Command] = rows! {
"client|pause" -3 Pause, NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Connection "3.0.0"
    "timeout [WRITE | ALL]"
    "Holds up the requests of clients of all protocols, or only their writes, for a number of milliseconds.";
"client|unpause" 2 Server(unpause), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Connection "6.2.0"
    ""
    "Ends a pause begun by CLIENT PAUSE.";
};

/// Maximum length of a pause: a leap year.
const PAUSE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Prolongs the current pause; without one, begins one if it is on the writer.
pub(super) fn run(call: &mut Call<'_>, is_on_writer: bool) -> Result<Step, Failure> {
    let paused = match call.len() {
        3 => Paused::All,
        4 if call.is_word(3, "WRITE") => Paused::Writes,
        4 if call.is_word(3, "ALL") => Paused::All,
        4 => return Err(Failure::other("CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(call.wrong_arity("client|pause")),
    };
    let wrong = |_| Failure::other("timeout is not an integer or out of range");
    let timeout_ms = call.integer(2).map_err(wrong)?;
    let negative = |_| Failure::other("timeout is negative");
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).map_err(negative)?);
    let until = Instant::now() + timeout.min(PAUSE_MAX);
    if !call.shared.pause.prolong(paused, until) {
        if !is_on_writer {
            return Ok(Step::NeedsWriter);
        }
        call.shared.pause.begin(paused, until);
    }
    call.reply.ok();
    Ok(Step::Done)
}

fn unpause(call: &mut Call<'_>) -> Result<(), Failure> {
    call.shared.pause.end();
    call.reply.ok();
    Ok(())
}
