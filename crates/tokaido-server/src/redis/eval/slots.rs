//! What other threads can see of a thread that runs clients' Lua code: what runs, and how to stop it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokaido_script::Interrupt;

/// Maximum length of a command as shown to others, in bytes. Arguments beyond it are left out.
const COMMAND_LEN_MAX: usize = 4 << 10;

/// The state of one thread that other threads can see.
pub(in crate::redis) struct Slot {
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the running code started.
    since: Option<Instant>,
    /// Its name and the command that runs it, concatenated. The memory is reused from one run to the next.
    texts: Vec<u8>,
    ends: Vec<usize>,
}

/// A script or function that is running.
#[derive(Debug)]
pub(in crate::redis) struct RunningScript {
    pub(in crate::redis) name: Vec<u8>,
    pub(in crate::redis) command: Vec<Vec<u8>>,
    pub(in crate::redis) for_so_long: Duration,
}

impl Slot {
    pub(in crate::redis) fn new(interrupt: Interrupt) -> Self {
        Self { interrupt, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a run, which ends when the returned guard is dropped. Earlier requests to stop
    /// a run do not affect it. `texts` are its name and the command.
    pub(in crate::redis) fn begin<'t>(&self, texts: impl Iterator<Item = &'t [u8]>) -> Running<'_> {
        let mut state = self.lock();
        let State { since, texts: bytes, ends } = &mut *state;
        bytes.clear();
        ends.clear();
        for text in texts {
            if bytes.len() + text.len() > COMMAND_LEN_MAX {
                break;
            }
            bytes.extend_from_slice(text);
            ends.push(bytes.len());
        }
        *since = Some(Instant::now());
        self.interrupt.clear();
        Running(self)
    }

    /// Stops what is running. Returns whether anything was.
    fn kill(&self) -> bool {
        let state = self.lock();
        let is_running = state.since.is_some();
        if is_running {
            self.interrupt.raise();
        }
        is_running
    }

    fn running(&self) -> Option<RunningScript> {
        let state = self.lock();
        let for_so_long = state.since?.elapsed();
        let starts = [0].into_iter().chain(state.ends.iter().copied());
        let text = |(start, &end): (usize, &usize)| state.texts[start..end].to_vec();
        let mut texts = starts.zip(&state.ends).map(text);
        let name = texts.next().unwrap_or_default();
        Some(RunningScript { name, command: texts.collect(), for_so_long })
    }
}

/// Marks the slot as running until it is dropped.
pub(in crate::redis) struct Running<'s>(&'s Slot);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().since = None;
        self.0.interrupt.clear();
    }
}

/// The threads that run clients' Lua code.
#[derive(Default)]
pub(in crate::redis) struct Slots(Mutex<Vec<Weak<Slot>>>);

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a thread.
    pub(in crate::redis) fn enter(&self, slot: &Arc<Slot>) {
        let mut slots = self.lock();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(slot));
    }

    /// Stops everything that is running. Returns whether anything was.
    pub(in crate::redis) fn kill(&self) -> bool {
        let slots = self.lock();
        slots.iter().filter_map(Weak::upgrade).fold(false, |any, slot| slot.kill() | any)
    }

    /// The script or function that has run the longest.
    pub(in crate::redis) fn longest_running(&self) -> Option<RunningScript> {
        let slots = self.lock();
        let running = slots.iter().filter_map(Weak::upgrade).filter_map(|slot| slot.running());
        running.max_by_key(|running| running.for_so_long)
    }
}
