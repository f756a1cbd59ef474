//! Checks `docs/mod_mruby.md` and the stubs against the actual names.

use std::collections::BTreeSet;

use tokaido_script::Dialect;

use super::{Site, stubs};

const MANUAL: &str = include_str!("../../../../docs/mod_mruby.md");

/// All names of the class, in the form of the page.
const NAMES: &str = r##"
owners = [Apache::Request, Apache::Notes, Apache::Headers_in, Apache::Headers_out, Apache::Env, Apache::AuthnProvider,
          Apache::Filter, Apache::Connection, Apache::Server, Apache::Scoreboard, Apache::Finfo]
names = Apache.singleton_class.instance_methods(false).map { |name| "Apache.#{name}" }
names.concat(Apache.constants.reject { |name| Apache.const_get(name).is_a?(Module) }.map { |name| "Apache::#{name}" })
owners.each do |owner|
  names.concat(owner.instance_methods(false).map { |name| "#{owner}##{name}" })
  names.concat(owner.constants.map { |name| "#{owner}::#{name}" })
end
OWN = %w[Apache.refuse Apache::REFUSED Apache::METHODS Apache::Request::TEXTS Apache::Finfo::KINDS]
Apache.rputs (names - OWN).reject { |name| name.end_with?("#initialize") || name.end_with?(".inherited") }.join(" ")
"##;

/// The names in the page's table, and what it says about each.
fn listed() -> Vec<(String, &'static str)> {
    let (_, table) = MANUAL.split_once("\n## Every name\n").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let of_row = |row: &'static str| {
        let (names, said) = row[2..].split_once(" | ").unwrap();
        names.split('`').skip(1).step_by(2).map(move |name| (name.to_owned(), said))
    };
    rows.flat_map(of_row).collect()
}

#[test]
fn the_page_lists_every_name_and_no_other() {
    let there = Site::one(NAMES).get();
    let there: BTreeSet<&str> = there.strip_prefix("200\n\n").unwrap().split(' ').collect();
    let listed = listed();
    let listed: BTreeSet<&str> = listed.iter().map(|(name, _)| &**name).collect();
    let only = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| -> Vec<String> {
        a.difference(b).map(|name| format!("`{name}`")).collect()
    };
    let kernel: BTreeSet<&str> =
        ["server_name", "get_server_class", "run", "Userdata.new", "Tokaido.tx"].into();
    let missing = only(&there, &listed).join(" ");
    assert!(missing.is_empty(), "not on the page: {missing}");
    let gone: BTreeSet<&str> = listed.difference(&kernel).copied().collect();
    assert_eq!(only(&gone, &there), Vec::<String>::new());
}

#[test]
fn the_stubs_have_what_is_offered_and_nothing_else() {
    let offered: BTreeSet<String> = listed()
        .into_iter()
        .filter(|(name, said)| !said.starts_with("refused") && name.starts_with("Apache"))
        .map(|(name, _)| name)
        .collect();
    let stubs: BTreeSet<String> = stubs::names_in(include_str!("../../sig/apache.rbs"))
        .into_iter()
        .filter(|name| name.starts_with("Apache"))
        .collect();
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
        a.difference(b).cloned().collect()
    };
    assert_eq!(only(&offered, &stubs), Vec::<String>::new(), "not in the stubs");
    assert_eq!(only(&stubs, &offered), Vec::<String>::new(), "only in the stubs");
}

#[test]
fn the_page_lists_what_a_file_may_say_of_itself() {
    let (_, table) = MANUAL.split_once("\n## What a file says of itself\n").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("| `"));
    let rows = rows.take_while(|line| line.starts_with("| `"));
    let listed: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let known: Vec<&str> = Dialect::MOD_MRUBY.settings.iter().map(|setting| setting.name).collect();
    assert_eq!(listed, known);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    let refused: Vec<String> = listed()
        .into_iter()
        .filter(|(_, said)| said.starts_with("refused"))
        .map(|(name, _)| name)
        .collect();
    assert!(refused.len() >= 30, "there are {}", refused.len());
    for name in refused {
        let (owner, method) = name.split_once('#').or_else(|| name.rsplit_once('.')).unwrap();
        let on = if name.contains('#') { format!("{owner}.new") } else { owner.to_owned() };
        let answer = Site::one(&format!("{on}.__send__(:{method:?}, 1)")).get();
        assert!(answer.contains(&format!("{name} is not offered: ")), "{name}: {answer}");
        assert!(answer.contains("docs/mod_mruby.md"), "{name}: {answer}");
    }
}
