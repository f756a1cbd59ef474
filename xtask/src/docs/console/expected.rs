//! Whether a command printed what a document shows, where `…` stands for output that varies.

const ANYTHING: &str = "…";

/// Compares line by line; a line with only `…` stands for any number of lines.
pub(super) fn matches(expected: &[String], printed: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return printed.is_empty() };
    if first.trim() == ANYTHING {
        return (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]));
    }
    let Some((line, after)) = printed.split_first() else { return false };
    line_matches(first.trim_end(), line.trim_end()) && matches(rest, after)
}

/// The parts between `…` must occur in the line in that order, the first at its start and the last
/// at its end.
fn line_matches(expected: &str, line: &str) -> bool {
    let Some((first, others)) = expected.split_once(ANYTHING) else { return expected == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once(ANYTHING).unwrap_or(("", others));
    for part in middle.split(ANYTHING) {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(expected: &str, printed: &str) -> bool {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        matches(&expected, &printed.lines().collect::<Vec<_>>())
    }

    #[test]
    fn without_wildcards_every_line_counts() {
        assert!(says("a\nb", "a\nb"));
        assert!(says("", ""));
        for other in ["a", "a\nb\nc", "a\nbb", ""] {
            assert!(!says("a\nb", other), "{other:?}");
        }
        assert!(!says("", "a"));
    }

    #[test]
    fn an_ellipsis_stands_for_text_within_its_line() {
        assert!(says("took … ms", "took 12 ms"));
        assert!(says("…:1978 … open", "127.0.0.1:1978 is open"));
        assert!(!says("took … ms", "took 12 s"));
        assert!(!says("took … ms", "it took 12 ms"));
        assert!(!says("ab…b", "ab"), "the end must not use what the beginning used");
    }

    #[test]
    fn an_ellipsis_alone_stands_for_lines() {
        assert!(says("a\n…\nd", "a\nb\nc\nd"));
        assert!(says("a\n…", "a"));
        assert!(!says("a\n…\nd", "a\nb\nc"));
    }
}
