//! MONITOR: shows a client every command that other clients run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokaido_wire::resp::Request;

use super::shown;
use crate::{
    Mailbox,
    redis::{
        call::Call,
        clients::Client,
        command::{Command, Flags, rows},
        execute::Step,
        failure::Failure,
        session::Session,
    },
    shared::{MAIN, wall_clock_us},
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"monitor" 1 Connection(monitor), NO_KEY [ADMIN DANGEROUS NO_MULTI NO_SCRIPT] Server "1.0.0"
    ""
    "Shows every command that is run from now on, except administrative ones.";
};

/// The clients that see all commands.
#[derive(Default)]
pub(in crate::redis) struct Monitors {
    /// The number of monitors, so that no lock is needed to find out that there are none.
    count: AtomicUsize,
    mailboxes: Mutex<BTreeMap<u64, Mailbox>>,
}

impl Monitors {
    pub(in crate::redis) fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Shows a command that a client has run, unless it is an administrative one.
    pub(in crate::redis) fn show(&self, client: &Client, command: &Command, request: Request<'_>) {
        if self.has_any() {
            self.show_as(&client.names().database, &client.peer, command, request);
        }
    }

    /// Shows a command that `peer` has run: an address, or `lua` for a script.
    pub(in crate::redis) fn show_as(
        &self,
        database: &str,
        peer: &str,
        command: &Command,
        request: Request<'_>,
    ) {
        if !self.has_any() || command.flags.has(Flags::ADMIN) {
            return;
        }
        let now_us = wall_clock_us();
        let database = if database == MAIN { "0" } else { database };
        let mut line =
            format!("+{}.{:06} [{database} {peer}]", now_us / 1_000_000, now_us % 1_000_000)
                .into_bytes();
        for index in 0..request.len() {
            line.extend_from_slice(b" \"");
            quote(shown::argument(command, request, index), &mut line);
            line.push(b'"');
        }
        line.extend_from_slice(b"\r\n");
        for mailbox in self.lock().values() {
            // A closed client gets nothing; one that lags too far is about to be closed.
            let _ = mailbox.push(&line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Mailbox>> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Quotes like Redis: escapes bytes that are not plain text.
fn quote(text: &[u8], line: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}

/// Lets a session see all commands until this is dropped.
pub(in crate::redis) struct Monitoring {
    shared: Arc<crate::Shared>,
    session: u64,
}

impl Drop for Monitoring {
    fn drop(&mut self) {
        let monitors = &self.shared.instruments.monitors;
        if monitors.lock().remove(&self.session).is_some() {
            monitors.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn monitor(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let Some(mailbox) = session.mailbox().cloned() else {
        return Err(Failure::other("only a connection to a server can monitor it"));
    };
    if session.monitoring.is_none() {
        // Nothing may be shown before the reply to this request.
        mailbox.hold();
        let monitors = &call.shared.instruments.monitors;
        if monitors.lock().insert(session.id(), mailbox).is_none() {
            monitors.count.fetch_add(1, Ordering::Relaxed);
        }
        session.client().is_monitor.store(true, Ordering::Relaxed);
        session.monitoring =
            Some(Monitoring { shared: Arc::clone(session.shared()), session: session.id() });
    }
    call.reply.ok();
    Ok(Step::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_escaped() {
        let mut line = Vec::new();
        quote(b"a \"b\" \\ \r\n\t\x07\x08\x00\xff", &mut line);
        assert_eq!(line, br#"a \"b\" \\ \r\n\t\a\b\x00\xff"#);
    }
}
