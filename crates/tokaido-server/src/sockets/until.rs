//! The search for the text up to which a handler receives.

/// What was found in the bytes that have arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The text, after this many bytes.
    Text { before: usize },
    /// A part of this size.
    Part { len: usize },
    /// Neither yet; the text does not begin in this many bytes.
    Nothing { before: usize },
}

/// For each prefix of a text, the length of its longest proper prefix that is also its suffix.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len() + 1];
    let mut border = 0;
    for end in 1..text.len() {
        while border > 0 && text[end] != text[border] {
            border = borders[border];
        }
        if text[end] == text[border] {
            border += 1;
        }
        borders[end + 1] = border;
    }
    borders
}

/// The longest prefix of a text that the bytes end with, which are looked at one by one.
struct Matching<'t> {
    text: &'t [u8],
    borders: Vec<usize>,
    matched: usize,
}

impl<'t> Matching<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, borders: borders(text), matched: 0 }
    }

    /// Handles a byte that does not continue the match. Returns how many bytes before it no longer belong to one.
    fn fall_back(&mut self, byte: u8) -> usize {
        let mut border = self.borders[self.matched];
        while border > 0 && self.text[border] != byte {
            border = self.borders[border];
        }
        let dropped = self.matched - border;
        self.matched = border;
        dropped
    }
}

/// Searches for a text that does not begin before `from`. Before it, parts of `size` are returned, unless that is 0; a
/// part is longer if it ends in what might have been the text and was not, as in nginx.
pub(super) fn find(bytes: &[u8], text: &[u8], size: usize, from: usize) -> Found {
    if size == 0 {
        return find_whole(bytes, text, from);
    }
    let (mut before, mut matching) = (from, Matching::new(text));
    while let Some(&byte) = bytes.get(before + matching.matched) {
        if byte == text[matching.matched] {
            matching.matched += 1;
            if matching.matched == text.len() {
                return Found::Text { before };
            }
            continue;
        }
        before += if matching.matched == 0 { 1 } else { matching.fall_back(byte) };
        if before >= size {
            return Found::Part { len: before };
        }
    }
    Found::Nothing { before }
}

fn find_whole(bytes: &[u8], text: &[u8], from: usize) -> Found {
    if let Some(place) = memchr::memmem::find(&bytes[from..], text) {
        return Found::Text { before: from + place };
    }
    // The whole text is not there, so only a shorter piece at the end can be its beginning.
    let end = from.max(bytes.len().saturating_sub(text.len() - 1));
    find(bytes, text, usize::MAX, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_where_it_begins() {
        for size in [0, 100] {
            let find = |bytes: &[u8], text: &[u8]| find(bytes, text, size, 0);
            assert_eq!(find(b"ab--c", b"--"), Found::Text { before: 2 });
            assert_eq!(find(b"a---c", b"--"), Found::Text { before: 1 });
            assert_eq!(find(b"aab-aabaabb-aabaaabx", b"aabaaab"), Found::Text { before: 12 });
            assert_eq!(find(b"abc-", b"--"), Found::Nothing { before: 3 });
            assert_eq!(find(b"aabaab", b"aabaaab"), Found::Nothing { before: 3 });
            assert_eq!(find(b"", b"--"), Found::Nothing { before: 0 });
        }
    }

    #[test]
    fn a_search_goes_on_where_it_was() {
        assert_eq!(find(b"abc--", b"--", 0, 3), Found::Text { before: 3 });
        assert_eq!(find(b"abc--", b"--", 10, 3), Found::Text { before: 3 });
        assert_eq!(find(b"abcd", b"--", 0, 4), Found::Nothing { before: 4 });
    }

    #[test]
    fn a_long_text_takes_no_longer_for_what_it_repeats() {
        let (text, bytes) = ([b'a'; 60_000], [b'a'; 59_999]);
        assert_eq!(find(&bytes, &text, 0, 0), Found::Nothing { before: 0 });
        let bytes = [&b"b"[..], &bytes].concat();
        assert_eq!(find(&bytes, &text, 0, 0), Found::Nothing { before: 1 });
    }

    #[test]
    fn parts_end_where_nothing_of_the_text_has_begun() {
        assert_eq!(find(b"hello--", b"--", 3, 0), Found::Part { len: 3 });
        assert_eq!(find(b"lo--", b"--", 3, 0), Found::Text { before: 2 });
        assert_eq!(find(b"-aabaabb-", b"aabaaab", 3, 0), Found::Part { len: 4 });
    }
}
