//! One procedure file, and what it says about itself before its code.

use std::{path::PathBuf, sync::Arc};

use crate::{Dialect, Setting};

/// One file of source text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name that `require` knows it by, and the first part of its procedures' names:
    /// `shop/cart.lua` is `shop.cart`.
    pub module: String,
    /// Where it was read from; errors name it.
    pub path: PathBuf,
    /// The text.
    pub text: Arc<[u8]>,
    /// The dialect that the configuration names for it, which overrides what the file itself says.
    pub dialect: Option<String>,
    /// What else the configuration says about it, as names and values, for its dialect to check.
    pub settings: Vec<(String, String)>,
}

/// How a file names its dialect, after a comment sign on its first line, or on the line below `#!`.
const DIALECT_COMMENT: &str = " dialect:";

/// Words that other programs read in such comments.
const OTHER_WORDS: [&str; 9] = [
    "luacheck",
    "selene",
    "stylua",
    "vim",
    "encoding",
    "coding",
    "frozen_string_literal",
    "rubocop",
    "warn_indent",
];

impl Source {
    /// The name of the dialect that it is written in, even if there is no such dialect.
    #[must_use]
    pub fn dialect_name(&self) -> &str {
        let own = || {
            let comment = self.head().next()?.strip_prefix(self.comment_sign())?;
            Some(comment.strip_prefix(DIALECT_COMMENT)?.trim())
        };
        self.dialect.as_deref().or_else(own).unwrap_or(Dialect::NATIVE.name)
    }

    /// What begins a comment in its language.
    fn comment_sign(&self) -> &'static str {
        if self.path.extension().is_some_and(|extension| extension == "rb") { "#" } else { "--" }
    }

    /// What it says about itself in comments `-- name: value` (in Ruby `# name: value`) above its first line of code, then
    /// what the configuration says about it. Later entries override earlier ones.
    ///
    /// An unnoticed setting could leave a route unguarded. So a known setting that is written differently or
    /// twice is an error, and so is an unknown one in a file with a route, or in a dialect with guards.
    ///
    /// # Errors
    /// In these cases, with a message.
    pub fn all_settings(&self, known: &[Setting]) -> Result<Vec<(&str, &str)>, String> {
        let (mut found, mut unknown) = (Vec::new(), None);
        let sign = self.comment_sign();
        for comment in self.comments() {
            let text = comment.trim();
            let Some((before, after)) = text.strip_prefix(sign).and_then(|t| t.split_once(':'))
            else {
                continue;
            };
            let (name, value) = (before.trim().to_ascii_lowercase(), after.trim());
            if let Some(setting) = known.iter().find(|setting| setting.name == name) {
                if found.iter().any(|(other, _)| *other == name) {
                    return Err(format!("it says `{name}` twice, and one would go unnoticed"));
                }
                if !comment.starts_with(&format!("{sign} {name}: ")) || value.is_empty() {
                    let as_it_is = format!("`{sign} {name}: VALUE`");
                    return Err(format!("its line `{text}` is to be written as {as_it_is}"));
                }
                found.push((setting.name, value));
            } else if is_like_setting(before, after) {
                unknown = unknown.or(Some(text));
            }
        }
        found.extend(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let is_strict = known.iter().any(|setting| setting.guards_other_files)
            || found.iter().any(|(name, _)| *name == "route");
        match unknown.filter(|_| is_strict) {
            None => Ok(found),
            Some(unknown) => {
                let known: Vec<_> = known.iter().map(|setting| setting.name).collect();
                let known = known.join(", ");
                Err(format!("its line `{unknown}` says nothing that is known; there are {known}"))
            }
        }
    }

    /// Its one-line comments above its first line of code.
    fn comments(&self) -> Vec<&str> {
        let (mut comments, mut long_until) = (Vec::new(), None::<String>);
        for line in self.head() {
            let text = line.trim();
            if let Some(end) = &long_until {
                if text.contains(end) {
                    long_until = None;
                }
            } else if let Some(end) = end_of_long_comment(text)
                && self.comment_sign() == "--"
            {
                long_until = (!text.contains(&end)).then_some(end);
            } else if text.starts_with(self.comment_sign()) {
                comments.push(line);
            } else if !text.is_empty() {
                break;
            }
        }
        comments
    }

    /// Its first lines, up to one that is not UTF-8, without lines that begin with `#!`.
    fn head(&self) -> impl Iterator<Item = &str> {
        let text = self.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.text);
        let lines = text.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"#!"));
        lines.map_while(|line| str::from_utf8(line).ok())
    }
}

