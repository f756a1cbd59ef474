//! Conditions: what a query requires of one column of a row, or of its key.

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use crate::{
    QueryError, Row,
    full_text::FullText,
    number::Number,
    text::{tokens, until_nul},
};

/// Maximum size of a compiled expression, and of the cache it uses while it runs.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Added to the number of an operator: rows that do *not* match are wanted.
const NEGATED: i64 = 1 << 24;

/// Added to the number of an operator: no index is used for it.
const WITHOUT_INDEX: i64 = 1 << 25;

/// How a column is compared with an operand. The numbers are those that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The same text.
    Equal = 0,
    /// The text contains the operand.
    Includes = 1,
    /// The text begins with the operand.
    Begins = 2,
    /// The text ends with the operand.
    Ends = 3,
    /// All tokens of the operand are tokens of the text.
    AllTokens = 4,
    /// One token of the operand is a token of the text.
    AnyToken = 5,
    /// The text is one of the operand's tokens.
    OneOf = 6,
    /// The text matches a regular expression; a leading `*` makes it ignore case.
    Regex = 7,
    /// The same number.
    NumberEqual = 8,
    /// A greater number.
    Greater = 9,
    /// A greater number, or the same.
    GreaterOrEqual = 10,
    /// A lesser number.
    Less = 11,
    /// A lesser number, or the same.
    LessOrEqual = 12,
    /// A number between two others, given in any order, or equal to one.
    Between = 13,
    /// One of several numbers.
    NumberOneOf = 14,
    /// Full-text search for a phrase.
    Phrase = 15,
    /// Full-text search for all tokens.
    AllPhrases = 16,
    /// Full-text search for one of the tokens.
    AnyPhrase = 17,
    /// Full-text search for an expression with `&&`, `||` and `!!`.
    Expression = 18,
}

/// Every operator with its names, in the order of the numbers.
pub const OPERATORS: [(Operator, &[&str]); 19] = [
    (Operator::Equal, &["STREQ", "STR", "EQ"]),
    (Operator::Includes, &["STRINC", "INC"]),
    (Operator::Begins, &["STRBW", "BW"]),
    (Operator::Ends, &["STREW", "EW"]),
    (Operator::AllTokens, &["STRAND", "AND"]),
    (Operator::AnyToken, &["STROR", "OR"]),
    (Operator::OneOf, &["STROREQ", "OREQ"]),
    (Operator::Regex, &["STRRX", "RX"]),
    (Operator::NumberEqual, &["NUMEQ", "NUM", "=", "=="]),
    (Operator::Greater, &["NUMGT", ">"]),
    (Operator::GreaterOrEqual, &["NUMGE", ">="]),
    (Operator::Less, &["NUMLT", "<"]),
    (Operator::LessOrEqual, &["NUMLE", "<="]),
    (Operator::Between, &["NUMBT"]),
    (Operator::NumberOneOf, &["NUMOREQ"]),
    (Operator::Phrase, &["FTSPH", "FTS"]),
    (Operator::AllPhrases, &["FTSAND"]),
    (Operator::AnyPhrase, &["FTSOR"]),
    (Operator::Expression, &["FTSEX"]),
];

/// One condition of a query.
#[derive(Clone, Debug)]
pub struct Condition {
    pub(crate) column: Vec<u8>,
    pub(crate) operator: Operator,
    pub(crate) is_negated: bool,
    pub(crate) without_index: bool,
    pub(crate) operand: Operand,
}

/// What a column is compared with.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Text(Vec<u8>),
    Regex(Regex),
    /// One number; the two ends of a range, the lesser one first; or several.
    Numbers(Vec<Number>),
    FullText(FullText),
}

