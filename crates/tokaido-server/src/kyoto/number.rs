//! Numbers as Kyoto Tycoon's clients write and read them: as leniently parsed text.

/// The number at the beginning of `text`, after spaces; 0 if there is none.
pub(super) fn float(text: &[u8]) -> f64 {
    let text = text.trim_ascii();
    let whole = std::str::from_utf8(text).unwrap_or_default();
    // Few numbers are followed by anything else.
    (0..=whole.len())
        .rev()
        .filter_map(|end| whole.get(..end))
        .find_map(|head| head.parse::<f64>().ok())
        .unwrap_or(0.0)
}

/// The text of a sum: six digits after the point.
pub(super) fn show(number: f64) -> String {
    format!("{number:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_far_as_it_is_a_number() {
        for (text, number) in
            [("1.5", 1.5), (" -2e3x", -2000.0), ("x", 0.0), ("inf", f64::INFINITY)]
        {
            assert_eq!(float(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn sums_have_six_digits_behind_the_point() {
        assert_eq!(show(4.25), "4.250000");
        assert_eq!((show(f64::INFINITY), show(f64::NEG_INFINITY)), ("inf".into(), "-inf".into()));
    }
}
