//! Where the time went: what processes used of the processors and the disk, and which process a server is.

use std::{
    collections::BTreeSet,
    fs,
    os::{fd::AsRawFd, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

/// Clock ticks per second in `/proc/*/stat`.
const TICKS_PER_SECOND: u64 = 100;

/// The state of a listening TCP socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// A thread's share of the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// Time on a processor.
    pub(super) ran: Duration,
    /// Time in which it was ready to run while others ran.
    pub(super) waited: Duration,
}

impl ThreadTime {
    /// The totals of this thread; zero if the kernel does not say.
    pub(super) fn of_this_thread() -> Self {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut fields = text.split_whitespace().map(|field| field.parse().unwrap_or(0));
        let mut next = || Duration::from_nanos(fields.next().unwrap_or(0));
        Self { ran: next(), waited: next() }
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// What processes have used in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in their own code.
    pub user: Duration,
    /// Processor time in the kernel on their behalf.
    pub system: Duration,
    /// Voluntary context switches: they had to wait for something.
    pub switches_voluntary: u64,
    /// Involuntary context switches: they had more to do.
    pub switches_involuntary: u64,
    /// Bytes that the kernel has charged to them as writes to disk; `None` if that is not visible to this process. Since
    /// Linux 6.16 it may charge a large folio for a few bytes of it, so this may be a multiple of what the disk writes.
    pub written: Option<u64>,
}

impl Usage {
    /// The total of these processes. One that has ended counts for nothing.
    #[must_use]
    pub fn of(processes: &[u32]) -> Self {
        let mut sum = Self::default();
        for process in processes {
            sum.add(&Self::of_process(*process));
        }
        sum
    }

    /// The usage of this program.
    #[must_use]
    pub fn of_this_program() -> Self {
        Self::of(&[std::process::id()])
    }

    fn of_process(process: u32) -> Self {
        let directory = format!("/proc/{process}");
        let read =
            |name: &str| fs::read_to_string(Path::new(&directory).join(name)).unwrap_or_default();
        let (user, system) = ticks(&read("stat")).unwrap_or_default();
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        let written = number_behind(&read("io"), "write_bytes:");
        let mut usage = Self { user: time(user), system: time(system), written, ..Self::default() };
        // Context switches are counted per thread.
        for thread in fs::read_dir(format!("{directory}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let of = |name: &str| number_behind(&status, name).unwrap_or(0);
            usage.switches_voluntary += of("voluntary_ctxt_switches:");
            usage.switches_involuntary += of("nonvoluntary_ctxt_switches:");
        }
        usage
    }

    fn add(&mut self, other: &Self) {
        self.user += other.user;
        self.system += other.system;
        self.switches_voluntary += other.switches_voluntary;
        self.switches_involuntary += other.switches_involuntary;
        self.written = match (self.written, other.written) {
            (None, written) | (written, None) => written,
            (Some(ours), Some(theirs)) => Some(ours + theirs),
        };
    }

    /// The usage since an earlier look at the same processes.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            switches_voluntary: self.switches_voluntary.saturating_sub(before.switches_voluntary),
            switches_involuntary: self
                .switches_involuntary
                .saturating_sub(before.switches_involuntary),
            written: self
                .written
                .zip(before.written)
                .map(|(after, before)| after.saturating_sub(before)),
        }
    }

    /// User and system time together.
    #[must_use]
    pub fn processor(&self) -> Duration {
        self.user + self.system
    }
}

/// User and system time, fields 14 and 15. The second field is a name that may contain spaces and parentheses.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(14 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The number after `name` at the start of a line.
fn number_behind(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The processes of this machine that listen on a TCP port, as far as they are visible.
#[must_use]
pub fn of_port(port: u16) -> Vec<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let inodes = tables.iter().flatten().flat_map(|table| inodes_of_port(table, port)).collect();
    having(&inodes)
}

/// The process that listens on a UNIX socket: the kernel tells whoever connects.
#[must_use]
pub fn of_unix_socket(path: &Path) -> Vec<u32> {
    let Ok(stream) = UnixStream::connect(path) else { return Vec::new() };
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes no more than `len` bytes.
    let found = unsafe {
        let peer = (&raw mut peer).cast();
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer,
            &raw mut len,
        )
    };
    let process = u32::try_from(peer.pid).ok().filter(|process| found == 0 && *process > 0);
    process.into_iter().collect()
}

/// The sockets that listen on a port, according to a table of the kernel.
fn inodes_of_port(table: &str, port: u16) -> Vec<u64> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_meant =
            u16::from_str_radix(local_port, 16).ok()? == port && *fields.get(3)? == LISTENS;
        is_meant.then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// The processes that have one of these sockets open.
fn having(inodes: &BTreeSet<u64>) -> Vec<u32> {
    let has = |process: u32| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
        descriptors.into_iter().flatten().flatten().any(|descriptor| {
            let Ok(target) = fs::read_link(descriptor.path()) else { return false };
            let target = target.to_string_lossy();
            let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            inode
                .and_then(|inode| inode.parse().ok())
                .is_some_and(|inode: u64| inodes.contains(&inode))
        })
    };
    if inodes.is_empty() {
        return Vec::new();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|process| has(*process)).collect()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::unix::net::UnixListener};

    use super::*;

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(of_port(listener.local_addr().unwrap().port()), [std::process::id()]);
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert_eq!(of_port(port), [0_u32; 0]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        assert_eq!(of_unix_socket(&path), [std::process::id()]);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1DE5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1\n\
            1: 0100007F:1DE5 0100007F:9000 01 00000000:00000000 00:00000000 00000000     0        0 42 1\n";
        assert_eq!(inodes_of_port(table, 0x1de5), [41]);
        assert_eq!(inodes_of_port(table, 1), [0_u64; 0]);
    }

    #[test]
    fn what_a_program_takes_is_told() {
        assert_eq!(ticks("7 (a) b) S 4 5 6 7 8 9 10 11 12 13 140 15 130 17"), Some((140, 15)));
        let before = Usage::of_this_program();
        assert!(before.switches_voluntary + before.switches_involuntary > 0);
        let since = Usage::of_this_program().since(&before);
        assert!(since.processor() <= Duration::from_secs(60));
        assert_eq!(Usage::of(&[u32::MAX]), Usage::default());
    }
}
