//! Checks the annotations for editors (`lua/types/`) against the actual API.

use std::{collections::BTreeSet, sync::Arc};

use mlua::{Function, Lua, Table};
use tokaido_store::Store;

use crate::{Dialect, Interrupt, Limits, compiled::store::MemoryStore, state::LuaState};

const ANNOTATIONS: [&str; 2] =
    [include_str!("../lua/types/tokaido.lua"), include_str!("../lua/types/collections.lua")];

/// The page generated from them, with a table of Lua's own functions.
const PAGE: &str = include_str!("../../../docs/lua-api.md");

/// `Class.method` for every function that the annotations define.
fn annotated() -> BTreeSet<String> {
    ANNOTATIONS
        .iter()
        .flat_map(|file| file.lines())
        .filter_map(|line| line.strip_prefix("function "))
        .map(|line| line.split('(').next().unwrap().replace(':', "."))
        .collect()
}

/// The fields that the annotations give a class.
fn annotated_fields(class: &str) -> BTreeSet<String> {
    let head = format!("---@class {class}");
    ANNOTATIONS
        .iter()
        .flat_map(|file| file.lines())
        .skip_while(|line| *line != head)
        .skip(1)
        .map_while(|line| line.strip_prefix("---@field "))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

/// `Class.method` for every function in a table.
fn functions(class: &str, table: &Table) -> Vec<String> {
    let pairs = table.pairs::<String, mlua::Value>().map(Result::unwrap);
    pairs
        .filter(|(_, value)| matches!(value, mlua::Value::Function(_)))
        .map(|(name, _)| format!("{class}.{name}"))
        .collect()
}

fn state() -> LuaState {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    LuaState::new(&Dialect::NATIVE, &Ok(store), Limits::default(), Interrupt::default()).unwrap()
}

#[test]
fn every_function_of_the_api_has_an_annotation_and_no_other_has() {
    let state = state();
    let table = |name: &str| state.core().get::<Table>(name).unwrap();
    let mut there = BTreeSet::new();
    for (class, name) in [
        ("Transaction", "Transaction"),
        ("Database", "Database"),
        ("Hash", "Hash"),
        ("List", "List"),
        ("Set", "Set"),
        ("SortedSet", "SortedSet"),
        ("Stream", "Stream"),
        ("StreamGroup", "StreamGroup"),
        ("Request", "Request"),
        ("Response", "Response"),
        ("json", "json_entries"),
        ("tokaido", "tokaido_entries"),
    ] {
        there.extend(functions(class, &table(name)));
    }
    assert_eq!(there, annotated());
}

#[test]
fn every_field_of_a_request_has_an_annotation() {
    let state = state();
    let fields: Table = state.core().get("request_fields").unwrap();
    let there: BTreeSet<String> =
        fields.pairs::<String, Function>().map(|pair| pair.unwrap().0).collect();
    assert_eq!(there, annotated_fields("tokaido.Request"));
}

/// The rows that the table of Lua's own functions should have, as the VM reports them.
fn rows_of_lua() -> Vec<String> {
    let state = state();
    let sandbox: Table = state.core().get("sandbox").unwrap();
    let environment: Function = sandbox.get("environment").unwrap();
    let environment: Table = environment.call(true).unwrap();
    let row = |name: &str, entries: &Table| {
        let pairs = entries.pairs::<String, mlua::Value>().map(Result::unwrap);
        // `_G` is the table itself, and libraries have rows of their own.
        let names = pairs.filter(|(_, value)| !matches!(value, mlua::Value::Table(_)));
        let names: BTreeSet<String> = names.map(|(name, _)| name).collect();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("| {name} | {} |", names.join(" "))
    };
    let mut rows = vec![row("", &environment)];
    let libraries: Table = sandbox.get("libraries").unwrap();
    let names: BTreeSet<String> =
        libraries.pairs::<String, Table>().map(|pair| pair.unwrap().0).collect();
    rows.extend(
        names.iter().map(|name| row(&format!("`{name}`"), &libraries.get(name.as_str()).unwrap())),
    );
    rows
}

#[test]
fn the_page_lists_what_there_is_of_lua_itself() {
    let rows = rows_of_lua();
    for row in &rows {
        assert!(
            PAGE.lines().any(|line| line == row),
            "not all in docs/lua-api.md:\n{}",
            rows.join("\n")
        );
    }
    let (_, table) = PAGE.split_once("\n## Of Lua itself\n").unwrap();
    let there = table.lines().filter(|line| line.starts_with("| ")).count();
    // One line is the head of the table.
    assert_eq!(there, rows.len() + 1);
}

#[test]
fn the_annotations_are_lua() {
    for file in ANNOTATIONS {
        Lua::new().load(file).exec().unwrap();
    }
}
