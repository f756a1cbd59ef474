//! An mruby VM with the part of the API that is written in Ruby, and limited calls into it.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr::NonNull,
    time::Duration,
};

use tokaido_mruby_sys::{self as sys, Item, RawVm};
use tokaido_script::{Limits, RuntimeError, Stop, StopTarget, Value, Watched};

use crate::{
    context::{CALLS, Context},
    report::{Failure, failure_of, unreported},
    setup::Setup,
};

/// The files of the API's Ruby part, in order of dependency.
const PRELUDE: [&str; 8] = [
    include_str!("../ruby/builtin.rb"),
    include_str!("../ruby/core.rb"),
    include_str!("../ruby/procedures.rb"),
    include_str!("../ruby/http.rb"),
    include_str!("../ruby/transaction.rb"),
    include_str!("../ruby/collections.rb"),
    include_str!("../ruby/streams.rb"),
    include_str!("../ruby/regexp.rb"),
];

/// Additional files for mod_mruby scripts.
const MOD_MRUBY_PRELUDE: [&str; 6] = [
    concat!("module Tokaido\n  VERSION = \"", env!("CARGO_PKG_VERSION"), "\".freeze\nend\n"),
    include_str!("../ruby/apache/visit.rb"),
    include_str!("../ruby/apache/apache.rb"),
    include_str!("../ruby/apache/request.rb"),
    include_str!("../ruby/apache/server.rb"),
    include_str!("../ruby/apache/rack.rb"),
];

/// The additional file for command-line scripts.
const SCRIPT_PRELUDE: &str = include_str!("../ruby/script.rb");

/// Their name in backtraces, from which they are removed.
const PRELUDE_PATH: &CStr = c"(tokaido)";

/// Maximum number of symbols that a VM may create: they are never freed, and more symbols make
/// lookups slower. Beyond the limit, the VM is replaced after the call.
const SYMBOLS_MAX: usize = 10_000;

/// A Ruby VM. It belongs to one thread.
pub(crate) struct RubyState {
    /// Dropped before the VM, which the watchdog refers to.
    watched: Option<Watched>,
    raw: NonNull<RawVm>,
    /// From a box. The VM holds its address.
    context: *mut Context,
    limits: Limits,
    /// Number of symbols of the prelude and of mruby itself.
    symbols_first: usize,
    runs_scripts: bool,
}

impl Drop for RubyState {
    fn drop(&mut self) {
        self.watched = None;
        // SAFETY: nothing runs in the VM, and nobody holds its address any more; the context came from a box.
        unsafe {
            sys::tokaido_close(self.raw.as_ptr());
            drop(Box::from_raw(self.context));
        }
    }
}

impl RubyState {
    pub(crate) fn new(setup: &Setup) -> Result<Self, RuntimeError> {
        let limits = setup.limits;
        let context = Box::into_raw(Box::new(Context::new(setup)));
        // SAFETY: the context lives until the VM is closed, and so do the functions.
        let raw =
            unsafe { sys::tokaido_open(&raw const CALLS, context.cast(), limits.memory_bytes) };
        let Some(raw) = NonNull::new(raw) else {
            // SAFETY: it came from a box, and there is no VM that refers to it.
            drop(unsafe { Box::from_raw(context) });
            return Err(cannot_start("there is no memory for it"));
        };
        let target = StopTarget { vm: raw.as_ptr().cast(), stop, go_on };
        let watched = Some(Watched::new(target, setup.interrupt.clone()));
        let mut state =
            Self { watched, raw, context, limits, symbols_first: 0, runs_scripts: false };
        let more: &[&str] = if setup.is_mod_mruby() { &MOD_MRUBY_PRELUDE } else { &[] };
        for text in PRELUDE.iter().chain(more) {
            state
                .load(text.as_bytes(), PRELUDE_PATH)
                .map_err(|failure| cannot_start(&failure.load_message()))?;
        }
        state.symbols_first = state.symbols();
        Ok(state)
    }

    /// The context. It may be used only while no Ruby code runs.
    pub(crate) fn context(&mut self) -> &mut Context {
        // SAFETY: operations borrow it only while Ruby runs, which needs `&mut self`.
        unsafe { &mut *self.context }
    }

    /// Calls a method of `Tokaido::Core`.
    pub(crate) fn call(
        &mut self,
        method: &'static CStr,
        arguments: &[Item],
        count: usize,
    ) -> Result<Value, Failure> {
        self.call_within(Some(self.limits.time), method, arguments, count)
    }

    /// Calls a procedure by its index. A handler gets its request and its response.
    pub(crate) fn run_procedure(
        &mut self,
        place: usize,
        is_handler: bool,
        arguments: &[Item],
        count: usize,
    ) -> Result<Value, Failure> {
        // SAFETY: there are items of `count` values, whose bytes live until this returns.
        self.run(Some(self.limits.time), |raw| unsafe {
            sys::tokaido_run_procedure(raw, place, is_handler, arguments.as_ptr(), count)
        })
    }

    /// Answers a request with the mod_mruby script at index `place`.
    pub(crate) fn answer(&mut self, place: usize) -> Result<Value, Failure> {
        // SAFETY: the VM lives, and nothing runs in it.
        self.run(Some(self.limits.time), |raw| unsafe { sys::tokaido_answer(raw, place) })
    }

