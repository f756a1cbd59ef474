//! `docs/limits.md`, from the constants of each crate's `limits.rs`.

use std::path::Path;

use crate::{
    failure::{Failure, Outcome},
    files, markdown,
};

const INTRODUCTION: &str = "\
# Limits

Everything is limited, so that no client can use up what the others need. Whatever exceeds a limit is refused with an
error that names the limit, and has no other effect. Limits that an operator can change are in
[configuration.md](configuration.md); those below are built into the program.

This page is generated from the constants in the code by `cargo xtask docs`.
";

#[derive(Debug, PartialEq, Eq)]
struct Limit {
    name: String,
    value: String,
    meaning: String,
}

/// The page, generated from the code.
pub(super) fn page() -> Outcome<String> {
    let mut page = INTRODUCTION.to_owned();
    for path in files::tracked(&["limits.rs"])? {
        // Files with tests of limits have the same name.
        let is_source = path.iter().nth(2).is_some_and(|directory| directory == "src");
        if !path.starts_with("crates") || !is_source {
            continue;
        }
        let limits = constants(&files::read(&path)?).map_err(|what| in_file(&path, &what))?;
        // The file with the table of options has none.
        if limits.is_empty() {
            continue;
        }
        let rows: Vec<Vec<String>> = limits
            .iter()
            .map(|limit| vec![limit.meaning.clone(), limit.value.clone(), limit.name.clone()])
            .collect();
        page.push_str(&format!("\n## `{}`\n\n", path.display()));
        page.push_str(&markdown::table(&["what", "limit", "constant"], &rows));
    }
    Ok(page)
}

fn in_file(path: &Path, what: &str) -> Failure {
    Failure::new(format!("{}: {what}", path.display()))
}

/// Public integer constants with the comments above them. Other items do not belong in a file of
/// limits.
fn constants(source: &str) -> Result<Vec<Limit>, String> {
    let mut limits = Vec::new();
    let mut meaning = Vec::new();
    for line in source.lines() {
        if let Some(comment) = line.strip_prefix("/// ") {
            meaning.push(comment);
        } else if let Some(constant) = constant_in(line) {
            let (name, expression) = constant;
            let value = readable(expression)
                .ok_or_else(|| format!("cannot read the value of {name}: {expression}"))?;
            let meaning = std::mem::take(&mut meaning).join(" ");
            if meaning.is_empty() {
                return Err(format!("{name} does not say what it limits"));
            }
            limits.push(Limit { name: format!("`{name}`"), value, meaning: plain(&meaning) });
        } else {
            meaning.clear();
        }
    }
    Ok(limits)
}

fn constant_in(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("pub(crate) const ").or(line.strip_prefix("pub const "))?;
    let (name, rest) = line.split_once(':')?;
    Some((name, rest.split_once('=')?.1.trim().trim_end_matches(';')))
}

/// The value in readable form: a time with its unit, or a number.
fn readable(expression: &str) -> Option<String> {
    for (constructor, unit) in [("Duration::from_secs(", "s"), ("Duration::from_millis(", "ms")] {
        if let Some((_, rest)) = expression.split_once(constructor) {
            return Some(format!("{} {unit}", grouped(evaluate(rest.strip_suffix(')')?)?)));
        }
    }
    let value = evaluate(expression)?;
    let mebibytes = value >> 20;
    if mebibytes > 0 && mebibytes << 20 == value {
        return Some(format!("{} ({mebibytes} Mi)", grouped(value)));
    }
    Some(grouped(value))
}

/// Integers, `<<`, `+`, `*` and parentheses.
fn evaluate(expression: &str) -> Option<u64> {
    let expression = expression.trim();
    // From the operator of lowest precedence, as in Rust.
    if let Some((a, b)) = split_outside(expression, "<<") {
        return Some(evaluate(a)? << evaluate(b)?);
    }
    if let Some((a, b)) = split_outside(expression, "+") {
        return evaluate(a)?.checked_add(evaluate(b)?);
    }
    if let Some((a, b)) = split_outside(expression, "*") {
        return evaluate(a)?.checked_mul(evaluate(b)?);
    }
    if let Some(inside) = expression.strip_prefix('(') {
        return evaluate(inside.strip_suffix(')')?);
    }
    expression.replace('_', "").parse().ok()
}

/// The parts before and after the last `operator` outside parentheses.
fn split_outside<'e>(expression: &'e str, operator: &str) -> Option<(&'e str, &'e str)> {
    let (at, _) = expression.rmatch_indices(operator).find(|(at, _)| {
        let before = &expression[..*at];
        before.matches('(').count() == before.matches(')').count()
    })?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

/// Links to items are for rustdoc.
fn plain(comment: &str) -> String {
    comment.replace("[`", "`").replace("`]", "`").replace("crate::", "")
}

/// Digits with a comma between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_read_with_its_comment() {
        let source = "//! Head.\n\n/// Longest value of\n/// [`crate::Record`].\npub const VALUE_MAX: \
                      usize = 64 << 20;\n";
        let limits = constants(source).unwrap();
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].name, "`VALUE_MAX`");
        assert_eq!(limits[0].meaning, "Longest value of `Record`.");
        assert_eq!(limits[0].value, "67,108,864 (64 Mi)");
    }

    #[test]
    fn a_constant_that_cannot_be_read_is_an_error() {
        assert!(constants("/// A.\npub const A: usize = other();\n").is_err());
        assert!(constants("pub const A: usize = 1;\n").unwrap_err().contains("does not say"));
    }

    #[test]
    fn values_are_made_readable() {
        let readable = |expression| readable(expression).unwrap();
        assert_eq!(readable("256"), "256");
        assert_eq!(readable("1_000_000"), "1,000,000");
        assert_eq!(readable("64 << 20"), "67,108,864 (64 Mi)");
        assert_eq!(readable("4 * 1_024"), "4,096");
        assert_eq!(readable("(1 << 10) + (1 << 4) * 2"), "1,056");
        assert_eq!(evaluate("(1 << 10"), None);
        assert_eq!(readable("Duration::from_secs(10)"), "10 s");
    }
}
