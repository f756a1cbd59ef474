//! Reading a segment that may be written to at the same time.

use std::io;

use super::{
    LogStorage,
    frame::{frames, scattered_frames},
    segment::HEADER_LEN,
};

/// The whole frames at the front of a segment.
pub(in crate::tree) struct Captured {
    /// The segment up to the end of the last whole frame; empty if it has no header yet.
    pub bytes: Vec<u8>,
    /// The last transaction in them.
    pub last_sequence: Option<u64>,
}

/// Reads a segment up to where it is being written.
///
/// A read during a write may see a later frame and not the one before it, which looks like damage.
/// But whatever precedes a frame was written before it. So if there is a frame after the first
/// place that is not whole, a second read must find that place whole. If it does not, it is
/// damage, and the segment is returned as it is.
pub(in crate::tree) fn capture(storage: &dyn LogStorage, segment: u64) -> io::Result<Captured> {
    let mut bytes = storage.read(segment)?;
    let (mut end, mut last_sequence) = whole(&bytes);
    while scattered_frames(&bytes, end.max(HEADER_LEN)).next().is_some() {
        let end_before = end;
        bytes = storage.read(segment)?;
        (end, last_sequence) = whole(&bytes);
        if end <= end_before {
            return Ok(Captured { bytes, last_sequence });
        }
    }
    bytes.truncate(end);
    Ok(Captured { bytes, last_sequence })
}

/// Where the whole frames end, and the last transaction in them.
fn whole(bytes: &[u8]) -> (usize, Option<u64>) {
    match frames(bytes, HEADER_LEN).last() {
        Some((at, frame)) => ((at + frame.len).min(bytes.len()), Some(frame.last_sequence())),
        None if bytes.len() < HEADER_LEN => (0, None),
        None => (HEADER_LEN, None),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::Mutex};

    use super::{
        super::{FrameBuilder, LogFile, Operation},
        *,
    };

    /// Returns another image of the segment for each read.
    struct Images(Mutex<VecDeque<Vec<u8>>>);

    impl LogStorage for Images {
        fn list(&self) -> io::Result<Vec<u64>> {
            Ok(vec![1])
        }
        fn create(&self, _: u64) -> io::Result<Box<dyn LogFile>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn open(&self, _: u64) -> io::Result<Box<dyn LogFile>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn read(&self, _: u64) -> io::Result<Vec<u8>> {
            let mut images = self.0.lock().unwrap();
            let next = if images.len() > 1 { images.pop_front() } else { images.front().cloned() };
            Ok(next.unwrap())
        }
        fn remove(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn sync_directory(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn frame(sequence: u64) -> Vec<u8> {
        let mut builder = FrameBuilder::default();
        let operation = Operation { tree: 2, key: b"k", record: Some(b"r") };
        builder.push(sequence, std::iter::once(operation));
        builder.finish(sequence - 1).to_vec()
    }

    /// A segment with those of three frames that are `true`, and zeros for the others.
    fn image(frames: [bool; 3]) -> Vec<u8> {
        let mut bytes = vec![b'h'; HEADER_LEN];
        for (sequence, is_there) in (1..).zip(frames) {
            let frame = frame(sequence);
            bytes.extend(if is_there { frame } else { vec![0; frame.len()] });
        }
        bytes.extend([0; 64]);
        bytes
    }

    fn captured(images: &[[bool; 3]]) -> (usize, Option<u64>) {
        let images = images.iter().map(|frames| image(*frames)).collect();
        let captured = capture(&Images(Mutex::new(images)), 1).unwrap();
        ((captured.bytes.len() - HEADER_LEN) / frame(1).len(), captured.last_sequence)
    }

    #[test]
    fn a_frame_that_was_overtaken_by_the_next_is_read_again() {
        assert_eq!(captured(&[[true, false, false]]), (1, Some(1)));
        assert_eq!(captured(&[[true, false, true], [true, true, true]]), (3, Some(3)));
        assert_eq!(captured(&[[false, true, false], [true, true, false]]), (2, Some(2)));
    }

    #[test]
    fn a_place_that_stays_damaged_is_left_for_all_to_see() {
        let images = [[true, false, true], [true, false, true]].map(image);
        let whole = images[0].clone();
        let captured = capture(&Images(Mutex::new(images.into())), 1).unwrap();
        assert_eq!((captured.bytes, captured.last_sequence), (whole, Some(1)));
    }
}
