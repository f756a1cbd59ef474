//! The functions of one thread: its virtual machine, and the libraries that it has called.

use std::{iter, sync::Arc};

use tokaido_script::{
    CallError, FunctionCall, FunctionVm, RegisteredFunction, Scope, Value, sha1_hex,
};
use tokaido_store::ReadTransaction;
use tokaido_wire::resp::Request;

use super::library::{Libraries, Library};
use crate::{
    Shared,
    redis::{eval::Slot, failure::Failure},
    shared::REDIS_VERSION_NUMBERS,
};

/// The functions of one thread. Its virtual machine is created for the first of them.
#[derive(Default)]
pub(in crate::redis) struct ThreadFunctions {
    machine: Option<Box<Machine>>,
    /// The libraries as the thread saw them last.
    seen: Arc<Libraries>,
}

struct Machine {
    vm: FunctionVm,
    slot: Arc<Slot>,
}

impl ThreadFunctions {
    /// The libraries as the transaction sees them.
    pub(super) fn libraries(
        &mut self,
        shared: &Shared,
        tx: &mut dyn ReadTransaction,
    ) -> Result<Arc<Libraries>, Failure> {
        let libraries = shared.functions.read(tx, &self.seen)?;
        if !Arc::ptr_eq(&libraries, &self.seen) {
            if let Some(machine) = &mut self.machine {
                machine.vm.retain(|id| libraries.has_id(id));
            }
            self.seen = libraries.clone();
        }
        Ok(libraries)
    }

    fn machine(&mut self, shared: &Shared) -> Result<&mut Machine, Failure> {
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => {
                let vm = FunctionVm::new(shared.limits().script(), REDIS_VERSION_NUMBERS)
                    .map_err(|error| Failure::other(error.to_string()))?;
                let slot = Arc::new(Slot::new(vm.interrupt()));
                shared.functions.slots.enter(&slot);
                Box::new(Machine { vm, slot })
            }
        };
        Ok(self.machine.insert(machine))
    }

    /// Loads a library. Returns its functions.
    pub(super) fn load(
        &mut self,
        shared: &Shared,
        code: &[u8],
    ) -> Result<Vec<RegisteredFunction>, Failure> {
        let Machine { vm, slot } = self.machine(shared)?;
        let _running = slot.begin(iter::empty());
        vm.load(&sha1_hex(code), code).map_err(|error| Failure::other(error.to_string()))
    }

    /// Calls a function of a library, which is loaded first if necessary.
    pub(super) fn call(
        &mut self,
        shared: &Shared,
        library: &Library,
        call: FunctionCall<'_>,
        request: Request<'_>,
        scope: Scope<'_>,
    ) -> Result<Result<Value, CallError>, Failure> {
        let Machine { vm, slot } = self.machine(shared)?;
        let texts = iter::once(call.name.as_bytes()).chain(request.iter());
        let _running = slot.begin(texts);
        if !vm.has(&library.id) {
            vm.load(&library.id, &library.code).map_err(|e| Failure::other(e.to_string()))?;
        }
        Ok(vm.call(call, scope))
    }
}
