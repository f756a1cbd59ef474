//! A timer that an event loop can wait for, finer than the milliseconds of its own timeouts.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

pub(super) struct Timer(OwnedFd);

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call has no preconditions.
        let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened above, and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Wakes the event loop once, in `wait`; replaces any earlier setting.
    pub(super) fn set(&self, wait: Duration) -> io::Result<()> {
        // To the kernel, zero means disarming the timer.
        let wait = wait.max(Duration::from_nanos(1));
        let value = libc::timespec {
            tv_sec: wait.as_secs() as libc::time_t,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = libc::itimerspec { it_interval: never, it_value: value };
        // SAFETY: `spec` lives until the call returns, and nothing is to be written.
        let set = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const spec, ptr::null_mut())
        };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
