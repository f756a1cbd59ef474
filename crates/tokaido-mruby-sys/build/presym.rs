//! The table of symbols that C code names, which are constants in C. The preprocessor finds them: with
//! `MRB_PRESYM_SCANNING`, the headers of mruby put each between `<@!` and `!@>`, as C literals.

use std::{collections::BTreeSet, fmt::Write, path::PathBuf};

use crate::{Mruby, write};

/// The names of operators in C.
const OPERATORS: &[(&str, &str)] = &[
    ("!", "not"),
    ("%", "mod"),
    ("&", "and"),
    ("*", "mul"),
    ("+", "add"),
    ("-", "sub"),
    ("/", "div"),
    ("<", "lt"),
    (">", "gt"),
    ("^", "xor"),
    ("`", "tick"),
    ("|", "or"),
    ("~", "neg"),
    ("!=", "neq"),
    ("!~", "nmatch"),
    ("&&", "andand"),
    ("**", "pow"),
    ("+@", "plus"),
    ("-@", "minus"),
    ("<<", "lshift"),
    ("<=", "le"),
    ("==", "eq"),
    ("=~", "match"),
    (">=", "ge"),
    (">>", "rshift"),
    ("[]", "aref"),
    ("||", "oror"),
    ("<=>", "cmp"),
    ("===", "eqq"),
    ("[]=", "aset"),
];

/// Writes `presym/id.h` and `presym/table.h` for the symbols in `files`.
pub(crate) fn write_tables(mruby: &Mruby, files: &[PathBuf]) {
    let mut symbols = BTreeSet::new();
    for file in files {
        let mut scanning = mruby.library();
        scanning.define("MRB_PRESYM_SCANNING", "1").file(file);
        scanning.cargo_metadata(false);
        find(&String::from_utf8_lossy(&scanning.expand()), &mut symbols);
    }
    // mruby looks them up by binary search, ordered by length first.
    let mut symbols: Vec<String> = symbols.into_iter().collect();
    symbols.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let (mut ids, mut lengths, mut names) = (String::new(), String::new(), String::new());
    for (number, symbol) in (1..).zip(&symbols) {
        if let Some(name) = c_name(symbol) {
            let _ = writeln!(ids, "  {name} = {number},");
        }
        let _ = writeln!(lengths, "  {},", symbol.len());
        let _ = writeln!(names, "  \"{}\",", symbol.escape_default());
    }
    let folder = mruby.out.join("include/mruby/presym");
    let count = symbols.len();
    write(
        &folder.join("id.h"),
        format!("enum mruby_presym {{\n{ids}}};\n#define MRB_PRESYM_MAX {count}\n"),
    );
    write(
        &folder.join("table.h"),
        format!(
            "static const uint16_t presym_length_table[] = {{\n{lengths}}};\n\
             static const char * const presym_name_table[] = {{\n{names}}};\n"
        ),
    );
}

fn find(text: &str, symbols: &mut BTreeSet<String>) {
    for found in text.split("<@! ").skip(1) {
        let Some((found, _)) = found.split_once(" !@>") else { continue };
        // Adjacent literals are one.
        let parts: Vec<&str> = found.split('"').collect();
        let symbol: String = parts.iter().skip(1).step_by(2).copied().collect();
        let is_plain = !symbol.contains('\\') && symbol.is_ascii();
        if parts.len() > 1 {
            assert!(is_plain, "the symbol {found} needs an escape, which nothing here reads");
            symbols.insert(symbol);
        }
    }
}

/// The name of a symbol's constant; `None` if C cannot name it.
fn c_name(symbol: &str) -> Option<String> {
    if let Some((_, name)) = OPERATORS.iter().find(|(operator, _)| *operator == symbol) {
        return Some(format!("MRB_OPSYM__{name}"));
    }
    let prefixes = [("@@", "CVSYM"), ("@", "IVSYM"), ("$", "GVSYM")];
    let prefixed = prefixes.iter().find_map(|(p, kind)| Some((symbol.strip_prefix(p)?, *kind)));
    let (name, kind) = prefixed.unwrap_or_else(|| {
        let suffixes = [('!', "SYM_B"), ('?', "SYM_Q"), ('=', "SYM_E")];
        let suffixed =
            suffixes.iter().find_map(|(s, kind)| Some((symbol.strip_suffix(*s)?, *kind)));
        suffixed.unwrap_or((symbol, "SYM"))
    });
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let begins = name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    (is_word && begins).then(|| format!("MRB_{kind}__{name}"))
}
