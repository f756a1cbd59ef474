//! The rules, each a function from a file's text to its violations.

use super::Finding;

/// Lines of code of one file. Tests are not counted: a table of cases reads well at any length.
const FILE_LINES_MAX: usize = 500;

/// Lines of one function that is not a test, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Words that must not stay, and why. They are written in two halves so that this file passes.
const WORDS: [(&str, &str); 7] = [
    (concat!("TO", "DO"), "do it, or write an issue"),
    (concat!("FIX", "ME"), "fix it, or write an issue"),
    (concat!("todo", "!("), "a thing is there and works, or it is not there"),
    (concat!("unimpl", "emented!("), "a thing is there and works, or it is not there"),
    (concat!("dbg", "!("), "left over from debugging"),
    (concat!("#[ign", "ore"), "a test runs or is removed"),
    (concat!("allow(dead", "_code)"), "remove the dead code"),
];

pub(super) fn long_file(name: &str, text: &str) -> Option<Finding> {
    let count = code_lines(text).count();
    (count > FILE_LINES_MAX).then(|| Finding {
        rule: "file-length",
        place: name.to_owned(),
        count,
        message: format!(
            "{name}: {count} lines, {FILE_LINES_MAX} is the most: one idea a file, give another \
             its own"
        ),
    })
}

/// The lines before the unit tests in the same file.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| *line != "mod tests {")
}

/// The first line must say what the file is responsible for, in a comment of its language.
pub(super) fn missing_head(name: &str, text: &str) -> Option<Finding> {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let heads: &[&str] = match extension {
        "rs" => &["//!"],
        "lua" => &["--"],
        "py" => &["\"\"\""],
        _ => &["//", "/*"],
    };
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"))?;
    let has_head = heads.iter().any(|head| first.starts_with(head));
    (!has_head).then(|| Finding {
        rule: "file-head",
        place: name.to_owned(),
        count: 1,
        message: format!(
            "{name}: begins without {}: say first what the file is responsible for",
            heads[0]
        ),
    })
}

pub(super) fn long_functions(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if name.contains("/tests/") {
        return findings;
    }
    let lines: Vec<&str> = code_lines(text).collect();
    for (start, line) in lines.iter().enumerate() {
        let Some(function) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let Some(length) = lines[start..].iter().position(|line| *line == closing) else {
            continue;
        };
        // A declared function of another language has no body.
        let declared = format!("{indent})");
        let is_declared = lines[start..start + length]
            .iter()
            .any(|line| line.starts_with(&declared) && line.ends_with(';'));
        let count = length + 1;
        if count > FUNCTION_LINES_MAX && !is_declared {
            findings.push(Finding {
                rule: "function-length",
                place: format!("{name} {function}"),
                count,
                message: format!(
                    "{name}:{}: fn {function} has {count} lines, {FUNCTION_LINES_MAX} is the most",
                    start + 1
                ),
            });
        }
    }
    findings
}

/// The name of the function that begins but does not end on this line. rustfmt puts the closing
/// brace in the column where the line with `fn` begins, which is all that is needed to find it.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let qualifiers_only = before.split_whitespace().all(|word| {
        let word = word.trim_start_matches("pub");
        word.is_empty()
            || word.starts_with('(')
            || word.ends_with(')')
            || word.starts_with('"')
            || matches!(word, "const" | "async" | "unsafe" | "extern" | "default")
    });
    let ended = line.ends_with('}') || line.ends_with(';');
    let name = after.split(['(', '<']).next()?;
    (qualifiers_only && !ended && !name.is_empty()).then_some(name)
}

pub(super) fn forbidden_words(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (word, advice) in WORDS {
        let mut lines = text.lines().enumerate().filter(|(_, line)| line.contains(word));
        let Some((first, _)) = lines.next() else { continue };
        findings.push(Finding {
            rule: "word",
            place: format!("{name} {word}"),
            count: 1 + lines.count(),
            message: format!("{name}:{}: {word}: {advice}", first + 1),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let code = "x\n".repeat(FILE_LINES_MAX);
        assert_eq!(long_file("a.rs", &format!("{code}mod tests {{\nx\nx\n}}\n")), None);
        assert_eq!(long_file("a.rs", &format!("{code}x\n")).unwrap().count, FILE_LINES_MAX + 1);
    }

    #[test]
    fn a_function_is_measured_to_the_brace_in_its_column() {
        let body = "        if x {\n        }\n".repeat(FUNCTION_LINES_MAX / 2);
        let text =
            format!("impl A {{\n    pub(crate) async fn long<T>(x: T) {{\n{body}    }}\n}}\n");
        let findings = long_functions("a.rs", &text);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "a.rs long");
        assert_eq!(findings[0].count, FUNCTION_LINES_MAX + 2);
        assert!(findings[0].message.starts_with("a.rs:2: fn long has 72 lines"), "{findings:?}");
        assert_eq!(long_functions("a/tests/a.rs", &text), []);
        let declaration = "extern \"C\" {\n    fn long(\n        x: i32,\n    ) -> i32;\n}\n";
        assert_eq!(long_functions("a.rs", &format!("{declaration}{body}    }}\n")), []);
    }

    #[test]
    fn only_the_beginning_of_a_function_is_one() {
        assert_eq!(function_name("    fn a(&self) -> u8 {"), Some("a"));
        assert_eq!(function_name("pub unsafe extern \"C\" fn b("), Some("b"));
        assert_eq!(function_name("    fn required(&self);"), None);
        assert_eq!(function_name("    // the fn word in a comment"), None);
        assert_eq!(function_name("    let f: fn (u8) = g;"), None);
    }

    #[test]
    fn a_file_begins_with_its_head() {
        assert_eq!(missing_head("a.rs", "\n//! What it is for.\n"), None);
        assert_eq!(missing_head("a.py", "#!/usr/bin/env python3\n\"\"\"What.\"\"\"\n"), None);
        assert_eq!(missing_head("a.rs", "use std::io;\n").unwrap().rule, "file-head");
        assert_eq!(missing_head("empty.py", ""), None);
    }

    #[test]
    fn a_word_that_must_not_stay_is_found_where_it_stands_first() {
        let text = format!("a\n// {0}\n// {0}\n", concat!("TO", "DO"));
        let findings = forbidden_words("a.rs", &text);
        assert_eq!((findings.len(), findings[0].count), (1, 2));
        assert!(findings[0].message.starts_with("a.rs:2: "));
    }
}
