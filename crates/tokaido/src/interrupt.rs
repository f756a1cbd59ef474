//! Ctrl-C, which stops the running Lua and not the program.

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

/// The interrupts that Ctrl-C raises: one for each virtual machine.
static INTERRUPTS: OnceLock<Vec<Interrupt>> = OnceLock::new();

/// Whether something interruptible is running.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C raises these; may be called once in a program. Ctrl-C ends the program
/// if nothing is [`Running`], or if an earlier one had no effect: system and library calls
/// do not check the flag. This does not harm a store.
pub(crate) fn catch(interrupts: impl IntoIterator<Item = Interrupt>) -> Result<(), Error> {
    let failed = || Error::signal(io::Error::last_os_error());
    // SAFETY: a zeroed `sigaction` is valid; the handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGINT, ptr::null(), &raw mut action) != 0 {
            return Err(failed());
        }
        // A program that was started in the background must not end by Ctrl-C.
        if action.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let _ = INTERRUPTS.set(interrupts.into_iter().collect());
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
    // Raise all of them, whatever the first one returns.
    let raise = |all: &Vec<Interrupt>| all.iter().filter(|one| !one.raise()).count() == all.len();
    if !(is_running && INTERRUPTS.get().is_some_and(raise)) {
        // SAFETY: the call has no preconditions.
        unsafe { libc::_exit(EXIT_INTERRUPTED.into()) };
    }
}

/// While this exists, something interruptible is running.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begin() -> Self {
        let running = Self(());
        running.forget_interrupt();
        IS_RUNNING.store(true, Ordering::SeqCst);
        running
    }

    /// Forgets an earlier Ctrl-C: it is not meant for what begins next.
    pub(crate) fn forget_interrupt(&self) {
        INTERRUPTS.get().into_iter().flatten().for_each(Interrupt::clear);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C came while the last one was [`Running`], and has not been forgotten since.
pub(crate) fn was_raised() -> bool {
    INTERRUPTS.get().is_some_and(|all| all.iter().any(Interrupt::is_raised))
}
