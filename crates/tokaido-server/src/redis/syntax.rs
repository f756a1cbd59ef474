//! Parses the arguments of a command from the syntax in its row of the table, so that clients can
//! give hints while a user types.

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text.
    String,
    /// A key.
    Key,
    /// A whole number.
    Integer,
    /// A pattern of [`super::glob`].
    Pattern,
    /// A time since the epoch.
    UnixTime,
    /// A literal word.
    Token,
    /// One of its parts.
    OneOf,
    /// All of its parts, in order.
    Block,
}

impl Kind {
    /// Its name in COMMAND DOCS.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Key => "key",
            Self::Integer => "integer",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::Token => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }

    /// Derives the kind from an argument's name in the table.
    fn of(name: &str) -> Self {
        match name {
            "key" | "newkey" | "source" | "destination" | "key1" | "key2" | "destkey"
            | "sourcekey" => Self::Key,
            "pattern" | "library-name-pattern" => Self::Pattern,
            "bit" | "count" | "cursor" | "decrement" | "end" | "milliseconds" | "numkeys"
            | "numreplicas" | "offset" | "protover" | "seconds" | "start" | "timeout" => {
                Self::Integer
            }
            name if name.starts_with("unix-time") => Self::UnixTime,
            _ => Self::String,
        }
    }
}

/// An argument, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The literal word before it.
    pub(super) token: Option<String>,
    pub(super) is_optional: bool,
    pub(super) is_repeated: bool,
    pub(super) parts: Vec<Argument>,
}

impl Argument {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            token: None,
            is_optional: false,
            is_repeated: false,
            parts: Vec::new(),
        }
    }

    /// Makes one argument out of several parts.
    fn of_parts(kind: Kind, mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let name = parts.first().map_or_else(String::new, |part| part.name.clone());
        Self { parts, ..Self::new(&name, kind) }
    }
}

/// Parses a row's syntax: `[ ]` for optional parts, `< | >` for a choice, `...` for repetition,
/// capitals for literal words.
pub(super) fn parse(syntax: &str) -> Vec<Argument> {
    let spaced: String = syntax
        .chars()
        .flat_map(|c| if "[]<>|".contains(c) { vec![' ', c, ' '] } else { vec![c] })
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    Parser { words: &words }.sequence()
}

/// What a group in brackets can mean.
enum Group {
    /// An argument.
    Once(Argument),
    /// `key [key ...]`: the last so many arguments may be repeated.
    Again(usize),
}

struct Parser<'w> {
    words: &'w [&'w str],
}

impl<'w> Parser<'w> {
    fn take(&mut self) -> Option<&'w str> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// Parses arguments up to the end, or to what closes or divides the enclosing group.
    fn sequence(&mut self) -> Vec<Argument> {
        let mut arguments: Vec<Argument> = Vec::new();
        while let Some(&word) = self.words.first() {
            if matches!(word, "]" | ">" | "|") {
                break;
            }
            self.take();
            match word {
                "[" => match self.group() {
                    Group::Again(len) => repeat(&mut arguments, len),
                    Group::Once(group) => {
                        arguments.push(Argument { is_optional: true, ..group });
                    }
                },
                "<" => match self.group() {
                    Group::Again(len) => repeat(&mut arguments, len),
                    Group::Once(group) => arguments.push(group),
                },
                word => arguments.push(self.word(word)),
            }
        }
        arguments
    }

    /// Parses a group, including the closing bracket.
    fn group(&mut self) -> Group {
        let mut choices = Vec::new();
        loop {
            let parts = self.sequence();
            if parts.last().is_some_and(|part| part.name == "...") {
                self.take();
                return Group::Again(parts.len() - 1);
            }
            choices.push(Argument::of_parts(Kind::Block, parts));
            if self.take() != Some("|") {
                return Group::Once(Argument::of_parts(Kind::OneOf, choices));
            }
        }
    }

    /// Parses a word. A word in capitals belongs to the argument after it.
    fn word(&mut self, word: &str) -> Argument {
        if !word.bytes().any(|b| b.is_ascii_uppercase()) {
            return Argument::new(word, Kind::of(word));
        }
        let token = Some(word.to_owned());
        match self.words.first() {
            Some(&"<") => {
                self.take();
                let name = word.to_lowercase();
                match self.group() {
                    Group::Once(choice) => Argument { token, name, ..choice },
                    Group::Again(_) => Argument { token, ..Argument::new(&name, Kind::Token) },
                }
            }
            Some(next) if next.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') => {
                let next = self.take().unwrap_or_default();
                Argument { token, ..Argument::new(next, Kind::of(next)) }
            }
            _ => Argument { token, ..Argument::new(&word.to_lowercase(), Kind::Token) },
        }
    }
}

/// Marks the last `len` arguments as repeatable, together.
fn repeat(arguments: &mut Vec<Argument>, len: usize) {
    let parts = arguments.split_off(arguments.len().saturating_sub(len));
    let block = Argument::of_parts(Kind::Block, parts);
    arguments.push(Argument { is_repeated: true, ..block });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::table::COMMANDS;

    /// Formats the arguments back into the notation of the table.
    fn show(arguments: &[Argument]) -> String {
        arguments.iter().map(show_one).collect::<Vec<_>>().join(" ")
    }

    fn show_one(argument: &Argument) -> String {
        let parts = || argument.parts.iter().map(show_one).collect::<Vec<_>>();
        let mut text = match argument.kind {
            Kind::Token => String::new(),
            Kind::OneOf if argument.is_optional && argument.token.is_none() => parts().join(" | "),
            Kind::OneOf => format!("<{}>", parts().join(" | ")),
            Kind::Block => parts().join(" "),
            _ => argument.name.clone(),
        };
        if let Some(token) = &argument.token {
            text = format!("{token} {text}").trim_end().to_owned();
        }
        if argument.is_repeated {
            let again = argument.name.clone();
            let again = if argument.kind == Kind::Block { parts().join(" ") } else { again };
            text = format!("{text} [{again} ...]");
        }
        if argument.is_optional { format!("[{text}]") } else { text }
    }

    #[test]
    fn what_is_read_can_be_written_again() {
        for command in COMMANDS {
            assert_eq!(show(&parse(command.syntax)), command.syntax, "{}", command.name);
        }
    }

    #[test]
    fn the_options_of_set_are_understood() {
        let arguments = parse("key value [NX | XX] [GET] [EX seconds | KEEPTTL]");
        assert_eq!(arguments.len(), 5);
        assert_eq!((arguments[0].kind, arguments[1].kind), (Kind::Key, Kind::String));
        assert_eq!((arguments[2].kind, arguments[2].is_optional), (Kind::OneOf, true));
        assert_eq!((arguments[3].kind, arguments[3].is_optional), (Kind::Token, true));
        let expiry = &arguments[4].parts;
        assert_eq!((expiry[0].token.as_deref(), expiry[0].kind), (Some("EX"), Kind::Integer));
        assert_eq!((expiry[1].token.as_deref(), expiry[1].kind), (Some("KEEPTTL"), Kind::Token));
    }
}
