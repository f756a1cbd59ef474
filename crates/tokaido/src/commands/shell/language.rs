//! The languages that lines of the shell are written in, and what becomes of a line.

use std::fmt;

use tokaido_script::CallError;

/// What a line is written in that is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Lua,
    Ruby,
}

impl Language {
    /// The language whose name a line consists of.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        match line {
            "lua" => Some(Self::Lua),
            "ruby" => Some(Self::Ruby),
            _ => None,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lua => "Lua",
            Self::Ruby => "Ruby",
        })
    }
}

/// What became of some lines of code.
pub(super) enum Outcome {
    /// The values.
    Shown(Vec<Shown>),
    /// They are the beginning of something: more lines are wanted.
    Unfinished,
    /// They are none of the language. The message says why.
    NotUnderstood(String),
    Failed(CallError),
}

/// A value, as it is shown.
pub(super) struct Shown {
    /// In the notation of its language.
    pub(super) notation: Vec<u8>,
    /// For a program: a text as it is. `None` for what is nothing.
    pub(super) plain: Option<Vec<u8>>,
}
