//! What a database call from Lua costs: only the bridge, over a stub that does nothing, and with
//! the engine behind it.

use std::{hint::black_box, ops::Bound, path::Path, sync::Arc, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use tokaido_script::{
    HttpRequest, HttpResponse, Limits, ProcedureId, Runtime as _, Source, Sources, Transaction,
    Value, Vm,
};
use tokaido_store::{
    CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord, ReadError,
    ReadTransaction, Record, Store, WriteError, WriteTransaction, cache, cdb,
    composite::{CompositeStore, Mount, MountEngine},
    tree,
};

const PROCEDURES: &str = r#"
local tokaido = require "tokaido"
local bench = {}

bench.read = tokaido.read(function(tx, n)
  local db, key = tx.main, "key"
  for i = 1, n do db:get(key) end
end)

bench.cache_get = tokaido.read(function(tx, n)
  local db, key = tx.hot, "key"
  db:put(key, "value")
  for i = 1, n do db:get(key) end
end)

bench.cache_put = tokaido.read(function(tx, n)
  local db, key, value = tx.hot, "key", "value"
  for i = 1, n do db:put(key, value) end
end)

bench.cache_increment = tokaido.read(function(tx, n)
  local db, key = tx.hot, "counter"
  for i = 1, n do db:increment(key) end
end)

bench.cache_order = tokaido.read(function(tx, n)
  local db = tx.hot
  for i = 1, n do local key = tostring(i) db:put(key, key) end
  for i = 1, n do db:get(tostring(i)) end
  for i = 1, n do db:delete(tostring(i)) end
end)

bench.cdb_get = tokaido.read(function(tx, n)
  local db, key = tx.file, "key"
  for i = 1, n do db:get(key) end
end)

bench.empty = tokaido.write(function(tx) end)

bench.get = tokaido.write(function(tx, n)
  local db, key = tx.main, "key"
  db:put(key, "value")
  for i = 1, n do db:get(key) end
end)

bench.put = tokaido.write(function(tx, n)
  local db, key, value = tx.main, "key", "value"
  for i = 1, n do db:put(key, value) end
end)

bench.increment = tokaido.write(function(tx, n)
  local db, key = tx.main, "counter"
  for i = 1, n do db:increment(key) end
end)

bench.order = tokaido.write(function(tx, n)
  local db = tx.main
  for i = 1, n do local key = tostring(i) db:put(key, key) end
  for i = 1, n do db:get(tostring(i)) end
  for i = 1, n do db:delete(tostring(i)) end
end)

bench.scan = tokaido.write(function(tx)
  local count = 0
  for key, value in tx.filled:scan() do count = count + 1 end
  return count
end)

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
bench.fib = tokaido.read(function(tx, n) return fib(n) end)

bench.hello = tokaido.http("GET /hello", function() return "hello, world" end)
bench.page = tokaido.http("GET /page/:name", function(tx, req, res)
  res.headers["x-page"] = req.params.name
  return { name = req.params.name, hits = 3 }
end)

return bench
"#;

/// Finds one value under every key, and discards writes: what remains is the bridge.
struct NoEngine;

const FOUND: Record<'static> = Record::of(b"value", 1);

impl ReadTransaction for NoEngine {
    fn now_ms(&self) -> u64 {
        0
    }
    fn get<'t>(&'t mut self, _: DatabaseId, key: &[u8]) -> Result<Option<Record<'t>>, ReadError> {
        black_box(key);
        Ok(Some(FOUND))
    }
    fn seek<'t>(
        &'t mut self,
        _: DatabaseId,
        _: Bound<&[u8]>,
        _: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        Ok(None)
    }
    fn statistics(&mut self, _: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        Ok(DatabaseStatistics::default())
    }
}

impl WriteTransaction for NoEngine {
    fn number(&self) -> CommitNumber {
        1
    }
    fn put(&mut self, _: DatabaseId, key: &[u8], record: NewRecord<'_>) -> Result<(), WriteError> {
        black_box((key, record));
        Ok(())
    }
    fn delete(&mut self, _: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        black_box(key);
        Ok(true)
    }
    fn clear(&mut self, _: DatabaseId) -> Result<(), WriteError> {
        Ok(())
    }
}

