//! The scripts of one thread: its virtual machine, and how another thread stops what runs in it.

use std::{iter, sync::Arc};

use tokaido_script::{CallError, RedisCall, RedisVm, Scope, Value};

use super::{cache::Script, slots::Slot};
use crate::{
    Shared,
    redis::{failure::Failure, functions::ThreadFunctions},
    shared::REDIS_VERSION_NUMBERS,
};

/// The scripts of one thread. Its virtual machine is created for the first of them.
#[derive(Default)]
pub(crate) struct ThreadScripts {
    machine: Option<Box<Machine>>,
    /// The functions that FCALL calls, with a virtual machine of their own.
    pub(in crate::redis) functions: ThreadFunctions,
}

struct Machine {
    vm: RedisVm,
    slot: Arc<Slot>,
    /// The cache's generation when the compiled scripts were last discarded.
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
                let slot = Arc::new(Slot::new(vm.interrupt()));
                shared.scripts.slots.enter(&slot);
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

    /// Compiles a script and adds it to the server's cache.
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
        let _running = slot.begin(iter::empty());
        Ok(vm.call(call, scope))
    }
}
