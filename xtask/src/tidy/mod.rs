//! Style rules that a machine can check, as a ratchet: known exceptions are listed in
//! `xtask/tidy.txt`; they may shrink, but not grow.

mod ratchet;
mod rules;

use std::path::Path;

use crate::{
    failure::{Failure, Outcome},
    files,
};

use ratchet::Ratchet;

/// A violation of a rule: which rule, where, and by how much.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    rule: &'static str,
    /// The file, and the function within it if the rule is about functions.
    place: String,
    /// What the rule counts: lines, or occurrences of a word.
    count: usize,
    /// The text for a person.
    message: String,
}

/// Checks all source files.
pub(crate) fn check() -> Outcome {
    let mut findings = Vec::new();
    let paths = files::tracked(&[".rs", ".lua", ".py", ".mjs", ".go"])?;
    for path in &paths {
        let text = files::read(path)?;
        findings.extend(look_at(path, &text));
    }
    let ratchet = Ratchet::parse(&files::read("xtask/tidy.txt")?).map_err(Failure::new)?;
    let complaints = ratchet.judge(&findings);
    if complaints.is_empty() {
        println!("tidy: {} files, {} known exceptions", paths.len(), ratchet.len());
        return Ok(());
    }
    Err(Failure::new(format!("not tidy:\n{}", complaints.join("\n"))))
}

fn look_at(path: &Path, text: &str) -> Vec<Finding> {
    let name = path.to_string_lossy();
    let is_rust = name.ends_with(".rs");
    let mut findings = Vec::new();
    findings.extend(rules::long_file(&name, text));
    findings.extend(rules::missing_head(&name, text));
    if is_rust {
        findings.extend(rules::long_functions(&name, text));
        findings.extend(rules::forbidden_words(&name, text));
    }
    findings
}
