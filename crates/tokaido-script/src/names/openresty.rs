//! Every name in `ngx`, compared with the page's table that lists them.

use std::collections::BTreeSet;

use mlua::{Table, Value};

use super::page::Page;
use crate::{Dialect, HttpRequest, HttpResponse, Runtime as _, Transaction};

const PAGE: Page = Page {
    dialect: &Dialect::OPENRESTY,
    path: "docs/openresty.md",
    text: include_str!("../../../../docs/openresty.md"),
};

/// The names of a table and of the tables in it.
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
    let (mut vm, _store) = PAGE.vm("");
    let core = vm.state_for_tests().core().clone();
    let mut there = BTreeSet::new();
    collect(&core.get("ngx").unwrap(), "ngx.", &mut there);
    there.extend(keys(&core, "fields", |name| format!("ngx.{name}")));
    there.extend(keys(&core, "variables", |name| format!("ngx.var.{name}")));
    there.extend(keys(&core, "modules", |name| format!("require \"{name}\"")));
    // The tables whose fields depend on the request.
    let prefixes = ["http_", "arg_", "cookie_", "sent_http_"];
    there.extend(prefixes.map(|prefix| format!("ngx.var.{prefix}NAME")));
    there.remove("ngx.var");
    PAGE.lists(&there);
}

#[test]
fn what_the_page_says_is_refused_says_so_itself() {
    for name in PAGE.refused(5) {
        let call = match name.starts_with("require") {
            true => name.clone(),
            false => format!("{name}()"),
        };
        let (mut vm, store) = PAGE.vm(&format!("-- route: /\nlocal x = {call}"));
        let handler = vm.find(b"m").unwrap();
        let mut snapshot = store.snapshot().unwrap();
        let transaction = Transaction::Read(&mut *snapshot);
        let mut response = HttpResponse::default();
        let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
        let called = vm.call_http(handler, transaction.into(), &request, &mut response);
        PAGE.refuses(called, 2, &name);
    }
}
