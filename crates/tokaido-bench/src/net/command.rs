//! A user's own command in the Redis protocol, with placeholders for what changes from one request to the next.

use std::{fmt, str::FromStr};

use tokaido_wire::resp::encode_command;

/// Maximum number of words.
const WORDS_MAX: usize = 10_000;

/// The placeholders.
const KEY: &str = "{key}";
const VALUE: &str = "{value}";
const RANDOM: &str = "{random}";

/// Words with placeholders for a key, a value and a random number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    text: String,
    words: Vec<Vec<Piece>>,
    has_value: bool,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Key,
    Value,
    Random,
}

/// The text is not a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a command is words with spaces between them, {WORDS_MAX} at most, such as ZADD board {RANDOM} {KEY}; {KEY}, {VALUE} \
     and {RANDOM} are filled in"
)]
pub struct CommandError;

impl FromStr for Command {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        let words: Vec<Vec<Piece>> = text.split_whitespace().map(pieces).collect();
        let has_value = words.iter().flatten().any(|piece| *piece == Piece::Value);
        match words.len() {
            1..=WORDS_MAX => Ok(Self { text: text.to_owned(), words, has_value }),
            _ => Err(CommandError),
        }
    }
}

fn pieces(word: &str) -> Vec<Piece> {
    let places = [(KEY, Piece::Key), (VALUE, Piece::Value), (RANDOM, Piece::Random)];
    let mut pieces = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        let found = places.iter().filter_map(|(name, piece)| Some((rest.find(name)?, name, piece)));
        let Some((at, name, piece)) = found.min_by_key(|(at, ..)| *at) else { break };
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        pieces.push(piece.clone());
        rest = &rest[at + name.len()..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Command {
    /// Whether there is a placeholder for a value.
    pub(super) fn has_value(&self) -> bool {
        self.has_value
    }

    /// Appends a request. `words` is a buffer that is reused for the next one.
    pub(super) fn encode(
        &self,
        key: &[u8],
        value: &[u8],
        random: u64,
        words: &mut Vec<Vec<u8>>,
        out: &mut Vec<u8>,
    ) {
        words.resize_with(self.words.len(), Vec::new);
        for (pieces, word) in self.words.iter().zip(&mut *words) {
            word.clear();
            for piece in pieces {
                match piece {
                    Piece::Text(text) => word.extend_from_slice(text.as_bytes()),
                    Piece::Key => word.extend_from_slice(key),
                    Piece::Value => word.extend_from_slice(value),
                    Piece::Random => word.extend_from_slice(random.to_string().as_bytes()),
                }
            }
        }
        encode_command(out, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in() {
        let command: Command = " ZADD board:{random}{key}: {random}  x{value}y ".parse().unwrap();
        let (mut words, mut out) = (vec![b"of the last one".to_vec(); 9], Vec::new());
        command.encode(b"k", b"v", 17, &mut words, &mut out);
        assert_eq!(
            out,
            b"*4\r\n$4\r\nZADD\r\n$10\r\nboard:17k:\r\n$2\r\n17\r\n$3\r\nxvy\r\n".as_slice()
        );
        assert!(command.has_value() && !"GET {key}".parse::<Command>().unwrap().has_value());
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in ["", "  ", &"PING ".repeat(WORDS_MAX + 1)] {
            let error = text.parse::<Command>().unwrap_err().to_string();
            assert!(error.contains("ZADD board {random} {key}"), "{error}");
        }
    }
}
