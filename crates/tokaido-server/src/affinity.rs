//! Binding each worker to a core of its own.
//!
//! Where all cores are busy, the scheduler sometimes puts two workers onto one of them while another one idles for many
//! milliseconds. All connections of both wait then.
//!
//! A thread that a bound one starts is bound to the same core, until it calls [`unbind`].

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{bind, unbind};
#[cfg(target_os = "linux")]
pub(crate) use linux::{bind, unbind};

#[cfg(target_os = "linux")]
mod linux {
    use std::{io, mem, sync::OnceLock};

    use libc::cpu_set_t;

    /// The cores that this process could use before a worker was bound.
    static USABLE: OnceLock<cpu_set_t> = OnceLock::new();

    /// Binds this thread to one of the cores that the process may use: the one at `index`, if there are as many cores as `workers`.
    /// With fewer workers, it changes nothing, since several servers would share the first cores and leave the others idle.
    pub(crate) fn bind(index: usize, workers: usize) {
        let Some(usable) = read() else { return };
        let cores = numbers(&usable);
        let Some(&core) = cores.get(index).filter(|_| cores.len() == workers) else { return };
        USABLE.get_or_init(|| usable);
        let mut own = empty();
        // SAFETY: the core is from such a set, so it is not beyond its end.
        unsafe { libc::CPU_SET(core, &mut own) };
        if let Err(error) = apply(&own) {
            tracing::warn!(core, %error, "a worker could not be bound to a core; it may run on any");
        }
    }

    /// Lets this thread, which a bound one may have started, run on any core that the process may use.
    pub(crate) fn unbind() {
        if let Some(Err(error)) = USABLE.get().map(apply) {
            tracing::warn!(%error, "a thread shares the core of a worker");
        }
    }

    fn empty() -> cpu_set_t {
        // SAFETY: all zeros are a valid value, the empty set.
        unsafe { mem::zeroed() }
    }

    /// The cores that this thread may run on; `None` if the system does not tell, as on machines with very many.
    pub(super) fn read() -> Option<cpu_set_t> {
        let mut set = empty();
        // SAFETY: the pointer is to the local `set` of that size. The thread 0 is the calling one.
        let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
        (!failed).then_some(set)
    }

    fn apply(set: &cpu_set_t) -> io::Result<()> {
        // SAFETY: the pointer is to a set of that size. The thread 0 is the calling one.
        match unsafe { libc::sched_setaffinity(0, size_of_val(set), set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn numbers(set: &cpu_set_t) -> Vec<usize> {
        // SAFETY: no number in the range is beyond the end of the set.
        let holds = |core: &usize| unsafe { libc::CPU_ISSET(*core, set) };
        (0..libc::CPU_SETSIZE as usize).filter(holds).collect()
    }
}

/// Threads are bound on Linux only.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn bind(_index: usize, _workers: usize) {}

    pub(crate) fn unbind() {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::{
        bind,
        linux::{numbers, read},
        unbind,
    };

    fn own_cores() -> Vec<usize> {
        numbers(&read().expect("the system tells"))
    }

    /// The cores of a thread that was bound, and of one that it has started and that was unbound.
    fn bound(index: usize, workers: usize) -> [Vec<usize>; 2] {
        let started = || {
            unbind();
            own_cores()
        };
        let thread = thread::spawn(move || {
            bind(index, workers);
            [own_cores(), thread::spawn(started).join().expect("it ran")]
        });
        thread.join().expect("it ran")
    }

    #[test]
    fn each_worker_gets_a_core_if_there_are_as_many() {
        let all = own_cores();
        for (index, core) in all.iter().enumerate() {
            assert_eq!(bound(index, all.len()), [vec![*core], all.clone()]);
        }
        assert_eq!(bound(0, all.len() + 1)[0], all);
        assert_eq!(bound(all.len(), all.len())[0], all, "there is no such worker");
    }
}
