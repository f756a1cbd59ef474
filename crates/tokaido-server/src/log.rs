//! Where the lines of the log go: standard error. A line that cannot be written is dropped and
//! counted, since a server without a log is better than none.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// How long the reader of the log may take to make room in a pipe for a line. After that, lines are
/// dropped at once until there is room again.
const PATIENCE_MS: i32 = 100;

/// Lines that were dropped since the process started.
static LINES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Whether the reader of the log did not make room for the last line.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Lines of the log that could not be written since the process started.
pub(crate) fn lines_dropped() -> u64 {
    LINES_DROPPED.load(Relaxed)
}

/// Writes its input to standard error, one line or more at a time, and never fails. It waits only
/// briefly for a slow reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if write_line(&mut stderr, line, &IS_STUCK).is_err() {
            LINES_DROPPED.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a one-time message, such as where the server listens, to standard output.
///
/// # Errors
/// If it cannot be written, or if nobody reads from a pipe that is full.
pub fn announce(text: &str) -> io::Result<()> {
    // Bypasses the buffer of `Stdout`, which would be written again, and waited for, at the end.
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    write_line(&mut stdout, text.as_bytes(), &AtomicBool::default())
}

/// Writes a line in pieces that fit into a pipe as soon as it has any room.
fn write_line(
    out: &mut (impl Write + AsRawFd),
    line: &[u8],
    is_stuck: &AtomicBool,
) -> io::Result<()> {
    for piece in line.chunks(libc::PIPE_BUF) {
        let timeout_ms = if is_stuck.load(Relaxed) { 0 } else { PATIENCE_MS };
        let has_room = has_room(out.as_raw_fd(), timeout_ms)?;
        is_stuck.store(!has_room, Relaxed);
        if !has_room {
            return Err(io::ErrorKind::TimedOut.into());
        }
        out.write_all(piece)?;
    }
    Ok(())
}

/// Whether a write would not block, now or within the timeout. The write may still fail.
fn has_room(file: i32, timeout_ms: i32) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: file, events: libc::POLLOUT, revents: 0 };
    // SAFETY: this is a single descriptor, which outlives the call.
    match unsafe { libc::poll(&raw mut asked, 1, timeout_ms) } {
        -1 => Err(io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, thread};

    use super::*;

    #[test]
    fn a_line_without_room_is_given_up_and_later_ones_are_written() {
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        let (line, is_stuck) = ([b'x'; 10_000], AtomicBool::new(false));
        let mut written = 0;
        while write_line(&mut writer, &line, &is_stuck).is_ok() {
            written += 1;
        }
        assert!(written > 0 && is_stuck.load(Relaxed));
        let reading = thread::spawn(move || {
            let mut text = Vec::new();
            reader.read_to_end(&mut text).map(|_| text)
        });
        while write_line(&mut writer, b"last", &is_stuck).is_err() {
            thread::yield_now();
        }
        drop(writer);
        let text = reading.join().expect("it reads").expect("it can be read");
        assert!(text.len() >= written * line.len() && text.ends_with(b"last"));
        assert!(!is_stuck.load(Relaxed));
    }

    #[test]
    fn a_full_disk_and_a_closed_pipe_are_errors_and_no_more() {
        let mut full = File::options().write(true).open("/dev/full").expect("a device");
        assert!(write_line(&mut full, b"line", &AtomicBool::default()).is_err());
        let (reader, mut writer) = io::pipe().expect("a pipe");
        drop(reader);
        assert!(write_line(&mut writer, b"line", &AtomicBool::default()).is_err());
    }
}
