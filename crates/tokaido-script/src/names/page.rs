//! What the pages of the dialects share: a table of names, and names that are refused.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use tokaido_store::Store;

use crate::{CallError, Dialect, Limits, Source, Sources, Vm, compiled::store::MemoryStore};

/// The heading of the table that lists all names.
const EVERY_NAME: &str = "\n## Every name\n";

/// A page of the documentation.
pub(super) struct Page {
    pub(super) dialect: &'static Dialect,
    /// Its path, as messages show it.
    pub(super) path: &'static str,
    pub(super) text: &'static str,
}

impl Page {
    /// The rows of the tables under a heading: the names, and what is said about them.
    pub(super) fn rows(&self, heading: &str) -> Vec<(String, &'static str)> {
        let (_, behind) = self.text.split_once(heading).unwrap();
        let section = behind.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.flat_map(|row| {
            let (names, here) = row.split_once("` | ").unwrap();
            names.split("` `").map(move |name| (name.to_owned(), here))
        })
        .collect()
    }

    /// Fails unless the page lists exactly the names that exist.
    pub(super) fn lists(&self, there: &BTreeSet<String>) {
        let listed: BTreeSet<String> =
            self.rows(EVERY_NAME).into_iter().map(|(name, _)| name).collect();
        let missing: Vec<_> = there.difference(&listed).collect();
        let invented: Vec<_> = listed.difference(there).collect();
        assert!(missing.is_empty() && invented.is_empty(), "{missing:?} {invented:?}");
    }

    /// The names that the page says are refused, of which there are more than `count_min`.
    pub(super) fn refused(&self, count_min: usize) -> Vec<String> {
        let rows = self.rows(EVERY_NAME).into_iter();
        let refused: Vec<_> =
            rows.filter(|(_, here)| here.starts_with("refused")).map(|(name, _)| name).collect();
        assert!(refused.len() > count_min, "{refused:?}");
        refused
    }

    /// Fails unless a call ended with the error that line `line` of the file used the refused name `name`.
    pub(super) fn refuses<T: Debug>(&self, called: Result<T, CallError>, line: u32, name: &str) {
        let Err(CallError::Raised { message, .. }) = called else { panic!("{name}: {called:?}") };
        let expected = format!("m.lua:{line}: {name} is not offered: ");
        assert!(message.starts_with(&expected), "{name}: {message}");
        assert!(message.ends_with(&format!("; see {}", self.path)), "{message}");
    }

    /// A virtual machine with one file of that text.
    pub(super) fn vm(&self, text: &str) -> (Vm, Arc<dyn Store>) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut sources = Sources::default();
        sources.add(Source {
            module: "m".to_owned(),
            path: "m.lua".into(),
            text: text.as_bytes().into(),
            dialect: Some(self.dialect.name.to_owned()),
            settings: Vec::new(),
        });
        let opened = Ok(Arc::clone(&store));
        let (vm, errors) =
            Vm::start(self.dialect, opened, &sources, Limits::default(), Arc::default()).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        (vm, store)
    }
}
