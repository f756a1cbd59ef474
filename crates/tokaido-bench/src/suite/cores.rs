//! Pins threads to cores.

use std::{io, mem};

/// The last core that this thread may use.
pub(super) fn last() -> Option<usize> {
    let set = of_this_thread().ok()?;
    // SAFETY: every number asked for is within the set.
    (0..libc::CPU_SETSIZE as usize).rev().find(|core| unsafe { libc::CPU_ISSET(*core, &set) })
}

/// Pins this thread, and whatever it starts, to a core. It makes only system calls, so it may also be called between fork and exec.
pub(super) fn keep_to(core: usize) -> io::Result<()> {
    // SAFETY: a zeroed set is an empty one, and `core` is within it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(core, &mut set);
        set
    };
    set_of_this_thread(&set)
}

/// Pins this thread, and whatever it starts meanwhile, to one core, until this value is dropped.
pub(super) struct OneCore {
    before: libc::cpu_set_t,
}

impl OneCore {
    pub(super) fn keep() -> io::Result<Self> {
        let before = of_this_thread()?;
        last().map_or(Ok(()), keep_to)?;
        Ok(Self { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // This was allowed before. If it fails, the rest is slower, and nothing else happens.
        let _ = set_of_this_thread(&self.before);
    }
}

fn of_this_thread() -> io::Result<libc::cpu_set_t> {
    // SAFETY: a zeroed set is an empty one, and the kernel writes no more than its size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_of_this_thread(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the kernel reads no more than the size of the set.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count() -> i32 {
        // SAFETY: it only reads the set.
        unsafe { libc::CPU_COUNT(&of_this_thread().unwrap()) }
    }

    #[test]
    fn a_thread_keeps_to_one_core_for_a_while() {
        let before = count();
        let one = OneCore::keep().unwrap();
        assert_eq!(count(), 1);
        drop(one);
        assert_eq!(count(), before);
    }
}
