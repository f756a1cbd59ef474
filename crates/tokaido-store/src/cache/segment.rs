//! The memory of a shard: segments that records are written into, one after another.
//!
//! Each segment belongs to a queue, and a queue orders its segments by when they were begun:
//! eviction takes the oldest. So the order of a queue costs its records nothing, and a record costs
//! no allocation of its own, since only segments are allocated. A record that would take more than
//! an eighth of a segment gets a segment of its own size.

use super::{memory::allocated, record};

/// Maximum length of a segment that records share, in bytes. Locations cannot address more.
pub(super) const LEN_MAX: usize = 64 << 10;
const OFFSET_BITS: u32 = (LEN_MAX / record::ALIGNMENT).ilog2();
/// Maximum number of segments of a shard.
pub(super) const SEGMENTS_MAX: usize = 1 << (u32::BITS - OFFSET_BITS);
/// The part of a shared segment that one record may take.
const SHARED_PART: usize = 8;
/// In a shard with the longest segments, segments for a single record are longer than this.
pub(super) const OWN_LEN_MIN: usize = LEN_MAX / SHARED_PART;
/// "No segment", in links.
const NONE: u32 = u32::MAX;

/// Where a record begins: its segment, and its offset there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location(u32);

impl Location {
    pub(super) const NONE: Self = Self(NONE);

    pub(super) fn new(segment: u32, offset: usize) -> Self {
        Self(segment << OFFSET_BITS | (offset / record::ALIGNMENT) as u32)
    }

    #[inline]
    pub(super) fn segment(self) -> u32 {
        self.0 >> OFFSET_BITS
    }

    #[inline]
    fn offset(self) -> usize {
        (self.0 as usize & ((1 << OFFSET_BITS) - 1)) * record::ALIGNMENT
    }
}

/// The two queues; see `evict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// New records.
    Window,
    /// Records that were used again.
    Main,
}

pub(super) struct Segment {
    /// Empty if the segment's number is free.
    bytes: Box<[u8]>,
    /// Bytes used by records, from the start.
    used: usize,
    /// Bytes of live records.
    live: usize,
    queue: Queue,
    previous: u32,
    /// The next in the queue, or the next free number.
    next: u32,
}

impl Segment {
    fn new(bytes: Box<[u8]>, queue: Queue, previous: u32) -> Self {
        Self { bytes, used: 0, live: 0, queue, previous, next: NONE }
    }
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
    /// The segment that is being written to.
    open: u32,
    /// Bytes allocated for its segments.
    bytes: usize,
}

const NO_SEGMENTS: List = List { first: NONE, last: NONE, open: NONE, bytes: 0 };

/// All segments of a shard.
pub(super) struct Segments {
    segments: Vec<Segment>,
    lists: [List; 2],
    free: u32,
    /// A segment kept for reuse, so that not every drain calls the allocator.
    spare: Option<Box<[u8]>>,
    segment_len: usize,
    /// Bytes allocated for segments, including the spare.
    allocated: usize,
    live: usize,
    used: usize,
}

impl Segments {
    pub(super) fn new(segment_len: usize) -> Self {
        Self {
            segments: Vec::new(),
            lists: [NO_SEGMENTS; 2],
            free: NONE,
            spare: None,
            segment_len,
            allocated: 0,
            live: 0,
            used: 0,
        }
    }

    /// Bytes allocated in total.
    pub(super) fn bytes(&self) -> usize {
        let directory = self.segments.capacity() * size_of::<Segment>();
        self.allocated + if directory == 0 { 0 } else { allocated(directory) }
    }

    /// Bytes of live records, with headers.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Bytes of dead records that still take memory.
    pub(super) fn dead(&self) -> usize {
        self.used - self.live
    }

    /// Bytes allocated for a queue.
    pub(super) fn queue_bytes(&self, queue: Queue) -> usize {
        self.lists[queue as usize].bytes
    }

    /// The oldest segment of a queue.
    pub(super) fn oldest(&self, queue: Queue) -> Option<u32> {
        let first = self.lists[queue as usize].first;
        (first != NONE).then_some(first)
    }