struct Bed {
    store: Arc<dyn Store>,
    vm: Vm,
    _directory: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        Self::with_mounts(|_| Vec::new())
    }

    /// With a cache and a file mounted.
    fn mounted() -> Self {
        Self::with_mounts(|directory| {
            let path = directory.join("file.cdb");
            let mut writer = cdb::Writer::create(&path, &cdb::Options::default()).unwrap();
            writer.put(b"key", b"value").unwrap();
            writer.finish().unwrap();
            let hot = MountEngine::Cache(cache::Options::default());
            let mounts = [("hot", hot), ("file", MountEngine::Cdb(path))];
            mounts.map(|(name, engine)| Mount { name: name.to_owned(), engine }).into()
        })
    }

    fn with_mounts(mounts: impl FnOnce(&Path) -> Vec<Mount>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = tree::open(directory.path(), tree::Options::default()).unwrap();
        let mounts = mounts(directory.path());
        let store = CompositeStore::new(Box::new(store), mounts).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let mut sources = Sources::default();
        sources.add(Source {
            module: "bench".to_owned(),
            path: "bench.lua".into(),
            text: PROCEDURES.as_bytes().into(),
            dialect: None,
            settings: Vec::new(),
        });
        let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
        let (vm, errors) = Vm::new(&store, &sources, limits).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { store, vm, _directory: directory }
    }

    fn id(&self, name: &str) -> ProcedureId {
        self.vm.find(name.as_bytes()).unwrap()
    }
}

const LOOP: i64 = 1_000_000;

fn bridge_alone(c: &mut Criterion) {
    let mut bed = Bed::new();
    let mut group = c.benchmark_group("bridge alone");
    group.throughput(Throughput::Elements(LOOP as u64)).sample_size(20);
    for name in ["bench.get", "bench.put"] {
        let id = bed.id(name);
        group.bench_function(name, |b| {
            b.iter(|| {
                let transaction = Transaction::Write(&mut NoEngine);
                bed.vm.call(id, transaction.into(), &[Value::Integer(LOOP)]).unwrap()
            });
        });
    }
}

fn calls(c: &mut Criterion) {
    let mut bed = Bed::new();
    let mut group = c.benchmark_group("call");
    let empty = bed.id("bench.empty");
    group.bench_function("empty procedure", |b| {
        b.iter(|| bed.vm.call(empty, Transaction::Write(&mut NoEngine).into(), &[]).unwrap());
    });
    let text = Value::String(b"/index.html".to_vec());
    group.bench_function("empty procedure, two arguments", |b| {
        let arguments = [text.clone(), Value::Integer(7)];
        b.iter(|| {
            bed.vm.call(empty, Transaction::Write(&mut NoEngine).into(), &arguments).unwrap()
        });
    });
    let request = HttpRequest {
        method: "GET",
        path: "/page/index",
        query: "",
        parameters: &[("name", "index")],
        headers: &[("host", b"localhost"), ("accept", b"*/*")],
        ..HttpRequest::default()
    };
    for name in ["bench.hello", "bench.page"] {
        let id = bed.id(name);
        let mut response = HttpResponse::default();
        group.bench_function(format!("http {name}"), |b| {
            b.iter(|| {
                let transaction = Transaction::Read(&mut NoEngine);
                bed.vm.call_http(id, transaction.into(), &request, &mut response).unwrap();
                black_box(&response);
            });
        });
    }
    group.sample_size(10);
    let fib = bed.id("bench.fib");
    group.bench_function("fib(37)", |b| {
        b.iter(|| {
            bed.vm
                .call(fib, Transaction::Read(&mut NoEngine).into(), &[Value::Integer(37)])
                .unwrap()
        });
    });
}

