//! Holds `docs/ruby.md` against the methods that there are.

mod support;

use std::collections::BTreeSet;

use support::{Bed, json};

const MANUAL: &str = include_str!("../../../docs/ruby.md");

/// What the first column calls a class, and what the object is called in the second.
const CLASSES: [(&str, &str, &str); 11] = [
    ("transaction", "tx", "Tokaido::Transaction"),
    ("database", "db", "Tokaido::Database"),
    ("scan", "scan", "Tokaido::Scan"),
    ("collection", "collection", "Tokaido::Collection"),
    ("hash", "hash", "Tokaido::StoredHash"),
    ("list", "list", "Tokaido::StoredList"),
    ("set", "set", "Tokaido::StoredSet"),
    ("sorted set", "sorted", "Tokaido::StoredSortedSet"),
    ("range of scores", "range", "Tokaido::ScoreRange"),
    ("request", "req", "Tokaido::Request"),
    ("response", "res", "Tokaido::Response"),
];

/// The methods in the table, as `class.method`.
fn documented() -> BTreeSet<String> {
    let mut methods = BTreeSet::new();
    let rows = MANUAL.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    for code in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        for (_, object, class) in CLASSES {
            let Some(rest) = code.strip_prefix(object) else { continue };
            let name = if rest.starts_with('[') {
                if rest.contains("] = ") { "[]=" } else { "[]" }.to_owned()
            } else if let Some(operation) = rest.strip_prefix(' ') {
                operation.split(' ').next().unwrap_or_default().replace('\\', "")
            } else {
                let Some(rest) = rest.strip_prefix('.') else { continue };
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '?');
                let name = &rest[..end.unwrap_or(rest.len())];
                let is_set = rest[name.len()..].starts_with(" = ");
                format!("{name}{}", if is_set { "=" } else { "" })
            };
            methods.insert(format!("{class}.{name}"));
        }
    }
    methods
}

#[test]
fn the_table_has_every_method_and_no_other() {
    let classes: Vec<&str> = CLASSES.iter().map(|(_, _, class)| *class).collect();
    let mut bed = Bed::body(&format!(
        "[{}].flat_map {{ |c| c.instance_methods(false).map {{ |m| \"#{{c}}.#{{m}}\" }} }}",
        classes.join(", ")
    ));
    let found = json(&bed.run().unwrap());
    let is_own = |name: &&str| name.contains("__") || name.ends_with("initialize");
    let found: BTreeSet<String> = found
        .trim_matches(['[', ']'])
        .split(',')
        .map(|name| name.trim_matches('"'))
        .filter(|name| !is_own(name))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented(), found);
}
