//! Parses a line of the shell: a word for the shell itself, a command, or code.

use std::collections::BTreeSet;

use tokaido_wire::resp::{Decoded, Limits, RequestDecoder};

use super::language::Language;

/// Maximum length of a line.
const LINE_LEN_MAX: usize = 1 << 20;

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Nothing,
    Help,
    Exit,
    /// A command and its arguments.
    Command(Vec<Vec<u8>>),
    /// Code; in Lua, an expression after `=` shows its value.
    Code(String),
    /// From now on code is in this language.
    Language(Language),
}

/// A command that cannot be split into its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read this line: {0}")]
pub(super) struct LineError(String);

/// Keywords that begin a Lua statement. FUNCTION, in capitals, is a command as well.
const LUA_KEYWORDS: [&str; 9] =
    ["do", "for", "function", "goto", "if", "local", "repeat", "return", "while"];

/// Words that begin a line of Ruby, although commands have the same names.
const RUBY_WORDS: [&str; 1] = ["command"];

/// Parses a line. The first word decides: the name of a command or procedure, in any case, makes it
/// a command, unless it is assigned to or is a keyword of the language. So does `hits.count`,
/// unless `hits` is a variable of the language: running it as a command tells whether there is such
/// a procedure, and if not, why. Everything else is code.
pub(super) fn understand(
    text: &str,
    language: Language,
    names: &BTreeSet<String>,
    is_variable: impl FnOnce(&str) -> bool,
) -> Result<Line, LineError> {
    let text = text.trim();
    if text.is_empty() || text.starts_with("--") || text.starts_with('#') {
        return Ok(Line::Nothing);
    }
    if let Some(language) = Language::of_line(text) {
        return Ok(Line::Language(language));
    }
    let first = first_word(text);
    let rest = text[first.len()..].trim_start();
    match first.to_ascii_lowercase().as_str() {
        "help" if rest.is_empty() => return Ok(Line::Help),
        "exit" | "quit" if rest.is_empty() => return Ok(Line::Exit),
        _ => {}
    }
    let is_assignment = rest.starts_with('=') && !rest.starts_with("==");
    let words: &[&str] = match language {
        Language::Lua => &LUA_KEYWORDS,
        Language::Ruby => &RUBY_WORDS,
    };
    if is_assignment || words.contains(&first) {
        return Ok(Line::Code(text.to_owned()));
    }
    let is_name = names.contains(first) || names.contains(&first.to_lowercase());
    if is_name || library(first).is_some_and(|library| !is_variable(library)) {
        return Ok(Line::Command(split(text)?));
    }
    Ok(Line::Code(text.to_owned()))
}

/// The part before the first dot of a word that may be the name of a procedure.
fn library(word: &str) -> Option<&str> {
    let is_identifier = |part: &str| {
        part.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
            && part.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
    };
    let (library, _) = word.split_once('.')?;
    word.split('.').all(is_identifier).then_some(library)
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// Splits a command like the inline form of the Redis protocol: at spaces, with `"…"` and `'…'`
/// around arguments that contain spaces.
pub(crate) fn split(text: &str) -> Result<Vec<Vec<u8>>, LineError> {
    let limits =
        Limits { inline_len_max: LINE_LEN_MAX, request_len_max: LINE_LEN_MAX, ..Limits::default() };
    // The space keeps a line that starts with `*` from being read as the other form.
    let bytes = format!(" {text}\r\n").into_bytes();
    let mut decoder = RequestDecoder::new(limits);
    match decoder.decode(&bytes) {
        Ok(Decoded::Complete { .. }) => {
            Ok(decoder.request(&bytes).iter().map(<[u8]>::to_vec).collect())
        }
        Ok(_) => Err(LineError("it ends too early".to_owned())),
        Err(error) => Err(LineError(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(language: Language, text: &str) -> Result<Line, LineError> {
        let names = ["command", "get", "set", "type", "function", "hits.count"].map(str::to_owned);
        understand(text, language, &BTreeSet::from(names), |name| name == "math")
    }

    fn line(text: &str) -> Result<Line, LineError> {
        line_of(Language::Lua, text)
    }

    fn command(arguments: &[&str]) -> Result<Line, LineError> {
        Ok(Line::Command(arguments.iter().map(|a| a.as_bytes().to_vec()).collect()))
    }

    fn lua(text: &str) -> Result<Line, LineError> {
        Ok(Line::Code(text.to_owned()))
    }

    #[test]
    fn the_first_word_decides() {
        assert_eq!(line("GET k"), command(&["GET", "k"]));
        assert_eq!(line("  get 'a b' \"\\x00\"  "), command(&["get", "a b", "\0"]));
        assert_eq!(line("hits.count /index"), command(&["hits.count", "/index"]));
        assert_eq!(line("hits.other /index"), command(&["hits.other", "/index"]));
        assert_eq!(line("hits.x == 1"), command(&["hits.x", "==", "1"]));
        for text in ["math.pi", "hits.x = 1", "hits.x()", "hits.", "hits..x", "1.5", "(1)"] {
            assert_eq!(line(text), lua(text));
        }
        assert_eq!(line("type(x)"), lua("type(x)"));
        assert_eq!(line("set = 1"), lua("set = 1"));
        assert_eq!(line("set == 1"), command(&["set", "==", "1"]));
        assert_eq!(line("function f()"), lua("function f()"));
        assert_eq!(line("FUNCTION LIST"), command(&["FUNCTION", "LIST"]));
        assert_eq!(line("= get"), lua("= get"));
        assert_eq!(line("gte k"), lua("gte k"));
        assert_eq!(line("help"), Ok(Line::Help));
        assert_eq!(line("quit"), Ok(Line::Exit));
        assert_eq!((line("HELP"), line("QUIT")), (Ok(Line::Help), Ok(Line::Exit)));
        assert_eq!(line(" "), Ok(Line::Nothing));
        assert_eq!(line("-- note"), Ok(Line::Nothing));
    }

    #[test]
    fn lines_of_ruby_have_other_words() {
        let ruby = |text| line_of(Language::Ruby, text);
        assert_eq!(ruby("command :get, 'k'"), lua("command :get, 'k'"));
        assert_eq!(ruby("COMMAND COUNT"), command(&["COMMAND", "COUNT"]));
        assert_eq!(ruby("get k"), command(&["get", "k"]));
        assert_eq!(ruby("get = 1"), lua("get = 1"));
        assert_eq!(ruby("math.pi"), lua("math.pi"));
        assert_eq!(ruby("hits.count 1"), command(&["hits.count", "1"]));
        assert_eq!(ruby("x.map { |y| y }"), command(&["x.map", "{", "|y|", "y", "}"]));
        assert_eq!(ruby("lua"), Ok(Line::Language(Language::Lua)));
        assert_eq!(line("ruby"), Ok(Line::Language(Language::Ruby)));
        assert_eq!(line("ruby = 1"), lua("ruby = 1"));
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert!(line("GET \"k").is_err());
        assert_eq!(split("*1 2").unwrap(), [b"*1", &b"2"[..]]);
    }
}