/// The same operations without Lua: the engine's share.
fn order_from_rust(group: &mut criterion::BenchmarkGroup<'_, WallTime>, store: &dyn Store) {
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    group.throughput(Throughput::Elements(300_000));
    group.bench_function("the same as bench.order, from Rust", |b| {
        b.iter(|| {
            let transaction = writer.begin().unwrap();
            for i in 1..=100_000 {
                let key = i.to_string();
                transaction.put(main, key.as_bytes(), NewRecord::of(key.as_bytes())).unwrap();
            }
            for i in 1..=100_000 {
                black_box(transaction.get(main, i.to_string().as_bytes()).unwrap());
            }
            for i in 1..=100_000 {
                transaction.delete(main, i.to_string().as_bytes()).unwrap();
            }
            writer.commit().unwrap();
            writer.flush().unwrap();
        });
    });
}

fn engine(c: &mut Criterion) {
    let mut bed = Bed::new();
    let mut group = c.benchmark_group("tree");
    group.sample_size(10);
    for (name, operations, n) in [
        ("bench.get", 100_000, 100_000),
        ("bench.put", 100_000, 100_000),
        ("bench.increment", 100_000, 100_000),
        ("bench.order", 300_000, 100_000),
    ] {
        let id = bed.id(name);
        let mut writer = bed.store.writer().unwrap();
        group.throughput(Throughput::Elements(operations));
        group.bench_function(name, |b| {
            b.iter(|| {
                let transaction = Transaction::Write(writer.begin().unwrap());
                bed.vm.call(id, transaction.into(), &[Value::Integer(n)]).unwrap();
                writer.commit().unwrap();
                writer.flush().unwrap();
            });
        });
    }
    order_from_rust(&mut group, &*bed.store);
    let filled = bed.store.database("filled").unwrap();
    let mut writer = bed.store.writer().unwrap();
    tokaido_store::transact::<_, WriteError>(&mut *writer, |tx| {
        (0..100_000).try_for_each(|i| {
            tx.put(filled, format!("{i:016}").as_bytes(), NewRecord::of(&[b'x'; 64]))
        })
    })
    .unwrap();
    drop(writer);
    let scan = bed.id("bench.scan");
    let get = bed.id("bench.read");
    let mut snapshot = bed.store.snapshot().unwrap();
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("bench.scan on a snapshot", |b| {
        b.iter(|| bed.vm.call(scan, Transaction::Read(&mut *snapshot).into(), &[]).unwrap());
    });
    group.bench_function("bench.read on a snapshot", |b| {
        let arguments = [Value::Integer(100_000)];
        b.iter(|| bed.vm.call(get, Transaction::Read(&mut *snapshot).into(), &arguments).unwrap());
    });
}

/// Caches and files, with a tree for comparison.
fn mounted(c: &mut Criterion) {
    let mut bed = Bed::mounted();
    let mut group = c.benchmark_group("mounted");
    let mut snapshot = bed.store.snapshot().unwrap();
    for (name, operations) in [
        ("bench.cache_get", 100_000),
        ("bench.cache_put", 100_000),
        ("bench.cache_increment", 100_000),
        ("bench.cache_order", 300_000),
        ("bench.cdb_get", 100_000),
    ] {
        let id = bed.id(name);
        group.throughput(Throughput::Elements(operations));
        group.bench_function(name, |b| {
            let arguments = [Value::Integer(100_000)];
            b.iter(|| {
                bed.vm.call(id, Transaction::Read(&mut *snapshot).into(), &arguments).unwrap()
            });
        });
    }
    let id = bed.id("bench.get");
    let mut writer = bed.store.writer().unwrap();
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("bench.get", |b| {
        b.iter(|| {
            let transaction = Transaction::Write(writer.begin().unwrap());
            bed.vm.call(id, transaction.into(), &[Value::Integer(100_000)]).unwrap();
            writer.commit().unwrap();
            writer.flush().unwrap();
        });
    });
}

criterion_group!(benches, bridge_alone, calls, engine, mounted);
criterion_main!(benches);