    pub(super) fn queue_of(&self, location: Location) -> Queue {
        self.segments[location.segment() as usize].queue
    }

    /// The segment with the most dead bytes, among those that are no longer written to and of which
    /// more than 1/`part` is dead.
    pub(super) fn most_dead(&self, part: usize) -> Option<u32> {
        let is_open = |n: u32| self.lists.iter().any(|list| list.open == n);
        let dead = |n: &u32| {
            let segment = &self.segments[*n as usize];
            segment.used - segment.live
        };
        (0..self.segments.len() as u32)
            .filter(|n| dead(n) > self.segments[*n as usize].used / part && !is_open(*n))
            .max_by_key(dead)
    }

    /// Whether a record can be written to the queue's open segment.
    pub(super) fn has_room(&self, queue: Queue, footprint: usize) -> bool {
        let open = self.lists[queue as usize].open;
        let is_shared = self.len_for(footprint) == self.segment_len;
        let fits = |segment: &Segment| footprint <= segment.bytes.len() - segment.used;
        is_shared && open != NONE && fits(&self.segments[open as usize])
    }

    /// Bytes that a new segment with room for a record takes.
    pub(super) fn wanted(&self, footprint: usize) -> usize {
        let directory_is_full =
            self.free == NONE && self.segments.len() == self.segments.capacity();
        let directory = if directory_is_full { self.directory_growth() } else { 0 };
        allocated(self.len_for(footprint)) + directory
    }

    /// Bytes that a drain may take in addition: a segment for what it keeps. While no drain runs,
    /// the spare is part of this reserve.
    pub(super) fn reserve(&self) -> usize {
        allocated(self.segment_len) + self.directory_growth()
    }

    /// Bytes of the spare.
    pub(super) fn spare_bytes(&self) -> usize {
        self.spare.as_ref().map_or(0, |spare| allocated(spare.len()))
    }

    /// While the directory doubles, both the old and the new one are allocated.
    fn directory_growth(&self) -> usize {
        allocated(size_of::<Segment>() * (self.segments.capacity() * 2).max(4))
    }

    fn len_for(&self, footprint: usize) -> usize {
        if footprint > self.segment_len / SHARED_PART { footprint } else { self.segment_len }
    }

    /// The bytes from a record's start on.
    #[inline]
    pub(super) fn at(&self, location: Location) -> &[u8] {
        &self.segments[location.segment() as usize].bytes[location.offset()..]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, location: Location) -> &mut [u8] {
        &mut self.segments[location.segment() as usize].bytes[location.offset()..]
    }