impl Condition {
    /// A condition on a column; the empty name is the key. The operator is one of the names in
    /// [`OPERATORS`], or its number with the flags that clients add, preceded by `~` or `!` to
    /// negate it and then `+` to use no index for it.
    ///
    /// # Errors
    /// [`QueryError::Operator`], [`QueryError::Regex`].
    pub fn new(column: &[u8], operator: &[u8], operand: &[u8]) -> Result<Self, QueryError> {
        let unknown = || QueryError::Operator { name: lossy(operator) };
        let mut name = operator;
        let is_negated = strip(&mut name, b"~!");
        let without_index = strip(&mut name, b"+");
        let number = integer_of(name);
        let flags = number.unwrap_or(0) & (NEGATED | WITHOUT_INDEX);
        let found = OPERATORS.iter().find(|(operator, names)| match number {
            Some(number) => *operator as i64 == number - flags,
            None => names.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())),
        });
        let operator = found.ok_or_else(unknown)?.0;
        Ok(Self {
            column: column.to_vec(),
            operator,
            is_negated: is_negated || flags & NEGATED != 0,
            without_index: without_index || flags & WITHOUT_INDEX != 0,
            operand: Operand::new(operator, operand)?,
        })
    }

    /// Whether a row satisfies the condition. One without the column does not match.
    #[must_use]
    pub fn holds(&self, key: &[u8], row: Row<'_>) -> bool {
        let value = if self.column.is_empty() { Some(key) } else { row.column(&self.column) };
        value.is_some_and(|value| self.matches(value)) != self.is_negated
    }

    fn matches(&self, value: &[u8]) -> bool {
        match &self.operand {
            Operand::Text(operand) => self.matches_text(value, operand),
            Operand::Regex(regex) => regex.is_match(until_nul(value)),
            Operand::FullText(wanted) => wanted.matches(value),
            Operand::Numbers(numbers) => self.matches_number(&Number::parse(value), numbers),
        }
    }

    fn matches_text(&self, value: &[u8], operand: &[u8]) -> bool {
        let text = until_nul(value);
        let has = |token| tokens(text).any(|other| other == token);
        match self.operator {
            Operator::Includes => memmem::find(text, operand).is_some(),
            Operator::Begins => text.starts_with(operand),
            Operator::Ends => text.ends_with(operand),
            Operator::AllTokens => tokens(operand).all(has),
            Operator::AnyToken => tokens(operand).any(has),
            Operator::OneOf => tokens(operand).any(|token| token == text),
            _ => value == operand,
        }
    }

    fn matches_number(&self, value: &Number, operands: &[Number]) -> bool {
        let to = |place: usize| operands.get(place).and_then(|operand| value.compare(operand));
        match self.operator {
            Operator::Greater => to(0).is_some_and(|order| order.is_gt()),
            Operator::GreaterOrEqual => to(0).is_some_and(|order| order.is_ge()),
            Operator::Less => to(0).is_some_and(|order| order.is_lt()),
            Operator::LessOrEqual => to(0).is_some_and(|order| order.is_le()),
            Operator::Between => {
                to(0).is_some_and(|order| order.is_ge()) && to(1).is_some_and(|order| order.is_le())
            }
            _ => operands.iter().any(|operand| value.compare(operand).is_some_and(|o| o.is_eq())),
        }
    }
}

impl Operand {
    fn new(operator: Operator, operand: &[u8]) -> Result<Self, QueryError> {
        let operand = until_nul(operand);
        Ok(match operator {
            Operator::Equal
            | Operator::Includes
            | Operator::Begins
            | Operator::Ends
            | Operator::AllTokens
            | Operator::AnyToken
            | Operator::OneOf => Self::Text(operand.to_vec()),
            Operator::Regex => Self::Regex(compile(operand)?),
            Operator::NumberEqual
            | Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::Less
            | Operator::LessOrEqual => Self::Numbers(vec![Number::parse(operand)]),
            Operator::Between => Self::Numbers(range(operand)),
            Operator::NumberOneOf => Self::Numbers(numbers(operand).collect()),
            Operator::Phrase => Self::FullText(FullText::phrase(operand)),
            Operator::AllPhrases => Self::FullText(FullText::all(operand)),
            Operator::AnyPhrase => Self::FullText(FullText::any(operand)),
            Operator::Expression => Self::FullText(FullText::expression(operand)),
        })
    }
}

/// The numbers of a list.
fn numbers(operand: &[u8]) -> impl Iterator<Item = Number> {
    let parts = operand.split(|byte| b" ,".contains(byte));
    parts.filter(|part| !part.is_empty()).map(Number::parse)
}

/// The first two numbers of a list, the lesser one first. A missing one is zero.
fn range(operand: &[u8]) -> Vec<Number> {
    let mut ends = numbers(operand);
    let mut ends: Vec<_> =
        (0..2).map(|_| ends.next().unwrap_or_else(|| Number::parse(b""))).collect();
    ends.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    ends
}

