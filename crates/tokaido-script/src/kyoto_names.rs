//! Holds docs/kyoto-tycoon-lua.md to the names that scripts of Kyoto Tycoon find.

use std::{collections::BTreeSet, sync::Arc};

use mlua::{Table, Value};
use tokaido_store::Store;

use crate::{
    CallError, Dialect, Limits, Runtime as _, Settings, Source, Sources, Transaction, Vm,
    compiled::store::MemoryStore,
};

const PAGE: &str = include_str!("../../../docs/kyoto-tycoon-lua.md");

/// The names of the page's table, with what it says of them.
fn listed() -> Vec<(String, &'static str)> {
    let (_, table) = PAGE.split_once("\n## Every name\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let (names, here) = row.split_once("` | ").unwrap();
        names.split("` `").map(move |name| (name.to_owned(), here))
    })
    .collect()
}

fn vm(text: &str) -> (Vm, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    let dialect = Some(Dialect::KYOTO_TYCOON.name.to_owned());
    let text = text.as_bytes().into();
    let (module, settings) = ("m".to_owned(), Vec::new());
    sources.add(Source { module, path: "m.lua".into(), text, dialect, settings });
    let (vm, errors) = Vm::start(
        &Dialect::KYOTO_TYCOON,
        Ok(Arc::clone(&store)),
        &sources,
        Limits::default(),
        Arc::new(Settings::default()),
    )
    .unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    (vm, store)
}

/// The names of a table: constants as `constants`, functions as `functions`, what makes an object as `class`.
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
    let (mut vm, _store) = vm("");
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
    let listed: BTreeSet<String> = listed().into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, listed);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    let refused: Vec<_> =
        listed().into_iter().filter(|(_, here)| here.starts_with("refused")).collect();
    assert!(refused.len() > 5, "{refused:?}");
    for (name, _) in refused {
        let (mut vm, store) =
            vm(&format!("function f() local kt = __kyototycoon__ local db = kt.db {name}(1) end"));
        let procedure = vm.find(b"f").unwrap();
        let mut writer = store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let error = vm.call(procedure, transaction.into(), &[]).unwrap_err();
        let CallError::Raised { message, .. } = error else { panic!("{name}: {error:?}") };
        let what = name.replace("db:", "DB:").replace("kt.", "");
        let expected = format!("m.lua:1: {what} is not offered: ");
        assert!(message.starts_with(&expected), "{name}: {message}");
        assert!(message.ends_with("; see docs/kyoto-tycoon-lua.md"), "{message}");
    }
}