    #[inline]
    pub(super) fn view(&self, location: Location) -> record::View<'_> {
        record::View::new(self.at(location))
    }

    /// Allocates the place of a new record at the end of a queue.
    pub(super) fn append(&mut self, queue: Queue, footprint: usize) -> Location {
        let number = if self.has_room(queue, footprint) {
            self.lists[queue as usize].open
        } else {
            let len = self.len_for(footprint);
            let number = self.begin(queue, len);
            if len == self.segment_len {
                self.lists[queue as usize].open = number;
            }
            number
        };
        let segment = &mut self.segments[number as usize];
        let location = Location::new(number, segment.used);
        segment.used += footprint;
        segment.live += footprint;
        self.used += footprint;
        self.live += footprint;
        location
    }

    /// Marks a record as dead. Frees memory that has no live record in it.
    pub(super) fn kill(&mut self, location: Location) {
        let bytes = self.at_mut(location);
        record::kill(bytes);
        let footprint = record::View::new(bytes).footprint();
        self.live -= footprint;
        let number = location.segment();
        let segment = &mut self.segments[number as usize];
        segment.live -= footprint;
        if segment.live > 0 {
            return;
        }
        if self.lists[segment.queue as usize].open == number {
            self.used -= std::mem::take(&mut segment.used);
        } else {
            let drained = self.detach(number);
            self.release(drained);
        }
    }

    /// Takes a segment out of its queue, to be drained. Its number stays in use until the drain has
    /// ended, since the index still refers to its records by it.
    pub(super) fn detach(&mut self, number: u32) -> Drained {
        let segment = &mut self.segments[number as usize];
        let (queue, previous, next) = (segment.queue, segment.previous, segment.next);
        let (used, live) = (segment.used, segment.live);
        let bytes = std::mem::take(&mut segment.bytes);
        (segment.used, segment.live) = (0, 0);
        self.used -= used;
        self.live -= live;
        let list = &mut self.lists[queue as usize];
        list.bytes -= allocated(bytes.len());
        if list.open == number {
            list.open = NONE;
        }
        match previous {
            NONE => list.first = next,
            n => self.segments[n as usize].next = next,
        }
        let list = &mut self.lists[queue as usize];
        match next {
            NONE => list.last = previous,
            n => self.segments[n as usize].previous = previous,
        }
        Drained { number, queue, bytes, used }
    }

    /// Frees the memory of a segment, or keeps it as the spare.
    pub(super) fn release(&mut self, drained: Drained) {
        self.segments[drained.number as usize].next = self.free;
        self.free = drained.number;
        if drained.bytes.len() == self.segment_len && self.spare.is_none() {
            self.spare = Some(drained.bytes);
        } else {
            self.allocated -= allocated(drained.bytes.len());
        }
    }

    /// Appends a segment that holds one record to a queue, as it is.
    pub(super) fn attach(&mut self, queue: Queue, drained: Drained) -> Location {
        let used = drained.used;
        self.used += used;
        self.live += used;
        self.link(queue, drained.number, drained.bytes);
        let segment = &mut self.segments[drained.number as usize];
        (segment.used, segment.live) = (used, used);
        Location::new(drained.number, 0)
    }

    fn begin(&mut self, queue: Queue, len: usize) -> u32 {
        let bytes = match self.spare.take_if(|spare| spare.len() == len) {
            Some(spare) => spare,
            None => {
                self.allocated += allocated(len);
                vec![0; len].into_boxed_slice()
            }
        };
        let number = self.take_number();
        self.link(queue, number, bytes);
        number
    }

    fn take_number(&mut self) -> u32 {
        if self.free == NONE {
            assert!(self.segments.len() < SEGMENTS_MAX, "a shard's size bounds its segments");
            self.segments.push(Segment::new(Box::default(), Queue::Window, NONE));
            return (self.segments.len() - 1) as u32;
        }
        let number = self.free;
        self.free = self.segments[number as usize].next;
        number
    }

    fn link(&mut self, queue: Queue, number: u32, bytes: Box<[u8]>) {
        let previous = self.lists[queue as usize].last;
        let len = bytes.len();
        self.segments[number as usize] = Segment::new(bytes, queue, previous);
        let list = &mut self.lists[queue as usize];
        list.bytes += allocated(len);
        list.last = number;
        match previous {
            NONE => list.first = number,
            n => self.segments[n as usize].next = number,
        }
    }
}

/// A segment that was taken out of its queue. Its records are still in the index.
pub(super) struct Drained {
    number: u32,
    pub(super) queue: Queue,
    bytes: Box<[u8]>,
    used: usize,
}

impl Drained {
    /// The records that are not dead, with the locations they had.
    pub(super) fn records(&self) -> impl Iterator<Item = (Location, record::View<'_>)> {
        let mut offset = 0;
        let all = std::iter::from_fn(move || {
            (offset < self.used).then(|| {
                let location = Location::new(self.number, offset);
                let view = record::View::new(&self.bytes[offset..]);
                offset += view.footprint();
                (location, view)
            })
        });
        all.filter(|(_, view)| !view.is_dead())
    }

    /// Whether the segment was made for one record.
    pub(super) fn is_one_record(&self) -> bool {
        record::View::new(&self.bytes).footprint() == self.bytes.len()
    }

    /// The bytes of one of its records.
    pub(super) fn record_bytes(&self, location: Location, footprint: usize) -> &[u8] {
        &self.bytes[location.offset()..][..footprint]
    }
}
