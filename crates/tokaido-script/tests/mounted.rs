//! Caches and constant databases in procedures.

mod support;

use std::sync::Arc;

use support::{sources, text, write_body};
use tempfile::TempDir;
use tokaido_script::{CallError, Limits, Mode, Runtime as _, Transaction, Value, Vm};
use tokaido_store::{
    Store, cache,
    cdb::{self, Duplicates},
    composite::{CompositeStore, Mount, MountEngine},
};

use support::MemoryStore;

/// An in-memory store with a cache `hot` and a file `ports`, and one file of procedures.
struct Bed {
    store: Arc<dyn Store>,
    vm: Vm,
    _directory: TempDir,
}

impl Bed {
    fn one(lua: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ports.cdb");
        let options = cdb::Options { duplicates: Duplicates::Keep, ..cdb::Options::default() };
        let mut writer = cdb::Writer::create(&path, &options).unwrap();
        for (key, value) in [("ssh", "22"), ("http", "80"), ("http", "8080"), ("https", "443")] {
            writer.put(key.as_bytes(), value.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        let options = cache::Options { bytes_max: 1 << 20, ..cache::Options::default() };
        let mounts = [("hot", MountEngine::Cache(options)), ("ports", MountEngine::Cdb(path))];
        let mounts = mounts.map(|(name, engine)| Mount { name: name.to_owned(), engine });
        let store = CompositeStore::new(Box::new(MemoryStore::new()), mounts.into()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let (vm, errors) = Vm::new(&store, &sources(&[("m", lua)]), Limits::default()).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { store, vm, _directory: directory }
    }

    /// Calls `m.f` in its mode, and commits if it succeeds.
    fn run(&mut self) -> Result<Value, CallError> {
        self.run_with(&[])
    }

    fn run_with(&mut self, arguments: &[Value]) -> Result<Value, CallError> {
        let id = self.vm.find(b"m.f").unwrap();
        if self.vm.procedures()[0].mode == Mode::Read {
            let mut snapshot = self.store.snapshot().unwrap();
            return self.vm.call(id, Transaction::Read(&mut *snapshot).into(), arguments);
        }
        let mut writer = self.store.writer().unwrap();
        let result =
            self.vm.call(id, Transaction::Write(writer.begin().unwrap()).into(), arguments);
        match &result {
            Ok(_) => drop(writer.commit().unwrap()),
            Err(_) => writer.rollback().unwrap(),
        }
        writer.flush().unwrap();
        result
    }

    fn value(&self, database: &str, key: &str) -> Option<String> {
        let id = self.store.find_database(database)?;
        let mut snapshot = self.store.snapshot().unwrap();
        let record = snapshot.get(id, key.as_bytes()).unwrap()?;
        Some(String::from_utf8(record.value.to_vec()).unwrap())
    }
}

fn read_body(body: &str) -> String {
    write_body(body).replace("tokaido.write", "tokaido.read")
}

#[track_caller]
fn raises(body: &str, expected: &str) {
    let error = Bed::one(&write_body(body)).run().unwrap_err().to_string();
    assert!(error.starts_with("m.lua:2: ") && error.contains(expected), "{error}");
}

/// The same test as it would be for a tree.
const EVERY_METHOD: &str = "
    local db = tx.DATABASE
    db:clear()
    db:put('a', 1)
    db:put('b', 'bee', {flags = 7, ttl_ms = 60000})
    assert(db:get('a') == '1' and db:get('none') == nil)
    assert(db:exists('a') and not db:exists('none'))
    local b = db:record('b')
    assert(b.value == 'bee' and b.flags == 7 and b.expires_at_ms > tx:now_ms())
    assert(db:record('none') == nil)
    assert(not db:add('a', 2) and db:add('c', 3))
    assert(not db:replace('none', 2) and db:replace('c', 4))
    assert(db:compare_and_set('c', 4, 5) and not db:compare_and_set('c', 4, 6))
    assert(db:compare_and_set('d', nil, 1) and not db:compare_and_set('d', nil, 1))
    assert(not db:compare_and_set('d', 2, nil) and db:compare_and_set('d', 1, nil))
    assert(not db:exists('d') and db:compare_and_set('d', nil, nil))
    assert(db:increment('a') == 2 and db:increment('n', 40) == 40)
    assert(db:increment_float('a', 0.5) == 2.5)
    assert(db:append('e', 'x') == 1 and db:append('e', 'yz') == 3 and db:get('e') == 'xyz')
    assert(db:expire('e', 60000) and db:ttl('e') > 59000 and db:persist('e'))
    assert(db:ttl('e') == math.huge and db:ttl('none') == nil and not db:expire('none', 1))
    assert(db:delete('e') and not db:delete('e'))
    local all = db:get_many {'a', 'none', 'c'}
    assert(all.a == '2.5' and all.none == nil and all.c == '5')
    assert(#db:get_all('a') == 1 and #db:get_all('none') == 0)
    assert(db:count() == 4)
    local found = {}
    for key, value in db:scan() do found[#found + 1] = key .. '=' .. value end
    table.sort(found)
    local ok, why = pcall(db.increment, db, 'b')
    assert(not ok and why:find('not a number', 1, true))
    return table.concat(found, ' ')";

#[test]
fn a_cache_has_every_method_that_a_tree_has() {
    for database in ["main", "hot"] {
        let mut bed = Bed::one(&write_body(&EVERY_METHOD.replace("DATABASE", database)));
        assert_eq!(bed.run().unwrap(), text("a=2.5 b=bee c=5 n=40"), "{database}");
    }
}

#[test]
fn a_read_procedure_writes_to_a_cache() {
    let mut bed = Bed::one(&read_body("tx.hot:put('k', 'v') return tx.hot:get('k')"));
    assert_eq!(bed.run().unwrap(), text("v"));
    assert_eq!(bed.value("hot", "k").as_deref(), Some("v"));
}

#[test]
fn a_failed_procedure_leaves_the_cache_as_it_is() {
    let body = "tx.main:put('k', 'tree') tx.hot:put('k', 'cache') error('no')";
    let mut bed = Bed::one(&write_body(body));
    assert!(bed.run().is_err());
    assert_eq!(bed.value("main", "k"), None);
    assert_eq!(bed.value("hot", "k").as_deref(), Some("cache"));
}

#[test]
fn a_refused_write_to_a_cache_does_not_poison_the_transaction() {
    let body = "
        tx.main:put('k', 'v')
        assert(not pcall(tx.hot.put, tx.hot, 'big', ('x'):rep(2^20)))
        assert(not pcall(tx.hot.append, tx.hot, 'big', ('x'):rep(2^20)))
        assert(not pcall(tx.hot.put, tx.hot, '', 'v'))
        assert(not pcall(tx.ports.put, tx.ports, 'k', 'v'))";
    let mut bed = Bed::one(&write_body(body));
    bed.run().unwrap();
    assert_eq!(bed.value("main", "k").as_deref(), Some("v"));
}

#[test]
fn a_range_leaves_out_what_is_not_in_it() {
    let body = "
        local hot = tx.hot
        for i = 1, 300 do hot:put(('k%03d'):format(i), i) end
        hot:put('other', 0)
        local function keys(range)
          local found = {}
          for key in hot:keys(range) do found[#found + 1] = key end
          table.sort(found)
          return #found .. ' ' .. tostring(found[1]) .. ' ' .. tostring(found[#found])
        end
        return table.concat({
          keys(), keys('k'), keys{from = 'k299'}, keys{after = 'k300'}, keys{to = 'k002'},
          keys{before = 'k002'}, keys{from = 'k010', to = 'k019'}, keys{prefix = 'none'},
        }, ', ') .. ', ' .. keys{limit = 7}:match('^%d+')";
    let mut bed = Bed::one(&write_body(body));
    let expected = "301 k001 other, 300 k001 k300, 3 k299 other, 1 other other, 2 k001 k002, \
                    1 k001 k001, 10 k010 k019, 0 nil nil, 7";
    assert_eq!(bed.run().unwrap(), text(expected));
}

#[test]
fn scans_may_be_nested_and_left_early_and_may_write() {
    let body = "
        local hot, count = tx.hot, 0
        for i = 1, 250 do hot:put(i, i) end
        for outer in hot:keys() do
          for key, value in hot:scan() do
            assert(key == value)
            count = count + 1
            if count % 7 == 0 then break end
          end
          hot:delete(outer)
        end
        return hot:count()";
    let mut bed = Bed::one(&write_body(body));
    assert_eq!(bed.run().unwrap(), Value::Integer(0));
}

#[test]
fn a_constant_database_is_read_in_the_order_of_its_file() {
    let body = "
        local ports, found = tx.ports, {}
        for key, value in ports:scan() do found[#found + 1] = key .. '=' .. value end
        assert(ports:get('http') == '80' and ports:get('none') == nil and ports:exists('ssh'))
        assert(ports:record('ssh').value == '22' and ports:ttl('ssh') == math.huge)
        assert(ports:get_many{'ssh', 'none'}.ssh == '22' and ports:count() == 4)
        return table.concat(found, ' ') .. ' / ' .. table.concat(ports:get_all('http'), ' ')";
    for lua in [read_body(body), write_body(body)] {
        let expected = "ssh=22 http=80 http=8080 https=443 / 80 8080";
        assert_eq!(Bed::one(&lua).run().unwrap(), text(expected));
    }
}

#[test]
fn what_cannot_be_done_is_said_at_the_line() {
    let read_only = "database ports is a constant one (cdb) and is not written to";
    for call in ["put('k', 'v')", "delete('k')", "increment('k')", "clear()", "expire('k', 1)"] {
        raises(&format!("tx.ports:{call}"), read_only);
    }
    raises("for k in tx.ports:scan{reverse = true} do end", "cannot be scanned in reverse");
    raises("for k in tx.hot:keys{reverse = true} do end", "cannot be scanned in reverse");
    raises("for k in tx.hot:scan{prefx = 'a'} do end", "a scan has no option 'prefx'");
    raises("for k in tx.hot:scan{limit = 'x'} do end", "limit");
    raises("for k in tx.hot:scan{from = {}} do end", "from is a string or a number");
    raises("tx.hot:put('k')", "value");
    raises("return tx.hot:frobnicate()", "no method 'frobnicate'");
}

#[test]
fn a_handle_that_is_kept_works_in_later_calls_and_only_there() {
    let lua = "local tokaido = require 'tokaido'
        local kept
        return { f = tokaido.read(function(tx)
          kept = kept or tx.hot
          return kept:increment('calls')
        end) }";
    let mut bed = Bed::one(lua);
    assert_eq!(bed.run().unwrap(), Value::Integer(1));
    assert_eq!(bed.run().unwrap(), Value::Integer(2));
    let script = "tokaido.snapshot(function(tx) hot = tx.hot end) return hot:get('calls')";
    let mut writer = bed.store.writer().unwrap();
    let ran = bed.vm.run_script("script", script.as_bytes(), &[], Some(&mut *writer));
    let error = ran.unwrap_err().to_string();
    assert!(error.contains("this transaction has ended"), "{error}");
}

#[test]
fn a_function_of_one_kind_of_database_is_refused_by_another() {
    for (function, database, arguments) in [
        ("tx.main.increment", "tx.hot", "'k'"),
        ("tx.main.put", "tx.hot", "'k', 'v'"),
        ("tx.main.add", "tx.hot", "'k', 'v'"),
        ("tx.main.append", "tx.hot", "'k', 'v'"),
        ("tx.main.delete", "tx.hot", "'k'"),
        ("tx.main.compare_and_set", "tx.hot", "'k', nil, 'v'"),
        ("tx.main.clear", "tx.hot", ""),
        ("tx.hot.increment", "tx.main", "'k'"),
        ("tx.hot.put", "tx.main", "'k', 'v'"),
        ("tx.hot.get", "tx.main", "'k'"),
    ] {
        let comma = if arguments.is_empty() { "" } else { ", " };
        let call = format!("local f = {function} return f({database}{comma}{arguments})");
        let error = Bed::one(&write_body(&call)).run().unwrap_err();
        let CallError::Raised { message, .. } = error else { panic!("{call}: {error:?}") };
        assert!(message.contains("another kind of database"), "{call}: {message}");
    }
}

#[test]
fn reading_a_cache_with_the_function_of_a_tree_reads_the_cache() {
    let body = "tx.hot:put('k', 'v') local get = tx.main.get return get(tx.hot, 'k')";
    assert_eq!(Bed::one(&write_body(body)).run().unwrap(), text("v"));
}

/// Calls with every number and kind of arguments that a method could have.
const ARGUMENTS: [&str; 7] =
    ["", "'k'", "'k', 'v'", "'k', 2", "1, 2", "'k', 'v', {}", "'k', 'old', 'new'"];

#[test]
fn a_dot_where_a_colon_belongs_is_said_so_in_every_method_of_every_kind_of_database() {
    let annotations = include_str!("../lua/types/tokaido.lua");
    let methods = annotations.lines().filter_map(|line| line.strip_prefix("function Database:"));
    let methods: Vec<&str> = methods.map(|rest| rest.split('(').next().unwrap()).collect();
    assert!(methods.contains(&"put"), "{methods:?}");
    let mut bed = Bed::one(&write_body("return load('local tx = ... ' .. (...))(tx)"));
    let mut wrong = Vec::new();
    for database in ["tx.main", "tx.nobody_wrote_to_it", "tx.hot", "tx.ports"] {
        for method in &methods {
            for arguments in ARGUMENTS {
                let call = format!("local result = {database}.{method}({arguments})");
                let message = match bed.run_with(&[text(&call)]) {
                    Err(CallError::Raised { message, .. }) => message,
                    other => format!("{other:?}"),
                };
                if !message.contains("with a colon, as in db:") {
                    wrong.push(format!("{call}: {message}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dot_where_a_colon_belongs_is_said_so_of_a_transaction() {
    raises("tx.database('main')", "tx:database with a colon");
    raises("tx.command('GET', 'k')", "tx:command with a colon");
    for arguments in ARGUMENTS {
        for method in ["database", "drop_database", "command"] {
            let expected = format!("tx:{method} with a colon");
            raises(&format!("tx.{method}({arguments})"), &expected);
        }
    }
    // These take no argument that could be missing.
    Bed::one(&write_body("assert(tx.now_ms() == tx:now_ms() and tx.is_writable())")).run().unwrap();
}

/// Reading a field of a state with a metatable may load another page.
#[test]
fn a_state_of_pages_with_a_metatable_gives_what_belongs_together() {
    let mut bed = Bed::one(&write_body(
        "for i = 1, 50 do tx.hot:put('k' .. i, 'v' .. i) end
         local step, state = tx.hot:scan()
         local proxy = setmetatable({}, {
           __index = function(_, name)
             local value = state[name]
             if name == 'low' then for _ in tx.hot:keys{limit = 1} do end end
             return value
           end,
           __newindex = function(_, name, value) state[name] = value end,
         })
         local count = 0
         for key, value in step, proxy do
           assert(value == 'v' .. key:sub(2), key .. ' ' .. value)
           count = count + 1
         end
         return count",
    ));
    assert_eq!(bed.run().unwrap(), Value::Integer(50));
}
