//! How much memory this process may use: that of the machine, or of its control group.

use std::{fs, path::Path};

/// Where control groups are mounted, and the file with a group's limit: version 2, and version 1.
const LIMITS: [(&str, &str, &str); 2] = [
    ("", "/sys/fs/cgroup", "memory.max"),
    ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Bytes of memory that this process may use; `None` if the operating system does not say.
pub(super) fn bytes_max() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = LIMITS.iter().filter_map(|(controller, mount, file)| {
        let group = group_of(&groups, controller)?;
        // A group that is not visible here, as in a container, is the one at the mount.
        let own = Path::new(mount).join(group.trim_start_matches('/')).join(file);
        let text =
            fs::read_to_string(own).or_else(|_| fs::read_to_string(Path::new(mount).join(file)));
        text.ok()?.trim().parse().ok()
    });
    of_groups.chain(of_machine()).min()
}

/// The group of a controller, from lines of `NUMBER:CONTROLLERS:PATH` (cgroups(7)).
fn group_of<'g>(groups: &'g str, controller: &str) -> Option<&'g str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let is_it = fields.next()?.split(',').any(|found| found == controller);
        fields.next().filter(|_| is_it)
    })
}

fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_controller_is_found() {
        let groups = "9:name=systemd:/\n4:cpu,memory:/a/b:c\n0::/d\n";
        assert_eq!(group_of(groups, "memory"), Some("/a/b:c"));
        assert_eq!(group_of(groups, ""), Some("/d"));
        assert_eq!(group_of(groups, "pids"), None);
    }

    #[test]
    fn this_process_may_have_some_memory() {
        assert!(bytes_max().is_some_and(|bytes| bytes > 1 << 20));
    }
}
