//! Checks docs/kyoto-tycoon-lua.md against the names that Kyoto Tycoon's scripts find.

use std::collections::BTreeSet;

use mlua::{Table, Value};

use super::page::Page;
use crate::{Dialect, Runtime as _, Transaction};

const PAGE: Page = Page {
    dialect: &Dialect::KYOTO_TYCOON,
    path: "docs/kyoto-tycoon-lua.md",
    text: include_str!("../../../../docs/kyoto-tycoon-lua.md"),
};

/// The names in a table: functions after `object`, constructors and constants after `class`.
fn names(table: &Table, class: &str, object: &str) -> Vec<String> {
    let pairs = table.pairs::<String, Value>().map(Result::unwrap);
    pairs
        .map(|(name, value)| match value {
            Value::Function(_) if name == "new" => format!("{class}:new"),
            Value::Function(_) => format!("{object}{name}"),
            _ => format!("{class}.{name}"),
        })
        .collect()
}

#[test]
fn the_page_lists_every_name_and_no_other() {
    let (mut vm, _store) = PAGE.vm("");
    let kyoto: Table = vm.state_for_tests().core().get("kyoto").unwrap();
    let module: Table = kyoto.get("module").unwrap();
    let mut there: BTreeSet<String> = names(&module, "kt", "kt.").into_iter().collect();
    for (class, object) in [
        ("Error", "error:"),
        ("Visitor", "visitor:"),
        ("FileProcessor", "processor:"),
        ("Cursor", "cur:"),
        ("DB", "kt.DB:"),
    ] {
        let table: Table = module.get(class).unwrap();
        there.extend(names(&table, &format!("kt.{class}"), object));
    }
    let engines: Table = kyoto.get("engines").unwrap();
    let methods: Table = engines.get::<Table>(1).unwrap().get("DB").unwrap();
    there.extend(names(&methods, "db", "db:"));
    PAGE.lists(&there);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    for name in PAGE.refused(5) {
        let (mut vm, store) = PAGE
            .vm(&format!("function f() local kt = __kyototycoon__ local db = kt.db {name}(1) end"));
        let procedure = vm.find(b"f").unwrap();
        let mut writer = store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let called = vm.call(procedure, transaction.into(), &[]);
        let what = name.replace("db:", "DB:").replace("kt.", "");
        PAGE.refuses(called, 1, &what);
    }
}
