//! The edit distance between texts.

/// The characters of a text: its UTF-8 characters, or its bytes.
#[must_use]
pub fn characters(text: &[u8], is_utf8: bool) -> Vec<u32> {
    match is_utf8 {
        true => String::from_utf8_lossy(text).chars().map(u32::from).collect(),
        false => text.iter().map(|&byte| byte.into()).collect(),
    }
}

/// How many characters have to be inserted, deleted or replaced to get from one to the other
/// (Levenshtein).
#[must_use]
pub fn distance(a: &[u32], b: &[u32]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_number_of_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("hakone", "hakone", 0),
            ("hakone", "hakoen", 2),
        ] {
            assert_eq!(
                distance(&characters(a.as_bytes(), false), &characters(b.as_bytes(), false)),
                edits,
                "{a} {b}"
            );
        }
        assert_eq!(
            distance(&characters("日本".as_bytes(), true), &characters("日".as_bytes(), true)),
            1
        );
        assert_eq!(
            distance(&characters("日本".as_bytes(), false), &characters("日".as_bytes(), false)),
            3
        );
    }
}
