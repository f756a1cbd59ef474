//! The languages of the shell's lines, and the outcome of a line.

use std::fmt;

use tokaido_script::CallError;

/// The language of lines that are not commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Lua,
    Ruby,
}

impl Language {
    /// The language that a line names, if it is nothing but that name.
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

/// The outcome of some lines of code.
pub(super) enum Outcome {
    /// Their values.
    Shown(Vec<Shown>),
    /// They are incomplete: more lines are needed.
    Unfinished,
    /// They are not valid in the language. The message says why.
    NotUnderstood(String),
    Failed(CallError),
}

/// A value, as it is shown.
pub(super) struct Shown {
    /// In the notation of its language.
    pub(super) notation: Vec<u8>,
    /// For a program: a text unchanged. `None` for nil.
    pub(super) plain: Option<Vec<u8>>,
}
