//! Scripts of other servers, with calls that commit as the server does.

use std::{path::Path, sync::Arc};

use tokaido_script::{
    CallError, Limits, LoadError, Lua, Runtime, Settings, Transaction, Value, start,
};
use tokaido_store::{
    Store, cache, cdb,
    composite::{CompositeStore, Mount, MountEngine},
    tree,
};

use super::sources;

/// A store with the databases `main` and `other`, a cache `hot` and a file `ports`.
fn store(directory: &Path) -> Arc<dyn Store> {
    let path = directory.join("ports.cdb");
    let mut writer = cdb::Writer::create(&path, &cdb::Options::default()).unwrap();
    for (name, port) in [("http", "80"), ("ssh", "22")] {
        writer.put(name.as_bytes(), port.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let options = cache::Options { bytes_max: 1 << 20, ..cache::Options::default() };
    let mounts = [("hot", MountEngine::Cache(options)), ("ports", MountEngine::Cdb(path))];
    let mounts = mounts.map(|(name, engine)| Mount { name: name.to_owned(), engine });
    let options = tree::Options { size_max: 1 << 28, ..tree::Options::default() };
    let tree = Box::new(tree::open(&directory.join("tree"), options).unwrap());
    Arc::new(CompositeStore::new(tree, mounts.into()).unwrap())
}

pub struct Bed {
    pub store: Arc<dyn Store>,
    pub runtime: Box<dyn Runtime>,
    pub errors: Vec<LoadError>,
    _directory: Option<tempfile::TempDir>,
}

impl Bed {
    pub fn with(dialect: &str, script: &str, settings: Settings, limits: Limits) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut bed = Self::over(store(directory.path()), dialect, script, settings, limits);
        bed._directory = Some(directory);
        bed
    }

    /// Over the test's own store.
    pub fn over(
        store: Arc<dyn Store>,
        dialect: &str,
        script: &str,
        settings: Settings,
        limits: Limits,
    ) -> Self {
        let language = Arc::new(Lua { settings: Arc::new(settings), ..Lua::default() });
        let script = format!("-- dialect: {dialect}\n{script}");
        let sources = sources(&[("m", &script)]);
        let (runtime, errors) = start(&[language], &store, &sources, limits).unwrap();
        Self { store, runtime, errors, _directory: None }
    }

    /// Calls a procedure, and commits as the server does.
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, CallError> {
        let id = self.runtime.find(name.as_bytes()).unwrap_or_else(|| panic!("no {name}"));
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let result = self.runtime.call(id, transaction.into(), arguments);
        match &result {
            Err(error) if !error.is_kept() => writer.rollback().unwrap(),
            _ => {
                writer.commit().unwrap();
                writer.flush().unwrap();
            }
        }
        result
    }

    /// The value under a key of `main`.
    pub fn stored(&self, key: &str) -> Option<Vec<u8>> {
        let database = self.store.find_database("main")?;
        let mut snapshot = self.store.snapshot().unwrap();
        Some(snapshot.get(database, key.as_bytes()).unwrap()?.value.to_vec())
    }
}
