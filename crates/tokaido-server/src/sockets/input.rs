//! Bytes that have arrived on a connection, and that the handler has not received yet.

use std::{cell::Cell, rc::Rc};

use tokaido_script::{Receive, Received};

use super::until::{self, Found};

/// An empty buffer of up to this capacity, in bytes, is kept.
const KEPT_MAX: usize = 64 << 10;

/// Bytes in order of arrival.
pub(super) struct Input {
    bytes: Vec<u8>,
    /// How many of them are counted in the sum of all sockets.
    counted: usize,
    sum: Rc<Cell<usize>>,
    /// How many of them have been received.
    taken: usize,
    /// How many of the remaining ones, from the first on, cannot begin what is looked for.
    searched: usize,
}

impl Input {
    /// An empty input. Its bytes are counted in that sum for as long as they take memory.
    pub(super) fn new(sum: &Rc<Cell<usize>>) -> Self {
        Self { bytes: Vec::new(), counted: 0, sum: Rc::clone(sum), taken: 0, searched: 0 }
    }

    fn count(&mut self) {
        self.sum.update(|sum| sum + self.bytes.len() - self.counted);
        self.counted = self.bytes.len();
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.count();
    }

    /// Whether `what` is there as a whole; if so, it is appended to `out`. `what` must stay the
    /// same until it is there or given up.
    pub(super) fn take(&mut self, what: Receive<'_>, out: &mut Vec<u8>) -> Option<Received> {
        let bytes = &self.bytes[self.taken..];
        let (len, dropped, received) = match what {
            Receive::Size(size) if bytes.len() >= size => (size, 0, Received::Whole),
            Receive::Any(size) if !bytes.is_empty() => (bytes.len().min(size), 0, Received::Whole),
            Receive::Size(_) | Receive::Any(_) | Receive::All | Receive::Datagram(_) => {
                return None;
            }
            Receive::Line => match memchr::memchr(b'\n', &bytes[self.searched..]) {
                Some(place) => (self.searched + place, 1, Received::Whole),
                None => {
                    self.searched = bytes.len();
                    return None;
                }
            },
            Receive::Until { text, size, inclusive } => {
                match until::find(bytes, text, size, self.searched) {
                    Found::Text { before } if inclusive => {
                        (before + text.len(), 0, Received::Whole)
                    }
                    Found::Text { before } => (before, text.len(), Received::Whole),
                    Found::Part { len } => (len, 0, Received::Part),
                    Found::Nothing { before } => {
                        self.searched = before;
                        return None;
                    }
                }
            }
        };
        self.move_out(what, len, dropped, out);
        Some(received)
    }

    /// Appends what there is of something that has not arrived whole.
    pub(super) fn give_up(&mut self, what: Receive<'_>, out: &mut Vec<u8>) {
        // Bytes that may begin the text belong neither to the text nor to what is before it.
        let len = match what {
            Receive::Until { text, size, .. } => {
                match until::find(&self.bytes[self.taken..], text, size, self.searched) {
                    Found::Nothing { before } => before,
                    Found::Text { .. } | Found::Part { .. } => self.searched,
                }
            }
            _ => self.len(),
        };
        self.move_out(what, len, 0, out);
    }

    fn move_out(&mut self, what: Receive<'_>, len: usize, dropped: usize, out: &mut Vec<u8>) {
        let moved = &self.bytes[self.taken..self.taken + len];
        match what {
            Receive::Line => out.extend(moved.iter().filter(|&&byte| byte != b'\r')),
            _ => out.extend_from_slice(moved),
        }
        self.taken += len + dropped;
        self.searched = 0;
        if self.taken == self.bytes.len() {
            self.taken = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_MAX {
                self.bytes = Vec::new();
            }
        } else if self.taken >= KEPT_MAX && self.taken >= self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.count();
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.sum.update(|sum| sum - self.counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(input: &mut Input, what: Receive<'_>) -> Option<(Received, String)> {
        let mut out = Vec::new();
        let received = input.take(what, &mut out)?;
        Some((received, String::from_utf8(out).expect("text")))
    }

    fn input(text: &str) -> Input {
        let mut input = Input::new(&Rc::default());
        input.append(text.as_bytes());
        input
    }

    fn whole(text: &str) -> Option<(Received, String)> {
        Some((Received::Whole, text.to_owned()))
    }

    #[test]
    fn a_line_ends_at_its_end_and_has_no_carriage_returns() {
        let mut input = input("one\r\ntwo\rx\nth");
        assert_eq!(take(&mut input, Receive::Line), whole("one"));
        assert_eq!(take(&mut input, Receive::Line), whole("twox"));
        assert_eq!(take(&mut input, Receive::Line), None);
        input.append(b"ree\n");
        assert_eq!(take(&mut input, Receive::Line), whole("three"));
        assert_eq!(input.len(), 0);
    }

    #[test]
    fn the_sum_has_what_takes_memory() {
        let sum = Rc::default();
        let (mut one, mut other) = (Input::new(&sum), Input::new(&sum));
        one.append(&[b'x'; KEPT_MAX * 2]);
        other.append(b"ab");
        assert_eq!(sum.get(), KEPT_MAX * 2 + 2);
        take(&mut one, Receive::Size(KEPT_MAX));
        assert_eq!(sum.get(), KEPT_MAX + 2);
        take(&mut other, Receive::Size(2));
        assert_eq!(sum.get(), KEPT_MAX);
        drop(one);
        assert_eq!(sum.get(), 0);
    }

    #[test]
    fn what_is_not_whole_stays_or_is_given_up() {
        let mut input = input("abc-");
        assert_eq!(take(&mut input, Receive::Size(5)), None);
        assert_eq!(take(&mut input, Receive::Any(2)), whole("ab"));
        let until = Receive::Until { text: b"--", size: 0, inclusive: false };
        assert_eq!(take(&mut input, until), None);
        let mut out = Vec::new();
        input.give_up(until, &mut out);
        assert_eq!((out.as_slice(), input.len()), (&b"c"[..], 1));
        input.append(b"-d");
        assert_eq!(take(&mut input, until), whole(""));
        assert_eq!(take(&mut input, Receive::Size(0)), whole(""));
        assert_eq!(take(&mut input, Receive::Size(1)), whole("d"));
    }

    #[test]
    fn what_comes_byte_by_byte_is_found() {
        let mut input = Input::new(&Rc::default());
        let until = Receive::Until { text: b"aabaaab", size: 0, inclusive: true };
        let text = "aab-aabaabb-aabaaab";
        for byte in text.bytes().take(text.len() - 1) {
            input.append(&[byte]);
            assert_eq!(take(&mut input, until), None);
        }
        input.append(b"b");
        assert_eq!(take(&mut input, until), whole(text));
    }
}
