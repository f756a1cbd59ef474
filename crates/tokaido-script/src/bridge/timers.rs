//! The timers that the code of a virtual machine has made.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::context::{Context, Fault, NO, YES};
use crate::Timer;

/// The number of the last timer, across all virtual machines.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The timers of one virtual machine, by number.
#[derive(Default)]
pub(crate) struct Timers {
    /// Timers that have not been started yet.
    made: Vec<Timer>,
    /// Timers yet to run, including those.
    pending: HashSet<u64>,
    /// About to run; whether there is room for it is checked later.
    due: Option<u64>,
    running: HashSet<u64>,
}

impl Timers {
    pub(crate) fn take_made(&mut self) -> Vec<Timer> {
        std::mem::take(&mut self.made)
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.pending.contains(&number) || self.running.contains(&number)
    }

    /// How many have yet to run, or have not finished.
    pub(crate) fn count(&self) -> usize {
        self.pending.len() + self.running.len()
    }

    /// The timer's function runs now, unless it has begun already.
    pub(crate) fn begin(&mut self, number: u64) {
        self.due = self.pending.take(&number);
    }

    /// The timer has finished.
    pub(crate) fn end(&mut self, number: u64) {
        self.pending.remove(&number);
        self.running.remove(&number);
    }
}

/// Makes a timer, whose number is the reply's number; `NO` if too many are pending already.
pub(super) fn timer_make(context: &mut Context, delay_ms: f64) -> Result<i32, Fault> {
    if context.timers.pending.len() >= context.limits.timers_pending_max {
        return Ok(NO);
    }
    let number = LAST_NUMBER.fetch_add(1, Relaxed) + 1;
    let delay = Duration::try_from_secs_f64(delay_ms / 1000.0).unwrap_or(Duration::MAX);
    let maker = context.exchange.is_running().then(|| context.procedure.clone());
    context.timers.pending.insert(number);
    context.timers.made.push(Timer { number, delay, maker });
    context.reply.number = number as f64;
    Ok(YES)
}

/// The function of the timer that is due is about to run; `NO` if too many are running already.
pub(super) fn timer_run(context: &mut Context, number: f64) -> Result<i32, Fault> {
    let timers = &mut context.timers;
    let Some(due) = timers.due.take_if(|due| *due as f64 == number) else { return Ok(NO) };
    if timers.running.len() >= context.limits.timers_running_max {
        return Ok(NO);
    }
    timers.running.insert(due);
    Ok(YES)
}

/// How many timers are pending, as the reply's number, and how many are running, as its flags.
pub(super) fn timer_counts(context: &mut Context) -> Result<i32, Fault> {
    context.reply.number = context.timers.pending.len() as f64;
    context.reply.flags = context.timers.running.len() as f64;
    Ok(YES)
}
