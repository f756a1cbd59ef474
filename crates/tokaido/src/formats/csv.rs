//! Comma-separated columns, as in RFC 4180: a quoted column may contain commas, newlines and,
//! doubled, quotes. A quote that is not first in its column is an ordinary character.

use super::{columns::Columns, lines::Ending, row::Reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ColumnStart,
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the column, or the first half of a doubled one.
    QuoteSeen,
}

/// Parses a row line by line, since quotes may extend over the end of a line.
#[derive(Debug)]
pub(crate) struct CsvParser {
    state: State,
}

impl CsvParser {
    pub(crate) fn new() -> Self {
        Self { state: State::ColumnStart }
    }

    /// Parses one line; returns whether the row is complete.
    pub(crate) fn feed(
        &mut self,
        line: &[u8],
        ending: Ending,
        columns: &mut Columns,
    ) -> Result<bool, Reason> {
        for &byte in line {
            self.state = match (self.state, byte) {
                (State::ColumnStart, b'"') => State::Quoted,
                (State::ColumnStart | State::Plain | State::QuoteSeen, b',') => {
                    columns.end_column();
                    State::ColumnStart
                }
                (State::Quoted, b'"') => State::QuoteSeen,
                (State::QuoteSeen, b'"') | (State::Quoted, _) => {
                    columns.extend(&[byte]);
                    State::Quoted
                }
                (State::QuoteSeen, _) => {
                    return Err(Reason::AfterQuote { column: columns.len() + 1 });
                }
                (State::ColumnStart | State::Plain, _) => {
                    columns.extend(&[byte]);
                    State::Plain
                }
            };
        }
        if self.state == State::Quoted {
            columns.extend(ending.as_bytes());
            return Ok(false);
        }
        columns.end_column();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Result<Vec<String>, Reason> {
        let (mut parser, mut columns) = (CsvParser::new(), Columns::default());
        for (index, line) in lines.iter().enumerate() {
            let done = parser.feed(line.as_bytes(), Ending::CarriageReturnNewline, &mut columns)?;
            assert_eq!(done, index + 1 == lines.len(), "{lines:?}");
        }
        Ok(columns.iter().map(|c| String::from_utf8(c.to_vec()).unwrap()).collect())
    }

    #[test]
    fn quotes_hold_commas_quotes_and_newlines() {
        assert_eq!(parse(&["a,b,"]).unwrap(), ["a", "b", ""]);
        assert_eq!(parse(&["\"a,b\",\"say \"\"hi\"\"\",\"\""]).unwrap(), ["a,b", "say \"hi\"", ""]);
        assert_eq!(parse(&["\"one", "", "two\",x"]).unwrap(), ["one\r\n\r\ntwo", "x"]);
        assert_eq!(parse(&["5\" pipe,x"]).unwrap(), ["5\" pipe", "x"]);
    }

    #[test]
    fn text_after_a_closing_quote_is_an_error() {
        assert_eq!(parse(&["a,\"b\"c"]), Err(Reason::AfterQuote { column: 2 }));
    }
}
