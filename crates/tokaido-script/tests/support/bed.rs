//! A VM on an in-memory store, with calls that commit as the server does.

use std::{sync::Arc, time::Duration};

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Limits, LoadError, Mode, Runtime as _, Source, Sources,
    Transaction, Value, Vm,
};
use tokaido_store::Store;

use super::store::MemoryStore;

pub struct Bed {
    pub store: MemoryStore,
    pub vm: Vm,
    pub errors: Vec<LoadError>,
}

pub fn sources(files: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (module, text) in files {
        sources.add(Source {
            module: (*module).to_owned(),
            path: format!("{}.lua", module.replace('.', "/")).into(),
            text: text.as_bytes().into(),
            dialect: None,
            settings: Vec::new(),
        });
    }
    sources
}

/// Short limits, so that tests of runaway scripts do not take long.
pub fn limits() -> Limits {
    Limits { time: Duration::from_millis(100), memory_bytes: 32 << 20, ..Limits::default() }
}

impl Bed {
    /// Files by module name.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self::with_limits(files, Limits::default())
    }

    pub fn with_limits(files: &[(&str, &str)], limits: Limits) -> Self {
        let store = MemoryStore::new();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let (vm, errors) = Vm::new(&shared, &sources(files), limits).unwrap();
        Self { store, vm, errors }
    }

    /// One file `m`, which must load.
    pub fn one(text: &str) -> Self {
        let bed = Self::of(&[("m", text)]);
        assert!(bed.errors.is_empty(), "{:?}", bed.errors);
        bed
    }

    /// A write procedure `m.f` with this body, which gets `tx` and `...`.
    pub fn body(body: &str) -> Self {
        Self::one(&write_body(body))
    }

    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, CallError> {
        let id = self.vm.find(name.as_bytes()).unwrap_or_else(|| panic!("no procedure {name}"));
        match self.vm.procedures().iter().find(|p| p.name == name).unwrap().mode {
            Mode::Read => {
                let mut snapshot = self.store.snapshot().unwrap();
                self.vm.call(id, Transaction::Read(&mut *snapshot).into(), arguments)
            }
            Mode::Write => {
                let mut writer = self.store.writer().unwrap();
                let transaction = writer.begin().unwrap();
                let result = self.vm.call(id, Transaction::Write(transaction).into(), arguments);
                match &result {
                    Ok(_) => {
                        writer.commit().unwrap();
                        writer.flush().unwrap();
                    }
                    Err(_) => writer.rollback().unwrap(),
                }
                result
            }
        }
    }

    /// `m.f` without arguments.
    pub fn run(&mut self) -> Result<Value, CallError> {
        self.call("m.f", &[])
    }

    pub fn http(
        &mut self,
        name: &str,
        request: &HttpRequest<'_>,
    ) -> Result<HttpResponse, CallError> {
        let id = self.vm.find(name.as_bytes()).unwrap_or_else(|| panic!("no procedure {name}"));
        let mut response = HttpResponse::default();
        let mut writer = self.store.writer().unwrap();
        let mut snapshot = self.store.snapshot().unwrap();
        let write = self.vm.procedures().iter().any(|p| p.name == name && p.mode == Mode::Write);
        let transaction = if write {
            Transaction::Write(writer.begin().unwrap())
        } else {
            Transaction::Read(&mut *snapshot)
        };
        let result = self.vm.call_http(id, transaction.into(), request, &mut response);
        if write && result.is_ok() {
            writer.commit().unwrap();
        } else {
            writer.rollback().unwrap();
        }
        result.map(|()| response)
    }

    /// The value under a key of `main`, as committed.
    pub fn stored(&self, key: &str) -> Option<String> {
        let database = self.store.find_database("main")?;
        let mut snapshot = self.store.snapshot().unwrap();
        let record = snapshot.get(database, key.as_bytes()).unwrap()?;
        Some(String::from_utf8(record.value.to_vec()).unwrap())
    }
}

pub fn write_body(body: &str) -> String {
    format!(
        "local tokaido = require 'tokaido'\nreturn {{ f = tokaido.write(function(tx, ...) {body} end) }}"
    )
}

pub fn text(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

pub fn request<'r>(method: &'r str, path: &'r str) -> HttpRequest<'r> {
    HttpRequest { method, path, ..HttpRequest::default() }
}
