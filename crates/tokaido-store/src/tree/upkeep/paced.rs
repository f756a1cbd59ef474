//! Writing a long file beside a log that others wait for.
//!
//! Unsynced data stays in the operating system's memory until much of it goes to disk at once, and
//! a sync of the log then waits for all of it. So a copy is synced every few megabytes, and the log
//! waits for no more than those. The copy can be cancelled between two pieces.

use std::{
    fs::File,
    io::{self, PipeWriter, Read, Write},
    panic::resume_unwind,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Bytes that are written between two syncs, and held in memory: some milliseconds of disk time.
const PIECE_BYTES: usize = 4 << 20;

/// Writes all of `bytes` and syncs them, unless `stop` is set meanwhile.
pub(super) fn write_bytes(to: &File, bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    write(to, bytes, stop)
}

/// Like [`write_bytes`], for what `from` has.
pub(super) fn write_from(to: &File, from: impl Read, stop: &AtomicBool) -> io::Result<()> {
    write(to, from, stop)
}

/// Like [`write_bytes`], for what `produce` writes to the pipe that it is given, on its own thread.
/// If writing to the file fails or stops, the pipe is broken. `begun` is called once there is
/// something in the pipe, or never will be.
pub(super) fn write_produced(
    to: &File,
    stop: &AtomicBool,
    begun: impl FnOnce(),
    produce: impl FnOnce(PipeWriter) -> io::Result<()> + Send,
) -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    thread::scope(|scope| {
        let producer = thread::Builder::new().name("tokaido-copy".to_owned());
        let producing = producer.spawn_scoped(scope, move || produce(writer))?;
        let mut first = [0];
        let first_read = reader.read(&mut first);
        begun();
        let written = first_read.and_then(|len| write(to, first[..len].chain(reader), stop));
        let produced = producing.join().unwrap_or_else(|panic| resume_unwind(panic));
        // A broken pipe is only the consequence of an error with the file.
        written.and(produced)
    })
}

fn write(mut to: &File, mut from: impl Read, stop: &AtomicBool) -> io::Result<()> {
    let mut piece = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        piece.clear();
        from.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        to.write_all(&piece)?;
        to.sync_all()?;
        if piece.len() < PIECE_BYTES {
            return Ok(());
        }
    }
    Err(io::Error::other("it was asked to stop"))
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    #[test]
    fn what_is_produced_is_written_whatever_its_length() {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 1] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            let produce = |mut pipe: PipeWriter| pipe.write_all(&bytes);
            write_produced(&file, &AtomicBool::new(false), || (), produce).unwrap();
            let mut written = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut written).unwrap();
            assert!(written == bytes, "{len}");
        }
    }

    #[test]
    fn a_copy_can_be_given_up_and_then_its_producer_ends() {
        let (file, stop) = (tempfile::tempfile().unwrap(), AtomicBool::new(false));
        let produce = |mut pipe: PipeWriter| {
            // More than a pipe holds: so the first piece is being read, and is incomplete until there is more.
            pipe.write_all(&vec![0; PIECE_BYTES / 2])?;
            stop.store(true, Ordering::Relaxed);
            loop {
                pipe.write_all(&[0; 1000])?;
            }
        };
        let error = write_produced(&file, &stop, || (), produce).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
        assert_eq!(file.metadata().unwrap().len(), PIECE_BYTES as u64);
    }

    #[test]
    fn what_goes_wrong_is_told_by_whoever_was_first() {
        let stop = AtomicBool::new(false);
        let file = tempfile::tempfile().unwrap();
        let produce = |_| Err(io::ErrorKind::OutOfMemory.into());
        let error = write_produced(&file, &stop, || (), produce).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let produce = |mut pipe: PipeWriter| pipe.write_all(&[0; PIECE_BYTES]);
        let error = write_produced(&full, &stop, || (), produce).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
