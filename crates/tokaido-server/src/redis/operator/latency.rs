//! LATENCY: when commands of each kind took long, and how long each command takes.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};

use crate::redis::{
    call::Call,
    command::{Command, Flags, rows},
    failure::Failure,
    introspection, table,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"latency" -2 Container(None), NO_KEY [] Server "2.8.13"
    ""
    "Commands about slow commands, by kind.";
"latency|doctor" 2 Server(doctor), NO_KEY [ADMIN DANGEROUS] Server "2.8.13"
    ""
    "Explains in words what took long, and what can be done about it.";
"latency|graph" 3 Server(graph), NO_KEY [ADMIN DANGEROUS] Server "2.8.13"
    "event"
    "Draws the latest samples of an event as bars.";
"latency|help" 2 Server(introspection::help), NO_KEY [] Server "2.8.13"
    ""
    "Lists the subcommands.";
"latency|histogram" -2 Server(histogram), NO_KEY [ADMIN DANGEROUS] Server "7.0.0"
    "[command [command ...]]"
    "Returns how many calls of each command took how long.";
"latency|history" 3 Server(history), NO_KEY [ADMIN DANGEROUS] Server "2.8.13"
    "event"
    "Returns the latest samples of an event.";
"latency|latest" 2 Server(latest), NO_KEY [ADMIN DANGEROUS] Server "2.8.13"
    ""
    "Returns the latest and the longest time of each event.";
"latency|reset" -2 Server(reset), NO_KEY [ADMIN DANGEROUS] Server "2.8.13"
    "[event [event ...]]"
    "Clears the samples of the given events, or of all; returns how many events were cleared.";
};

/// Maximum number of samples kept per event.
const SAMPLES_MAX: usize = 160;

/// How long an event took, in ms, and when it occurred, in seconds since the epoch.
#[derive(Clone, Copy)]
struct Sample {
    at_s: u64,
    took_ms: u64,
}

#[derive(Default)]
struct Event {
    longest_ms: u64,
    /// Newest last.
    samples: VecDeque<Sample>,
}

/// The latest samples of each kind of event. There are two: `command`, and `fast-command` for a
/// command that should take constant or logarithmic time.
#[derive(Default)]
pub(super) struct LatencyLog(Mutex<BTreeMap<&'static str, Event>>);

impl LatencyLog {
    /// Records a sample. Only the longest of each second is kept.
    pub(super) fn note(&self, command: &Command, at_s: u64, took_ms: u64) {
        let name = if command.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        let mut events = self.lock();
        let event = events.entry(name).or_default();
        event.longest_ms = event.longest_ms.max(took_ms);
        match event.samples.back_mut() {
            Some(last) if last.at_s == at_s => last.took_ms = last.took_ms.max(took_ms),
            _ => event.samples.push_back(Sample { at_s, took_ms }),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn samples(&self, name: &[u8]) -> Vec<Sample> {
        let events = self.lock();
        let event = events.iter().find(|(known, _)| known.as_bytes() == name);
        event.map(|(_, event)| event.samples.iter().copied().collect()).unwrap_or_default()
    }
}

fn latest(call: &mut Call<'_>) -> Result<(), Failure> {
    let events = call.shared.instruments.latency.lock();
    call.reply.array(events.len());
    for (name, event) in &*events {
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        let last = event.samples.back().map_or([0, 0], |last| [last.at_s, last.took_ms]);
        for number in [last[0], last[1], event.longest_ms] {
            call.reply.integer(number as i64);
        }
    }
    Ok(())
}

fn history(call: &mut Call<'_>) -> Result<(), Failure> {
    let samples = call.shared.instruments.latency.samples(call.arg(2));
    call.reply.array(samples.len());
    for Sample { at_s, took_ms } in samples {
        call.reply.array(2);
        call.reply.integer(at_s as i64);
        call.reply.integer(took_ms as i64);
    }
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut events = call.shared.instruments.latency.lock();
    let before = events.len();
    let is_meant = |name: &str| {
        call.len() == 2 || call.request.arguments_from(2).any(|event| event == name.as_bytes())
    };
    events.retain(|name, _| !is_meant(name));
    call.reply.integer((before - events.len()) as i64);
    Ok(())
}

/// Draws a bar for each sample, scaled to the longest.
fn graph(call: &mut Call<'_>) -> Result<(), Failure> {
    const WIDTH: u64 = 60;
    let name = String::from_utf8_lossy(call.arg(2)).into_owned();
    let samples = call.shared.instruments.latency.samples(call.arg(2));
    let Some(longest) = samples.iter().map(|sample| sample.took_ms).max() else {
        return Err(Failure::other(format!("No samples available for event '{name}'")));
    };
    let last_s = samples.last().map_or(0, |sample| sample.at_s);
    let mut text = format!("{name}: the longest took {longest} ms\n");
    for Sample { at_s, took_ms } in samples {
        let bar = "#".repeat((took_ms * WIDTH / longest.max(1)) as usize);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>6} s before the last {took_ms:>8} ms {bar}", last_s - at_s);
    }
    call.reply.verbatim("txt", &text);
    Ok(())
}

fn doctor(call: &mut Call<'_>) -> Result<(), Failure> {
    let instruments = &call.shared.instruments;
    let threshold_ms = instruments.latency_threshold_ms.load(Relaxed);
    let mut text = String::new();
    let events = instruments.latency.lock();
    if threshold_ms == 0 {
        text += "Nothing is noted: set latency-monitor-threshold to as many milliseconds as a command may take.\n";
    } else if events.is_empty() {
        let _ = writeln!(text, "No command has taken {threshold_ms} ms or more.");
    }
    for (name, event) in &*events {
        let (count, longest) = (event.samples.len(), event.longest_ms);
        let sum: u64 = event.samples.iter().map(|sample| sample.took_ms).sum();
        let average = sum / (count as u64).max(1);
        let _ = writeln!(
            text,
            "{name}: in {count} seconds a command took {threshold_ms} ms or more; {average} ms on average, \
             {longest} ms at most."
        );
    }
    if !events.is_empty() {
        text += "SLOWLOG GET tells which commands they were. Ask for less at a time: SCAN, HSCAN, SSCAN and ZSCAN instead \
                 of KEYS, HGETALL, SMEMBERS and ZRANGE over all.\n";
    }
    call.reply.verbatim("txt", &text);
    Ok(())
}

/// Each number counts the calls that took at most so many microseconds.
fn histogram(call: &mut Call<'_>) -> Result<(), Failure> {
    let wanted: Vec<&Command> = match call.len() {
        2 => table::COMMANDS.iter().collect(),
        _ => call.request.arguments_from(2).flat_map(with_subcommands).collect(),
    };
    let rows = wanted.into_iter().map(|command| {
        (command.name, call.shared.instruments.statistics.row(table::number_of(command)))
    });
    let rows: Vec<_> = rows.filter(|(_, row)| row.calls > 0).collect();
    call.reply.map(rows.len());
    for (name, row) in rows {
        call.reply.bulk(name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"calls");
        call.reply.integer(row.calls as i64);
        call.reply.bulk(b"histogram_usec");
        let steps = row.steps();
        call.reply.map(steps.len());
        for (up_to_us, calls) in steps {
            call.reply.integer(up_to_us as i64);
            call.reply.integer(calls as i64);
        }
    }
    Ok(())
}

fn with_subcommands(name: &[u8]) -> impl Iterator<Item = &'static Command> {
    let found = table::find(name, None).map(|command| command.name);
    table::COMMANDS.iter().filter(move |command| {
        found.is_some_and(|name| command.name == name || command.container() == Some(name))
    })
}
