//! The search for the text up to which a handler receives.

/// What was found in the bytes that have come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The text, behind so many bytes.
    Text { before: usize },
    /// A part of this size.
    Part { len: usize },
    /// Neither yet; so many bytes are not the beginning of the text.
    Nothing { before: usize },
}

/// How long the longest beginning of each beginning of a text is that is its end, too.
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

/// Searches for a text, which does not begin before `from`. Parts of `size`, unless that is 0, are given before it; one
/// is longer if it ends in what might have been the text and was not, as in nginx.
pub(super) fn find(bytes: &[u8], text: &[u8], size: usize, from: usize) -> Found {
    if size == 0 {
        return find_whole(bytes, text, from);
    }
    let borders = borders(text);
    // The last `matched` of those that were looked at are a beginning of the text.
    let (mut before, mut matched) = (from, 0);
    while let Some(&byte) = bytes.get(before + matched) {
        if byte == text[matched] {
            matched += 1;
            if matched == text.len() {
                return Found::Text { before };
            }
            continue;
        }
        let mut border = borders[matched];
        while border > 0 && text[border] != byte {
            border = borders[border];
        }
        before += if matched == 0 { 1 } else { matched - border };
        matched = border;
        if before >= size {
            return Found::Part { len: before };
        }
    }
    Found::Nothing { before }
}

fn find_whole(bytes: &[u8], text: &[u8], from: usize) -> Found {
    match memchr::memmem::find(&bytes[from..], text) {
        Some(place) => Found::Text { before: from + place },
        None => {
            let is_beginning = |len: &usize| bytes.ends_with(&text[..*len]);
            let held = (1..text.len().min(bytes.len() - from + 1)).rev().find(is_beginning);
            Found::Nothing { before: bytes.len() - held.unwrap_or(0) }
        }
    }
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
    fn parts_end_where_nothing_of_the_text_has_begun() {
        assert_eq!(find(b"hello--", b"--", 3, 0), Found::Part { len: 3 });
        assert_eq!(find(b"lo--", b"--", 3, 0), Found::Text { before: 2 });
        assert_eq!(find(b"-aabaabb-", b"aabaaab", 3, 0), Found::Part { len: 4 });
    }
}
