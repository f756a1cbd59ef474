//! Holds docs/mod_lua.md to the names that handlers of mod_lua find.

use std::{collections::BTreeSet, sync::Arc};

use mlua::Table;
use tokaido_store::Store;

use crate::{
    CallError, Dialect, HttpRequest, HttpResponse, Limits, Runtime as _, Settings, Source, Sources,
    Transaction, Vm, compiled::store::MemoryStore,
};

const PAGE: &str = include_str!("../../../../docs/mod_lua.md");

/// The rows of a table of the page: the names, and what is said of them.
fn rows(heading: &str) -> Vec<(String, &'static str)> {
    let (_, behind) = PAGE.split_once(heading).unwrap();
    let section = behind.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let (names, here) = row.split_once("` | ").unwrap();
        names.split("` `").map(move |name| (name.to_owned(), here))
    })
    .collect()
}

fn vm(text: &str) -> (Vm, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    sources.add(Source {
        module: "m".to_owned(),
        path: "m.lua".into(),
        text: text.as_bytes().into(),
        dialect: Some(Dialect::MOD_LUA.name.to_owned()),
        settings: Vec::new(),
    });
    let (vm, errors) = Vm::start(
        &Dialect::MOD_LUA,
        Ok(Arc::clone(&store)),
        &sources,
        Limits::default(),
        Arc::new(Settings::default()),
    )
    .unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    (vm, store)
}

#[test]
fn the_page_lists_every_name_and_no_other() {
    let (mut vm, _store) = vm("");
    let apache: Table = vm.state_for_tests().core().get("apache").unwrap();
    let mut there = BTreeSet::new();
    for (part, before) in
        [("constants", "apache2."), ("fields", "r."), ("methods", "r:"), ("refusals", "r:")]
    {
        let part: Table = apache.get(part).unwrap();
        let names = part.pairs::<String, mlua::Value>().map(|pair| pair.unwrap().0);
        there.extend(names.map(|name| format!("{before}{name}")));
    }
    let listed: BTreeSet<String> =
        rows("\n## Every name\n").into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, listed);
}

#[test]
fn the_page_lists_what_a_file_may_say_of_itself() {
    let listed: Vec<String> =
        rows("\n## What a file says of itself\n").into_iter().map(|(name, _)| name).collect();
    let mut names: Vec<&str> = Dialect::MOD_LUA.settings.iter().map(|s| s.name).collect();
    let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    let listed = rows("\n## Every name\n");
    let refused: Vec<_> =
        listed.into_iter().filter(|(_, here)| here.starts_with("refused")).collect();
    assert!(refused.len() > 30, "{refused:?}");
    for (name, _) in refused {
        let name = name.strip_prefix("r:").unwrap();
        let (mut vm, store) = vm(&format!("function handle(r)\nr:{name}(1) end"));
        let procedure = vm.find(b"m.handle").unwrap();
        let mut snapshot = store.snapshot().unwrap();
        let (request, mut response) = (HttpRequest::default(), HttpResponse::default());
        let transaction = Transaction::Read(&mut *snapshot);
        let error =
            vm.call_http(procedure, transaction.into(), &request, &mut response).unwrap_err();
        let CallError::Raised { message, .. } = error else { panic!("{name}: {error:?}") };
        let expected = format!("m.lua:2: r.{name} is not offered: ");
        assert!(message.starts_with(&expected), "{name}: {message}");
        assert!(message.ends_with("; see docs/mod_lua.md"), "{message}");
    }
}
