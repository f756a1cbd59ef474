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

/// What Ctrl-C raises: one for each virtual machine.
static INTERRUPTS: OnceLock<Vec<Interrupt>> = OnceLock::new();

/// Whether something runs that can be interrupted.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C raises these, once in a program. It ends the program if nothing is
/// [`Running`], and if nothing has come of the first: what works in the system or in a
/// library looks at no flag. A store is none the worse for it.
pub(crate) fn catch(interrupts: impl IntoIterator<Item = Interrupt>) -> Result<(), Error> {
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
    // All of them, whatever the first one says.
    let raise = |all: &Vec<Interrupt>| all.iter().filter(|one| !one.raise()).count() == all.len();
    if !(is_running && INTERRUPTS.get().is_some_and(raise)) {
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
        INTERRUPTS.get().into_iter().flatten().for_each(Interrupt::clear);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C came while the last one was [`Running`], and was not forgotten since.
pub(crate) fn was_raised() -> bool {
    INTERRUPTS.get().is_some_and(|all| all.iter().any(Interrupt::is_raised))
}
