//! Every name of `ngx`, beside the table of the page that lists them.

use std::{collections::BTreeSet, sync::Arc};

use mlua::{Table, Value};
use tokaido_store::Store;

use crate::{
    CallError, Dialect, HttpRequest, HttpResponse, Limits, Runtime as _, Source, Sources,
    Transaction, Vm, compiled::store::MemoryStore,
};

const PAGE: &str = include_str!("../../../../docs/openresty.md");

/// The names of the page's tables, with what it says of them.
fn listed() -> Vec<(String, &'static str)> {
    let (_, tables) = PAGE.split_once("\n## Every name\n").unwrap();
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let (names, here) = row.split_once("` | ").unwrap();
        names.split("` `").map(move |name| (name.to_owned(), here))
    })
    .collect()
}

fn vm(text: &str) -> (Vm, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    let (module, settings) = ("m".to_owned(), Vec::new());
    let dialect = Some(Dialect::OPENRESTY.name.to_owned());
    let text = text.as_bytes().into();
    sources.add(Source { module, path: "m.lua".into(), text, dialect, settings });
    let (vm, errors) = Vm::start(
        &Dialect::OPENRESTY,
        Ok(Arc::clone(&store)),
        &sources,
        Limits::default(),
        Arc::default(),
    )
    .unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    (vm, store)
}

/// The names of a table and of those in it.
fn collect(table: &Table, prefix: &str, names: &mut BTreeSet<String>) {
    for pair in table.pairs::<String, Value>() {
        let (name, value) = pair.unwrap();
        let name = format!("{prefix}{name}");
        match value {
            Value::Table(inner) if inner.pairs::<Value, Value>().next().is_some() => {
                collect(&inner, &format!("{name}."), names);
            }
            _ => drop(names.insert(name)),
        }
    }
}

fn keys(core: &Table, table: &str, shown: impl Fn(&str) -> String) -> Vec<String> {
    let table: Table = core.get(table).unwrap();
    table.pairs::<String, Value>().map(|pair| shown(&pair.unwrap().0)).collect()
}

#[test]
fn the_page_lists_every_name_and_no_other() {
    let (mut vm, _store) = vm("");
    let core = vm.state_for_tests().core().clone();
    let mut there = BTreeSet::new();
    collect(&core.get("ngx").unwrap(), "ngx.", &mut there);
    there.extend(keys(&core, "fields", |name| format!("ngx.{name}")));
    there.extend(keys(&core, "variables", |name| format!("ngx.var.{name}")));
    there.extend(keys(&core, "modules", |name| format!("require \"{name}\"")));
    // The tables whose fields are those of the request.
    let prefixes = ["http_", "arg_", "cookie_", "sent_http_"];
    there.extend(prefixes.map(|prefix| format!("ngx.var.{prefix}NAME")));
    there.remove("ngx.var");
    let listed: BTreeSet<String> = listed().into_iter().map(|(name, _)| name).collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    let invented: Vec<_> = listed.difference(&there).collect();
    assert!(missing.is_empty() && invented.is_empty(), "{missing:?} {invented:?}");
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    let refused: Vec<_> =
        listed().into_iter().filter(|(_, here)| here.starts_with("refused")).collect();
    assert!(refused.len() > 5, "{refused:?}");
    for (name, _) in refused {
        let call = match name.starts_with("require") {
            true => name.clone(),
            false => format!("{name}()"),
        };
        let (mut vm, store) = vm(&format!("-- route: /\nlocal x = {call}"));
        let handler = vm.find(b"m").unwrap();
        let mut snapshot = store.snapshot().unwrap();
        let transaction = Transaction::Read(&mut *snapshot);
        let mut response = HttpResponse::default();
        let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
        let called = vm.call_http(handler, transaction.into(), &request, &mut response);
        let Err(CallError::Raised { message, .. }) = called else { panic!("{name}: {called:?}") };
        let expected = format!("m.lua:2: {name} is not offered: ");
        assert!(message.starts_with(&expected), "{name}: {message}");
        assert!(message.ends_with("; see docs/openresty.md"), "{message}");
    }
}
