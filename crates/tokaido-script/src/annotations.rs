//! Holds the annotations for editors (`lua/types/tokaido.lua`) to the API that there is.

use std::{collections::BTreeSet, sync::Arc};

use mlua::{Function, Lua, Table};
use tokaido_store::Store;

use crate::{Limits, compiled::store::MemoryStore, engine::Engine};

const ANNOTATIONS: &str = include_str!("../lua/types/tokaido.lua");

/// `Class.method` for every function that the annotations define.
fn annotated() -> BTreeSet<String> {
    ANNOTATIONS
        .lines()
        .filter_map(|line| line.strip_prefix("function "))
        .map(|line| line.split('(').next().unwrap().replace(':', "."))
        .collect()
}

/// The fields that the annotations give a class.
fn annotated_fields(class: &str) -> BTreeSet<String> {
    let head = format!("---@class {class}");
    ANNOTATIONS
        .lines()
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

fn engine() -> Engine {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    Engine::new(&Ok(store), Limits::default()).unwrap()
}

#[test]
fn every_function_of_the_api_has_an_annotation_and_no_other_has() {
    let engine = engine();
    let table = |name: &str| engine.core().get::<Table>(name).unwrap();
    let mut there = BTreeSet::new();
    for (class, name) in [
        ("Transaction", "Transaction"),
        ("Database", "Database"),
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
    let engine = engine();
    let fields: Table = engine.core().get("request_fields").unwrap();
    let there: BTreeSet<String> =
        fields.pairs::<String, Function>().map(|pair| pair.unwrap().0).collect();
    assert_eq!(there, annotated_fields("tokaido.Request"));
}

#[test]
fn the_annotations_are_lua() {
    Lua::new().load(ANNOTATIONS).exec().unwrap();
}
