//! What a result was measured on (processor, cores, governor, kernel), how long a thread waited for
//! a processor, and how much memory a server uses.

use std::{fmt, fs, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

/// The machine, as far as it matters to a benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// The frequency governor of the cores; absent on most virtual machines.
    pub governor: Option<String>,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// The governor, if it is one that lets the clock frequency vary.
    #[must_use]
    pub fn unsteady_governor(&self) -> Option<&str> {
        self.governor.as_deref().filter(|governor| *governor != "performance")
    }

    /// Examines the machine that this runs on.
    #[must_use]
    pub fn look() -> Self {
        let read = |path: &str| fs::read_to_string(Path::new(path)).ok();
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let kernel = read("/proc/sys/kernel/osrelease");
        Self {
            processor: read("/proc/cpuinfo")
                .and_then(|text| processor_name(&text))
                .unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            governor: governor.map(|text| text.trim().to_owned()),
            kernel: kernel.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let governor = self.governor.as_deref().unwrap_or("not shown by this machine");
        write!(
            f,
            "{}, {} cores, kernel {}, CPU governor: {governor}",
            self.processor, self.cores, self.kernel
        )
    }
}

/// How long this thread has been ready to run while others had the processor, in total; `None` if
/// the kernel does not say. Over a benchmark, the difference is the time taken from it by others.
#[must_use]
pub fn waited_for_processor() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    // Time on the processor, time waiting for it, number of time slices.
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Bytes of private memory of a process that are not backed by a file: what it allocates. `None` if
/// there is no such process.
#[must_use]
pub fn memory(process: u32) -> Option<u64> {
    anonymous_bytes(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn anonymous_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn processor_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_is_of_no_file() {
        let status = "Name:\tx\nVmRSS:\t    9999 kB\nRssAnon:\t    1024 kB\nRssFile:\t 8975 kB\n";
        assert_eq!(anonymous_bytes(status), Some(1 << 20));
        assert_eq!(anonymous_bytes("Name:\tx\n"), None);
        assert!(memory(std::process::id()).is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn the_processor_is_named_as_the_kernel_names_it() {
        let text = "processor\t: 0\nmodel name\t: Example CPU @ 3 GHz\nflags\t: fpu\n";
        assert_eq!(processor_name(text).as_deref(), Some("Example CPU @ 3 GHz"));
        assert_eq!(processor_name("flags : fpu"), None);
    }

    #[test]
    fn only_the_governor_called_performance_is_steady() {
        let machine = |governor: Option<&str>| Machine {
            processor: String::new(),
            cores: 1,
            governor: governor.map(str::to_owned),
            kernel: String::new(),
        };
        assert_eq!(machine(Some("powersave")).unsteady_governor(), Some("powersave"));
        assert_eq!(machine(Some("performance")).unsteady_governor(), None);
        assert_eq!(machine(None).unsteady_governor(), None);
    }

    #[test]
    fn a_machine_reads_as_one_line() {
        let machine = Machine {
            processor: "Example CPU".into(),
            cores: 2,
            governor: None,
            kernel: "6.1".into(),
        };
        assert_eq!(
            machine.to_string(),
            "Example CPU, 2 cores, kernel 6.1, CPU governor: not shown by this machine"
        );
    }
}
