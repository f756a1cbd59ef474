//! What the operating system reports about this process.

use std::fs;

/// The processor time of the process, its own and the system's on its behalf, in seconds.
pub(crate) fn processor_time() -> (String, String) {
    // SAFETY: all zeros are a valid value of this structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to the local `usage`, which the call fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0;
    let show = |time: libc::timeval| {
        if failed { "0".to_owned() } else { format!("{}.{:06}", time.tv_sec, time.tv_usec) }
    };
    (show(usage.ru_utime), show(usage.ru_stime))
}

/// The resident memory of the process, including what it has mapped of its files; 0 where the
/// system does not report it.
pub(crate) fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The address space of the process, whether or not there is memory behind it; 0 where the system
/// does not report it.
pub(crate) fn address_space_bytes() -> u64 {
    status_bytes("VmSize:")
}

fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