fn compile(operand: &[u8]) -> Result<Regex, QueryError> {
    let (pattern, ignores_case) = match operand.strip_prefix(b"*") {
        Some(pattern) => (pattern, true),
        None => (operand, false),
    };
    let refused = |why: String| QueryError::Regex { pattern: lossy(pattern), why };
    let text = std::str::from_utf8(pattern).map_err(|error| refused(error.to_string()))?;
    let mut builder = RegexBuilder::new(text);
    builder.case_insensitive(ignores_case).dot_matches_new_line(true);
    builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX);
    builder.build().map_err(|error| refused(error.to_string()))
}

/// Strips the first byte of the text, if it is one of `bytes`.
fn strip(text: &mut &[u8], bytes: &[u8]) -> bool {
    match text.split_first() {
        Some((first, rest)) if bytes.contains(first) => {
            *text = rest;
            true
        }
        _ => false,
    }
}

/// The integer that a text represents, if it is one.
pub(crate) fn integer_of(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim_ascii().parse().ok()
}

pub(crate) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(operator: &str, operand: &str, value: &str) -> bool {
        let condition = Condition::new(b"c", operator.as_bytes(), operand.as_bytes()).unwrap();
        condition.holds(b"key", Row::new(format!("c\0{value}").as_bytes()))
    }

    #[test]
    fn every_operator_has_cases_that_hold_and_cases_that_do_not() {
        for (operator, operand, yes, no) in [
            ("STREQ", "a b", "a b", "a"),
            ("STRINC", "b", "abc", "ac"),
            ("STRBW", "ab", "abc", "cab"),
            ("STREW", "bc", "abc", "bca"),
            ("STRAND", "a, c", "c,b a", "ab c"),
            ("STROR", "a c", "b,c", "ac"),
            ("STROREQ", "a b,c", "b", "a b"),
            ("STRRX", "^a.c$", "abc", "xabc"),
            ("rx", "*ABC", "xabcx", "ab"),
            ("NUMEQ", "10", "10.0", "11"),
            ("NUMGT", "10", "10.5", "10"),
            (">=", "10", "10", "9"),
            ("<", "10", "-11", "10"),
            ("NUMLE", "10", "x", "11"),
            ("NUMBT", "20,10", "15", "21"),
            ("NUMBT", "-5", "-1", "1"),
            ("NUMOREQ", "1, 3", "3", "2"),
            ("FTSPH", "old road", "The OLD  road", "road old"),
            ("FTSAND", "road old", "old road", "road"),
            ("FTSOR", "sea road", "road", "old"),
            ("FTSEX", "old !! sea", "old road", "old sea"),
        ] {
            assert!(holds(operator, operand, yes), "{operator} {operand:?} {yes:?}");
            assert!(!holds(operator, operand, no), "{operator} {operand:?} {no:?}");
            assert!(!holds(&format!("~{operator}"), operand, yes), "{operator}");
            assert!(holds(&format!("!+{operator}"), operand, no), "{operator}");
        }
    }

    #[test]
    fn operators_have_numbers_with_flags() {
        for (place, (operator, _)) in OPERATORS.iter().enumerate() {
            assert_eq!(*operator as usize, place);
        }
        let of = |operator: String| Condition::new(b"", operator.as_bytes(), b"1").unwrap();
        assert_eq!(of("9".to_owned()).operator, Operator::Greater);
        let both = of((9 + NEGATED + WITHOUT_INDEX).to_string());
        assert_eq!(
            (both.operator, both.is_negated, both.without_index),
            (Operator::Greater, true, true)
        );
        for bad in ["", "19", "-1", "STREQUAL", "~"] {
            let refused = Condition::new(b"", bad.as_bytes(), b"");
            assert!(matches!(refused, Err(QueryError::Operator { .. })), "{bad:?}");
        }
        assert!(matches!(Condition::new(b"", b"STRRX", b"("), Err(QueryError::Regex { .. })));
    }

    #[test]
    fn a_row_without_the_column_matches_only_what_is_negated() {
        let row = Row::new(b"other\0x");
        assert!(!Condition::new(b"c", b"STRBW", b"").unwrap().holds(b"key", row));
        assert!(Condition::new(b"c", b"~STREQ", b"x").unwrap().holds(b"key", row));
        assert!(Condition::new(b"", b"STREQ", b"key").unwrap().holds(b"key", row));
    }
}
