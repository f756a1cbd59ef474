//! Checks docs/mod_lua.md against the names that mod_lua handlers find.

use std::collections::BTreeSet;

use mlua::{Table, Value};

use super::page::Page;
use crate::{Dialect, HttpRequest, HttpResponse, Runtime as _, Transaction};

const PAGE: Page = Page {
    dialect: &Dialect::MOD_LUA,
    path: "docs/mod_lua.md",
    text: include_str!("../../../../docs/mod_lua.md"),
};

#[test]
fn the_page_lists_every_name_and_no_other() {
    let (mut vm, _store) = PAGE.vm("");
    let apache: Table = vm.state_for_tests().core().get("apache").unwrap();
    let mut there = BTreeSet::new();
    for (part, before) in
        [("constants", "apache2."), ("fields", "r."), ("methods", "r:"), ("refusals", "r:")]
    {
        let part: Table = apache.get(part).unwrap();
        let names = part.pairs::<String, Value>().map(|pair| pair.unwrap().0);
        there.extend(names.map(|name| format!("{before}{name}")));
    }
    PAGE.lists(&there);
}

#[test]
fn the_page_lists_what_a_file_may_say_of_itself() {
    let listed: Vec<String> =
        PAGE.rows("\n## What a file says of itself\n").into_iter().map(|(name, _)| name).collect();
    let mut names: Vec<&str> = Dialect::MOD_LUA.settings.iter().map(|s| s.name).collect();
    let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    for name in PAGE.refused(30) {
        let name = name.strip_prefix("r:").unwrap();
        let (mut vm, store) = PAGE.vm(&format!("function handle(r)\nr:{name}(1) end"));
        let procedure = vm.find(b"m.handle").unwrap();
        let mut snapshot = store.snapshot().unwrap();
        let (request, mut response) = (HttpRequest::default(), HttpResponse::default());
        let transaction = Transaction::Read(&mut *snapshot);
        let called = vm.call_http(procedure, transaction.into(), &request, &mut response);
        PAGE.refuses(called, 2, &format!("r.{name}"));
    }
}
