//! Numbers in columns: the number at the start of a text, as bytes that sort like the numbers.
//!
//! ```text
//! 0                                       minus infinity
//! 1, !digits before the point (u32 big-endian), !digits, 255   below zero
//! 2                                       zero
//! 3, digits before the point (u32 big-endian), digits, 0       above zero
//! 4                                       infinity
//! 5                                       no number ("nan")
//! ```
//! No encoded number is a prefix of another, so more can follow in a key.

use std::cmp::Ordering;

/// Significant digits of a number; those after them count as zero.
const DIGITS_MAX: usize = 64;

/// Digits of a fraction count only up to this many digits of the number in all.
const FRACTION_END: usize = 16;

const MINUS_INFINITY: u8 = 0;
const BELOW_ZERO: u8 = 1;
const ZERO: u8 = 2;
const ABOVE_ZERO: u8 = 3;
const INFINITY: u8 = 4;
const NO_NUMBER: u8 = 5;

/// A number in its ordered form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number(Vec<u8>);

impl Number {
    /// The encoding of what is not a number, above all numbers.
    pub(crate) const END: [u8; 1] = [NO_NUMBER];

    /// The number at the start of `text`: white space, a sign, digits, a point and digits, `inf` or
    /// `nan`. Without digits it is zero.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let start = text.iter().position(|byte| !(1..=b' ').contains(byte));
        let mut text = &text[start.unwrap_or(text.len())..];
        let is_negative = text.first() == Some(&b'-');
        if matches!(text.first(), Some(b'-' | b'+')) {
            text = &text[1..];
        }
        let begins = |word: &[u8]| text.get(..3).is_some_and(|t| t.eq_ignore_ascii_case(word));
        if begins(b"inf") {
            return Self(vec![if is_negative { MINUS_INFINITY } else { INFINITY }]);
        }
        if begins(b"nan") {
            return Self(vec![NO_NUMBER]);
        }
        let (whole, rest) = digits(text);
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let whole = &whole[zeros..];
        let fraction = rest.strip_prefix(b".").map_or(&[][..], |rest| digits(rest).0);
        let fraction_len = fraction.len().min(FRACTION_END.saturating_sub(whole.len()));
        let significant = whole.iter().chain(&fraction[..fraction_len]).take(DIGITS_MAX);
        Self::of_digits(is_negative, whole.len(), significant.copied().collect())
    }

    fn of_digits(is_negative: bool, whole_len: usize, mut digits: Vec<u8>) -> Self {
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self(vec![ZERO]);
        }
        let whole_len = u32::try_from(whole_len).unwrap_or(u32::MAX).to_be_bytes();
        let mut form = vec![ABOVE_ZERO];
        form.extend(whole_len);
        form.extend(digits);
        form.push(0);
        if is_negative {
            form.iter_mut().for_each(|byte| *byte = !*byte);
            form[0] = BELOW_ZERO;
        }
        Self(form)
    }

    /// `None` if one of them is not a number, which is neither below, nor above, nor equal.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        let are_numbers = self.is_number() && other.is_number();
        are_numbers.then(|| self.0.cmp(&other.0))
    }

    pub(crate) fn is_number(&self) -> bool {
        self.0 != Self::END
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The digits at the start of `text`, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_and_none_begins_another() {
        let ascending = [
            "-inf",
            "-1000",
            "-999.5",
            "-10",
            "-2",
            "-1.5",
            "-1",
            "-0.5",
            "-0.05",
            "0",
            "0.001",
            "0.01",
            "0.1",
            "1",
            "1.05",
            "1.5",
            "2",
            "9",
            "10",
            "11",
            "99",
            "100",
            "9007199254740992",
            "9007199254740993",
            "inf",
            "nan",
        ];
        let forms: Vec<_> = ascending.iter().map(|t| Number::parse(t.as_bytes()).0).collect();
        assert!(forms.is_sorted_by(|a, b| a < b), "{forms:?}");
        for a in &forms {
            assert!(forms.iter().all(|b| a == b || !b.starts_with(a)), "{a:?}");
        }
    }

    #[test]
    fn a_text_begins_with_its_number() {
        for (text, same) in [
            ("", "0"),
            ("abc", "0"),
            ("-", "0"),
            ("-0", "0"),
            ("  +007abc", "7"),
            ("1.50", "1.5"),
            ("1e9", "1"),
            (".5", "0.5"),
            ("\t-3,4", "-3"),
            ("INFinite", "inf"),
            ("1234567890123456.75", "1234567890123456"),
        ] {
            assert_eq!(Number::parse(text.as_bytes()), Number::parse(same.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_number_compares_to_nothing() {
        let none = Number::parse(b"nan");
        assert_eq!(none.compare(&none), None);
        assert_eq!(none.compare(&Number::parse(b"1")), None);
    }

    proptest::proptest! {
        #[test]
        fn integers_keep_their_order(a: i64, b: i64) {
            let number = |n: i64| Number::parse(n.to_string().as_bytes());
            proptest::prop_assert_eq!(number(a).compare(&number(b)), Some(a.cmp(&b)));
        }
    }
}
