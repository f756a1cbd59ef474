//! Checks `docs/ruby.md` against the actual methods.

#[path = "support/stubs.rs"]
mod stubs;
mod support;

use std::collections::BTreeSet;

use support::{Bed, json};
use tokaido_script::Value;

const STUBS: &str = include_str!("../sig/tokaido.rbs");
const MANUAL: &str = include_str!("../../../docs/ruby.md");

/// The name of a class in the first column, and of its object in the second.
const CLASSES: [(&str, &str, &str); 14] = [
    ("transaction", "tx", "Tokaido::Transaction"),
    ("database", "db", "Tokaido::Database"),
    ("scan", "scan", "Tokaido::Scan"),
    ("collection", "collection", "Tokaido::Collection"),
    ("hash", "hash", "Tokaido::StoredHash"),
    ("list", "list", "Tokaido::StoredList"),
    ("set", "set", "Tokaido::StoredSet"),
    ("sorted set", "sorted", "Tokaido::StoredSortedSet"),
    ("range of scores", "range", "Tokaido::ScoreRange"),
    ("stream", "stream", "Tokaido::StoredStream"),
    ("range of ids", "entries", "Tokaido::EntryRange"),
    ("group", "group", "Tokaido::StreamGroup"),
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

/// The methods of the API in the virtual machine, without the internal ones.
const METHODS: &str = r##"
classes = %w[Transaction Database Scan Collection StoredHash StoredList StoredSet StoredSortedSet ScoreRange StoredStream EntryRange
             StreamGroup Fields Request Response Headers].map { |name| Tokaido.const_get(name) }
names = classes.flat_map { |c| c.instance_methods(false).map { |m| "#{c}##{m}" } }
names.concat(%i[read write get head options post put patch delete].map { |m| "Tokaido::Procedures.#{m}" })
names.reject { |name| name.include?("__") || name.end_with?("#initialize") }
"##;

#[test]
fn the_stubs_have_every_method_and_no_other() {
    let found = Bed::body(METHODS).run().unwrap();
    let Value::Array(found) = found else { panic!("{found:?}") };
    let found: BTreeSet<String> = found
        .into_iter()
        .map(|name| match name {
            Value::String(name) => String::from_utf8(name).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    // What procedures lack: methods of scripts, mod_mruby scripts and errors, and what is not public.
    let elsewhere = [
        "Kernel#command",
        "Tokaido.log",
        "Tokaido.snapshot",
        "Tokaido.transact",
        "Tokaido.tx",
        "Tokaido::VERSION",
        "Tokaido::Procedures#refuse",
    ];
    let stubs: BTreeSet<String> = stubs::names_in(STUBS)
        .into_iter()
        .filter(|name| !elsewhere.contains(&&**name))
        .filter(|name| {
            !["Refusal#", "Record#", "PendingEntry#", "GroupSummary#"]
                .iter()
                .any(|own| name.contains(own))
        })
        .collect();
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
        a.difference(b).cloned().collect()
    };
    assert_eq!(only(&found, &stubs), Vec::<String>::new(), "not in the stubs");
    assert_eq!(only(&stubs, &found), Vec::<String>::new(), "only in the stubs");
}
