//! Checks docs/tokyo-tyrant-lua.md against the names that Tokyo Tyrant's scripts find.

use std::collections::BTreeSet;

use mlua::{Table, Value};

use super::page::Page;
use crate::{Dialect, Runtime as _, Transaction};

const PAGE: Page = Page {
    dialect: &Dialect::TOKYO_TYRANT,
    path: "docs/tokyo-tyrant-lua.md",
    text: include_str!("../../../../docs/tokyo-tyrant-lua.md"),
};

#[test]
fn the_page_lists_every_name_and_no_other() {
    let (mut vm, _store) = PAGE.vm("");
    let guest: Table = vm.state_for_tests().core().get("guest").unwrap();
    let globals: Table = guest.get("globals").unwrap();
    let there = globals.pairs::<String, Value>().map(|pair| pair.unwrap().0);
    let there: BTreeSet<String> = there.collect();
    PAGE.lists(&there);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    for name in PAGE.refused(5) {
        let (mut vm, store) = PAGE.vm(&format!("function f() {name}(1) end"));
        let procedure = vm.find(b"f").unwrap();
        let mut writer = store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let called = vm.call(procedure, transaction.into(), &[]);
        PAGE.refuses(called, 1, &name);
    }
}