    /// Like [`call`](Self::call), but for a script, which has its own time limit.
    pub(crate) fn call_script(
        &mut self,
        method: &'static CStr,
        arguments: &[Item],
        count: usize,
    ) -> Result<Value, Failure> {
        self.call_within(self.limits.script_time, method, arguments, count)
    }

    fn call_within(
        &mut self,
        limit: Option<Duration>,
        method: &'static CStr,
        arguments: &[Item],
        count: usize,
    ) -> Result<Value, Failure> {
        // SAFETY: there are items of `count` values, whose bytes live until this returns.
        self.run(limit, |raw| unsafe {
            sys::tokaido_call(raw, method.as_ptr(), arguments.as_ptr(), count)
        })
    }

    /// Makes the VM run scripts: with their additional methods and their memory limit.
    pub(crate) fn prepare_for_scripts(&mut self) -> Result<(), Failure> {
        if self.runs_scripts {
            return Ok(());
        }
        // SAFETY: the VM lives, and nothing runs in it.
        unsafe {
            let limit = self.limits.script_memory_bytes.unwrap_or(usize::MAX);
            sys::tokaido_set_limit(self.raw.as_ptr(), limit);
        }
        self.load(SCRIPT_PRELUDE.as_bytes(), PRELUDE_PATH)?;
        self.runs_scripts = true;
        Ok(())
    }

    fn load(&mut self, text: &[u8], path: &CStr) -> Result<Value, Failure> {
        // SAFETY: text and path live until this returns.
        self.run(Some(self.limits.time), |raw| unsafe {
            sys::tokaido_load(raw, text.as_ptr().cast(), text.len(), path.as_ptr())
        })
    }

    /// Runs a typed line, after those before it. `None`: it is incomplete, and nothing was run.
    pub(crate) fn run_line(&mut self, text: &str, path: &CStr) -> Result<Option<Value>, Failure> {
        let mut is_unfinished = false;
        // SAFETY: text and path live until this returns.
        let shown = self.run(self.limits.script_time, |raw| unsafe {
            let outcome = sys::tokaido_type(raw, text.as_ptr().cast(), text.len(), path.as_ptr());
            is_unfinished = outcome == sys::UNFINISHED;
            if is_unfinished { sys::DONE } else { outcome }
        })?;
        Ok((!is_unfinished).then_some(shown))
    }

    /// Whether a line has defined a local variable of this name.
    pub(crate) fn has_local(&self, name: &CStr) -> bool {
        // SAFETY: the VM lives, nothing runs in it, and the name lives until this returns.
        unsafe { sys::tokaido_has_local(self.raw.as_ptr(), name.as_ptr()) }
    }

    /// Runs something in the VM, within the time limit.
    fn run(
        &mut self,
        limit: Option<Duration>,
        run: impl FnOnce(*mut RawVm) -> c_int,
    ) -> Result<Value, Failure> {
        let raw = self.raw.as_ptr();
        let watching = self.watched.as_mut().map(|watched| watched.begin(limit));
        let outcome = run(raw);
        let stop = watching.and_then(tokaido_script::Watching::end);
        // SAFETY: the VM lives, and nothing runs in it. Being refused memory stops it, too.
        let is_refused = unsafe {
            sys::tokaido_go_on(raw);
            sys::tokaido_is_refused(raw)
        };
        let gathered = self.context().gathering.take();
        match stop {
            _ if is_refused => Err(Failure::Memory),
            Some(Stop::Time) => Err(Failure::Time),
            Some(Stop::Interrupt) => Err(Failure::Interrupted),
            None if outcome == sys::DONE => Ok(gathered),
            None if outcome == sys::RAISED => Err(failure_of(gathered)),
            None => Err(unreported()),
        }
    }

    /// Whether it must be replaced: a call stopped in the middle of a fiber, or created too many symbols.
    pub(crate) fn is_worn(&self) -> bool {
        // SAFETY: the VM lives.
        let is_sound = unsafe { sys::tokaido_is_sound(self.raw.as_ptr()) };
        !is_sound || self.symbols() > self.symbols_first + SYMBOLS_MAX
    }

    fn symbols(&self) -> usize {
        // SAFETY: the VM lives.
        unsafe { sys::tokaido_symbols(self.raw.as_ptr()) }
    }

    pub(crate) fn usage(&mut self) -> Usage {
        let raw = self.raw.as_ptr();
        // SAFETY: the VM lives, and nothing runs in it.
        unsafe {
            let objects = sys::tokaido_live(raw);
            let held = usize::try_from(sys::tokaido_arena(raw)).unwrap_or(0);
            Usage {
                bytes: sys::tokaido_used(raw),
                objects,
                held,
                symbols: sys::tokaido_symbols(raw),
            }
        }
    }
}

/// What a VM holds after a garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of memory.
    pub bytes: usize,
    /// Objects.
    pub objects: usize,
    /// Number of objects that C code holds.
    pub held: usize,
    /// Symbols.
    pub symbols: usize,
}

pub(crate) fn cannot_start(message: &str) -> RuntimeError {
    RuntimeError { language: "Ruby", message: message.to_owned() }
}

/// # Safety
/// As for [`StopTarget::stop`], with an mruby VM.
unsafe fn stop(vm: *mut c_void) {
    // SAFETY: it stores a pointer, as a signal handler may.
    unsafe { sys::tokaido_stop(vm.cast()) };
}

/// # Safety
/// As for [`StopTarget::go_on`], with an mruby VM.
unsafe fn go_on(vm: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { sys::tokaido_go_on(vm.cast()) };
}
