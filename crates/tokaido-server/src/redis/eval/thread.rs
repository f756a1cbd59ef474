//! The scripts of one thread: its virtual machine, and how what runs there is stopped from another thread.

use std::sync::{Arc, Mutex, PoisonError};

use tokaido_script::{CallError, Interrupt, RedisCall, RedisVm, Scope, Value};

use super::cache::Script;
use crate::{Shared, redis::failure::Failure, shared::REDIS_VERSION_NUMBERS};

/// What other threads know of one that runs scripts.
pub(super) struct Slot {
    interrupt: Interrupt,
    is_running: Mutex<bool>,
}

impl Slot {
    /// Notes that a script begins or has ended. Whatever was to be stopped before has ended, too.
    fn set_running(&self, is_running: bool) {
        let mut was_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *was_running = is_running;
        self.interrupt.clear();
    }

    /// Stops the script that runs; tells whether there is one.
    pub(super) fn kill(&self) -> bool {
        let is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_running {
            self.interrupt.raise();
        }
        *is_running
    }
}

/// A script runs, until this is dropped.
struct Running<'s>(&'s Slot);

impl<'s> Running<'s> {
    fn begin(slot: &'s Slot) -> Self {
        slot.set_running(true);
        Self(slot)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set_running(false);
    }
}

/// The scripts of one thread. Its virtual machine is made for the first of them.
#[derive(Default)]
pub(crate) struct ThreadScripts {
    machine: Option<Box<Machine>>,
}

struct Machine {
    vm: RedisVm,
    slot: Arc<Slot>,
    /// Of the cache, when the compiled scripts were last forgotten.
    generation: u64,
}

impl ThreadScripts {
    fn machine(&mut self, shared: &Shared) -> Result<&mut Machine, Failure> {
        let generation = shared.scripts.generation();
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => {
                let vm = RedisVm::new(shared.limits().script(), REDIS_VERSION_NUMBERS)
                    .map_err(|error| Failure::other(error.to_string()))?;
                let slot = Slot { interrupt: vm.interrupt(), is_running: Mutex::new(false) };
                let slot = Arc::new(slot);
                shared.scripts.enter(&slot);
                Box::new(Machine { vm, slot, generation })
            }
        };
        let machine = self.machine.insert(machine);
        if machine.generation != generation {
            machine.vm.forget();
            machine.generation = generation;
        }
        Ok(machine)
    }

    /// Compiles a script, and makes it known to the server.
    pub(super) fn compile(&mut self, shared: &Shared, script: &Arc<Script>) -> Result<(), Failure> {
        let compiled = self.machine(shared)?.vm.compile(script.as_redis());
        compiled.map_err(|message| {
            Failure::other(format!("Error compiling script (new function): {message}"))
        })?;
        shared.scripts.keep(script, shared.limits());
        Ok(())
    }

    /// Runs a script.
    pub(super) fn call(
        &mut self,
        shared: &Shared,
        call: RedisCall<'_>,
        scope: Scope<'_>,
    ) -> Result<Result<Value, CallError>, Failure> {
        let Machine { vm, slot, .. } = self.machine(shared)?;
        let _running = Running::begin(slot);
        Ok(vm.call(call, scope))
    }
}