/// What ends the comment that begins here, if it may span several lines.
fn end_of_long_comment(text: &str) -> Option<String> {
    let text = text.strip_prefix("--[")?;
    let behind = text.trim_start_matches('=');
    let level = text.len() - behind.len();
    behind.starts_with('[').then(|| format!("]{}]", "=".repeat(level)))
}

/// Whether a comment with these words before and after its colon may be meant as a setting.
fn is_like_setting(before: &str, after: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b == b'_' || b == b'-';
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(plain);
    let word = before.trim_start();
    is_word(word) && after.starts_with(' ') && word != "dialect" && !OTHER_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_its_dialect_on_its_first_line_and_the_configuration_may_say_another() {
        let name = |text: &str, dialect: Option<&str>| {
            let (module, path) = ("m".to_owned(), "m.lua".into());
            let dialect = dialect.map(str::to_owned);
            let (text, settings) = (text.as_bytes().into(), Vec::new());
            Source { module, path, text, dialect, settings }.dialect_name().to_owned()
        };
        assert_eq!(name("", None), "tokaido");
        assert_eq!(name("-- dialect: kyototycoon\nx = 1", None), "kyototycoon");
        assert_eq!(name("\u{feff}-- dialect:ngx \r\n", None), "ngx");
        assert_eq!(name("#!/usr/bin/lua\n-- dialect: apache", None), "apache");
        assert_eq!(name("x = 1\n-- dialect: ngx", None), "tokaido");
        assert_eq!(name("-- dialect: ngx", Some("apache")), "apache");
    }

    #[test]
    fn settings_stand_above_the_code_and_none_goes_unnoticed() {
        let read = |text: &str| {
            let (module, path) = ("m".to_owned(), "m.lua".into());
            let (text, dialect, settings) = (text.as_bytes().into(), None, Vec::new());
            let source = Source { module, path, text, dialect, settings };
            let found = source.all_settings(Dialect::OPENRESTY.settings)?;
            Ok(found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        for between in [
            "",
            "\n",
            "-- Says hello, and more: much more.\n",
            "--\n  \r\n",
            "--[[ Copyright\nof somebody\n]]\n",
            "--[==[ a ]] b ]==]\n",
            "-- luacheck: ignore\n",
            "-- see http://example.com\n",
        ] {
            let text = format!(
                "-- dialect: ngx\n-- route: /a\n{between}-- access: auth\nx = 1\n-- log: l"
            );
            let expected = ["route=/a", "access=auth"].map(str::to_owned).to_vec();
            assert_eq!(read(&text), Ok(expected), "{between:?}");
        }
        for wrong in [
            "--access: auth",
            "-- access:auth",
            "-- Access: auth",
            " -- access: auth",
            "-- access :a",
            "-- access:",
        ] {
            let error: String = read(&format!("{wrong}\n-- route: /a")).unwrap_err();
            assert!(error.contains("is to be written as `-- access: VALUE`"), "{wrong}: {error}");
        }
        for unknown in ["-- acces: auth", "-- header-filter: f", "-- acces:  auth"] {
            let error = read(&format!("{unknown}\n-- route: /a")).unwrap_err();
            assert!(error.contains("says nothing that is known"), "{unknown}: {error}");
            assert_eq!(read(unknown), Ok(Vec::new()));
        }
    }
}
