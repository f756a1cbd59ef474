//! Runs every Lua block of `docs/lua.md`.

mod support;

use std::sync::Arc;

use support::{Bed, request, sources};
use tokaido_script::{HttpRequest, Limits, Runtime as _, Transaction, Vm};
use tokaido_store::{Store, tree};

const MANUAL: &str = include_str!("../../../docs/lua.md");

/// The blocks with their titles: the first line, a comment.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let title = |block: &'static str| {
        let line = block.lines().next().unwrap();
        line.strip_prefix("-- ").unwrap().trim_end_matches(".lua")
    };
    MANUAL
        .split("```lua\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|block| (title(block), block))
        .collect()
}

#[test]
fn every_block_runs() {
    let blocks = blocks();
    let (scripts, files): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|(title, _)| *title == "script");
    let directory = tempfile::tempdir().unwrap();
    // Streams need an engine that numbers collections.
    let store = tree::open(directory.path(), tree::Options::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let (mut vm, errors) = Vm::new(&store, &sources(&files), Limits::default()).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let examples: Vec<_> = vm
        .procedures()
        .iter()
        .map(|procedure| procedure.name.clone())
        .filter(|name| name.ends_with(".example"))
        .collect();
    assert_eq!(
        examples,
        [
            "databases.example",
            "integers.example",
            "jobs.example",
            "leaderboard.example",
            "scans.example",
            "tokens.example"
        ]
    );
    let mut writer = store.writer().unwrap();
    for name in examples {
        let id = vm.find(name.as_bytes()).unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        vm.call(id, transaction.into(), &[]).unwrap();
        writer.commit().unwrap();
    }
    assert_eq!(scripts.len(), 1);
    vm.run_script("script.lua", scripts[0].1.as_bytes(), &[], Some(&mut *writer)).unwrap();
}

#[test]
fn the_handlers_answer() {
    let blocks = blocks();
    let files: Vec<_> = blocks.into_iter().filter(|(title, _)| *title != "script").collect();
    let mut bed = Bed::of(&files);
    let parameters: &[(&str, &str)] = &[("name", "tea"), ("page", "tea")];
    let put = HttpRequest { parameters, body: b"{\"text\":\"green\"}", ..request("PUT", "/") };
    let get = HttpRequest { parameters, ..request("GET", "/") };
    assert_eq!(bed.http("notes.show", &get).unwrap().status, 404);
    assert_eq!(bed.http("notes.save", &put).unwrap().status, 204);
    assert_eq!(bed.http("notes.show", &get).unwrap().body, b"green");
    assert_eq!(bed.http("hits.page", &get).unwrap().body, br#"{"hits":0,"page":"tea"}"#);
}
