//! Ctrl-C, which stops the Lua that runs and not the program.

use std::{
    ffi::c_int,
    io, mem, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokaido_script::Interrupt;

use crate::error::{EXIT_INTERRUPTED, Error};

/// What Ctrl-C raises.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// Whether something runs that can be interrupted.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C raises `interrupt`, once in a program. It ends the program if nothing is
/// [`Running`], and if nothing has come of the first: what works in the system or in a
/// library looks at no flag. A store is none the worse for it.
pub(crate) fn catch(interrupt: Interrupt) -> Result<(), Error> {
    let failed = || Error::signal(io::Error::last_os_error());
    // SAFETY: a zeroed `sigaction` is a valid one; the handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGINT, ptr::null(), &raw mut action) != 0 {
            return Err(failed());
        }
        // Whoever started us in the background does not want it to end us.
        if action.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let _ = INTERRUPT.set(interrupt);
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(libc::SIGINT, &raw const action, ptr::null_mut()) != 0 {
            return Err(failed());
        }
    }
    Ok(())
}

extern "C" fn on_signal(_: c_int) {
    let is_running = IS_RUNNING.load(Ordering::SeqCst);
    if !(is_running && INTERRUPT.get().is_some_and(|interrupt| !interrupt.raise())) {
        // SAFETY: has no conditions.
        unsafe { libc::_exit(EXIT_INTERRUPTED.into()) };
    }
}

/// As long as this is there, something runs that can be interrupted.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begin() -> Self {
        let running = Self(());
        running.forget_interrupt();
        IS_RUNNING.store(true, Ordering::SeqCst);
        running
    }

    /// A Ctrl-C that came is over: what is begun next is not meant by it.
    pub(crate) fn forget_interrupt(&self) {
        if let Some(interrupt) = INTERRUPT.get() {
            interrupt.clear();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C came while the last one was [`Running`], and was not forgotten since.
pub(crate) fn was_raised() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_raised)
}
