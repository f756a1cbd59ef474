//! Binding each worker to a core of its own.
//!
//! Where all cores are busy, the scheduler sometimes puts two workers onto one of them while another one idles, and leaves
//! them there for tens of milliseconds. All connections of both wait then.

/// Binds this thread to one of the cores that the process may use: the one at `index`, if there are as many cores as `workers`.
/// With fewer workers, it changes nothing, since several servers would share the first cores and leave the others idle.
///
/// Threads that this one starts later are bound to the same core.
#[cfg(target_os = "linux")]
pub(crate) fn bind(index: usize, workers: usize) {
    let cores = usable_cores();
    if cores.len() != workers {
        return;
    }
    // SAFETY: all zeros are a valid value, the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let Some(&core) = cores.get(index) else { return };
    // SAFETY: the core is from such a set, so it is not beyond its end.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the pointer is to the local `set` of that size. The thread 0 is the calling one.
    let failed = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } != 0;
    if failed {
        let error = std::io::Error::last_os_error();
        tracing::warn!(core, %error, "a worker could not be bound to a core; it may run on any");
    }
}

/// The numbers of the cores that this thread may run on; none if the system does not tell.
#[cfg(target_os = "linux")]
fn usable_cores() -> Vec<usize> {
    // SAFETY: all zeros are a valid value, the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to the local `set` of that size. The thread 0 is the calling one.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: no number in the range is beyond the end of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, &set) }).collect()
}

/// Threads are bound on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(_index: usize, _workers: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::{bind, usable_cores};

    #[test]
    fn each_worker_gets_a_core_if_there_are_as_many() {
        let all = usable_cores();
        assert!(!all.is_empty());
        let bound = |index: usize, workers: usize| {
            let thread = thread::spawn(move || {
                bind(index, workers);
                usable_cores()
            });
            thread.join().unwrap()
        };
        for (index, core) in all.iter().enumerate() {
            assert_eq!(bound(index, all.len()), [*core]);
        }
        assert_eq!(bound(0, all.len() + 1), all);
        assert_eq!(bound(all.len(), all.len()), all, "there is no such worker");
    }
}
