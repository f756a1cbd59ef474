//! SLOWLOG: the latest commands that took long.
//!
//! The time measured is that of running the command, without waiting for its turn or for the disk.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{instruments::Ran, shown};
use crate::{
    redis::{
        call::Call,
        command::{Command, rows},
        failure::Failure,
        introspection,
    },
    shared::wall_clock_us,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"slowlog" -2 Container(None), NO_KEY [] Server "2.2.12"
    ""
    "Commands about the slow log.";
"slowlog|get" -2 Server(get), NO_KEY [ADMIN DANGEROUS] Server "2.2.12"
    "[count]"
    "Returns the latest slow commands, when they ran and how long they took.";
"slowlog|help" 2 Server(introspection::help), NO_KEY [] Server "6.2.0"
    ""
    "Lists the subcommands.";
"slowlog|len" 2 Server(len), NO_KEY [ADMIN DANGEROUS] Server "2.2.12"
    ""
    "Returns the number of entries in the slow log.";
"slowlog|reset" 2 Server(reset), NO_KEY [ADMIN DANGEROUS] Server "2.2.12"
    ""
    "Empties the slow log.";
};

/// Maximum number of arguments that an entry keeps.
const ARGUMENTS_MAX: usize = 32;

/// Maximum length of an argument that an entry keeps whole, in bytes.
const ARGUMENT_LEN_MAX: usize = 128;

/// Default number of entries to return.
const GIVEN_DEFAULT: i64 = 10;

struct Entry {
    id: u64,
    at_s: u64,
    took_us: u64,
    arguments: Vec<Vec<u8>>,
    peer: String,
    name: String,
}

#[derive(Default)]
struct Entries {
    next_id: u64,
    /// Newest first.
    entries: VecDeque<Entry>,
}

/// The slow log.
#[derive(Default)]
pub(super) struct SlowLog(Mutex<Entries>);

impl SlowLog {
    pub(super) fn note(&self, ran: &Ran<'_>, took_us: u64, entries_max: usize) {
        let arguments = kept(ran);
        let (peer, name) = (ran.client.peer.clone(), ran.client.names().connection);
        let mut log = self.lock();
        let id = log.next_id;
        log.next_id += 1;
        let at_s = wall_clock_us() / 1_000_000;
        log.entries.push_front(Entry { id, at_s, took_us, arguments, peer, name });
        log.entries.truncate(entries_max);
    }

    /// Drops the oldest entries beyond `entries_max`.
    pub(super) fn limit(&self, entries_max: usize) {
        self.lock().entries.truncate(entries_max);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments that an entry keeps, with a note of how many more there were, in Redis's wording.
fn kept(ran: &Ran<'_>) -> Vec<Vec<u8>> {
    let len = ran.request.len();
    let count = if len > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { len };
    let mut arguments: Vec<Vec<u8>> = (0..count)
        .map(|index| {
            let argument = shown::argument(ran.command, ran.request, index);
            match argument.split_at_checked(ARGUMENT_LEN_MAX) {
                Some((head, rest)) if !rest.is_empty() => {
                    let more = format!("... ({} more bytes)", rest.len());
                    [head, more.as_bytes()].concat()
                }
                _ => argument.to_vec(),
            }
        })
        .collect();
    if count < len {
        arguments.push(format!("... ({} more arguments)", len - count).into_bytes());
    }
    arguments
}

fn get(call: &mut Call<'_>) -> Result<(), Failure> {
    let count = match call.len() {
        2 => Some(GIVEN_DEFAULT),
        3 => call.integer(2).ok().filter(|count| *count >= -1),
        _ => {
            return Err(Failure::other(
                "unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
            ));
        }
    };
    let count =
        count.ok_or_else(|| Failure::other("count should be greater than or equal to -1"))?;
    let log = call.shared.instruments.slow_log.lock();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(log.entries.len());
    call.reply.array(count);
    for entry in log.entries.iter().take(count) {
        call.reply.array(6);
        for number in [entry.id, entry.at_s, entry.took_us] {
            call.reply.integer(number as i64);
        }
        call.reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| call.reply.bulk(argument));
        call.reply.bulk(entry.peer.as_bytes());
        call.reply.bulk(entry.name.as_bytes());
    }
    Ok(())
}

fn len(call: &mut Call<'_>) -> Result<(), Failure> {
    let len = call.shared.instruments.slow_log.lock().entries.len();
    call.reply.integer(len as i64);
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Result<(), Failure> {
    call.shared.instruments.slow_log.limit(0);
    call.reply.ok();
    Ok(())
}
