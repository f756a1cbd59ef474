//! Calls of procedures: the methods of a database, transactions, expiry, poison.

mod support;

use support::{Bed, text, write_body};
use tokaido_script::{CallError, Runtime as _, Transaction, Value};
use tokaido_store::Store as _;

#[test]
fn a_procedure_counts_in_its_transaction() {
    let mut bed = Bed::one(
        r#"
        local tokaido = require "tokaido"
        local hits = {}
        hits.count = tokaido.write(function(tx, page) return tx.main:increment(page, 1) end)
        hits.get = tokaido.read(function(tx, page) return tx.main:get(page) end)
        return hits
        "#,
    );
    assert_eq!(bed.call("m.get", &[text("/")]).unwrap(), Value::Nil);
    assert_eq!(bed.call("m.count", &[text("/")]).unwrap(), Value::Integer(1));
    assert_eq!(bed.call("m.count", &[text("/")]).unwrap(), Value::Integer(2));
    assert_eq!(bed.call("m.get", &[text("/")]).unwrap(), text("2"));
}

#[test]
fn an_error_names_file_and_line_and_leaves_nothing() {
    let mut bed = Bed::one(
        r#"
        local tokaido = require "tokaido"
        local function inner(tx)
            tx.main:put("a", 1)
            error("no more tea")
        end
        return { f = tokaido.write(function(tx) inner(tx) return 1 end) }
        "#,
    );
    let Err(CallError::Raised { message, traceback }) = bed.run() else { panic!() };
    assert_eq!(message, "m.lua:5: no more tea");
    assert_eq!(traceback, "m.lua:5: in function 'inner'\nm.lua:7: in function <m.lua:7>");
    assert_eq!(bed.stored("a"), None);
}

/// Lua with its own assertions, one group of methods per test.
fn run(body: &str) {
    let mut bed = Bed::body(&format!(
        "local db = tx.main
        local function raises(f, ...) local ok, why = pcall(f, ...) assert(not ok) return why end
        {body}"
    ));
    if let Err(error) = bed.run() {
        panic!("{error}");
    }
}

#[test]
fn get_put_delete_exists() {
    run("assert(db:get('a') == nil and not db:exists('a') and db:delete('a') == false)
         assert(db:put('a', 'x') == nil)
         assert(db:get('a') == 'x' and db:exists('a'))
         db:put('a', '') assert(db:get('a') == '')
         db:put('\\0\\255', '\\0\\1') assert(db:get('\\0\\255') == '\\0\\1')
         assert(db:delete('a') == true and db:get('a') == nil)
         db:put(('k'):rep(4096), 'long') assert(db:get(('k'):rep(4096)) == 'long')");
}

#[test]
fn numbers_are_their_shortest_decimal() {
    run("db:put(1, 2) assert(db:get('1') == '2' and db:get(1.0) == '2')
         db:put('n', 0.1) assert(db:get('n') == '0.1')
         db:put('n', -0) assert(db:get('n') == '0')
         db:put('n', 1e15) assert(db:get('n') == '1000000000000000')
         db:put('n', 2^53) assert(db:get('n') == '9007199254740992')
         db:put('n', 1e21) assert(db:get('n') == '1000000000000000000000')
         db:put('n', 9223372036854775807LL) assert(db:get('n') == '9223372036854775807')
         db:put('n', 18446744073709551615ULL) assert(db:get('n') == '18446744073709551615')
         assert(tokaido.text(5LL) == '5' and tokaido.text(1e15) == '1000000000000000')
         assert(tokaido.text(true) == 'true')");
}

#[test]
fn record_tells_all() {
    run("assert(db:record('a') == nil)
         db:put('a', 'x', {flags = 4294967295, expires_at_ms = 1900000000000})
         local r = db:record('a')
         assert(r.value == 'x' and r.flags == 4294967295 and r.expires_at_ms == 1900000000000)
         assert(r.version == 1)
         db:put('a', 'x') r = db:record('a')
         assert(r.flags == 0 and r.expires_at_ms == nil)");
}

#[test]
fn conditional_writes() {
    run("assert(db:replace('a', 1) == false and db:get('a') == nil)
         assert(db:add('a', 1) == true and db:add('a', 2) == false and db:get('a') == '1')
         assert(db:replace('a', 3, {flags = 7}) == true and db:record('a').flags == 7)
         assert(db:compare_and_set('a', 2, 4) == false and db:get('a') == '3')
         assert(db:compare_and_set('a', '3', 4) == true and db:get('a') == '4')
         assert(db:compare_and_set('a', nil, 5) == false and db:get('a') == '4')
         assert(db:compare_and_set('b', nil, 5) == true and db:get('b') == '5')
         assert(db:compare_and_set('b', 6, nil) == false and db:exists('b'))
         assert(db:compare_and_set('b', 5, nil) == true and not db:exists('b'))
         assert(db:compare_and_set('b', nil, nil) == true and not db:exists('b'))
         assert(db:compare_and_set('a', nil, nil) == false)
         assert(db:compare_and_set('a', '', nil) == false)
         db:put('e', '') assert(db:compare_and_set('e', nil, 'x') == false)
         assert(db:compare_and_set('e', '', 'x') == true)");
}

#[test]
fn counters_are_exact_over_64_bits() {
    run("assert(db:increment('n') == 1 and db:increment('n', 41) == 42 and db:get('n') == '42')
         assert(db:increment('n', -50) == -8 and type(db:increment('n', 0)) == 'number')
         db:put('n', '9007199254740992')
         local wide = db:increment('n')
         assert(type(wide) == 'cdata' and wide == 9007199254740993LL)
         assert(db:get('n') == '9007199254740993')
         assert(db:increment('n', -1) == 9007199254740992)
         assert(db:increment('m', 9223372036854775807LL) == 9223372036854775807LL)
         assert(raises(db.increment, db, 'm'):find('overflow'))
         assert(db:get('m') == '9223372036854775807')
         assert(raises(db.increment, db, 'm', 2^53 + 2):find('is an integer'))
         assert(raises(db.increment, db, 'm', '1'):find('is an integer'))
         db:put('x', 'tea') assert(raises(db.increment, db, 'x'):find('not a number'))
         assert(db:increment_float('f', 0.5) == 0.5 and db:increment_float('f', 0.25) == 0.75)
         assert(db:get('f') == '0.75')
         assert(tokaido.integer('-9223372036854775808') == -9223372036854775807LL - 1)
         assert(tokaido.integer('9223372036854775808') == nil and tokaido.integer('1.5') == nil)
         assert(tokaido.integer('12') == 12 and tokaido.integer(1.5) == nil)");
}

#[test]
fn append_count_size_clear() {
    run("assert(db:append('a', 'xy') == 2 and db:append('a', 1) == 3 and db:get('a') == 'xy1')
         db:put('b', '')
         assert(db:count() == 2 and db:size() == 5)
         db:clear() assert(db:count() == 0 and db:get('a') == nil)
         assert(tx.other:count() == 0 and tx.other:size() == 0)");
}

#[test]
fn get_many_keeps_the_keys_that_are_there() {
    run("db:put('a', 1) db:put('c', 3) db:put(7, 'seven')
         local found = db:get_many{'a', 'b', 'c', 7}
         assert(found.a == '1' and found.b == nil and found.c == '3' and found[7] == 'seven')
         assert(next(db:get_many{}) == nil)");
}

#[test]
fn expiry_within_and_after_a_call() {
    let mut bed = Bed::body(
        "local db = tx.main
         db:put('a', 1, {ttl_ms = 1000}) db:put('b', 2)
         assert(tx:now_ms() == 1800000000000)
         assert(db:ttl('a') == 1000 and db:ttl('b') == math.huge and db:ttl('c') == nil)
         assert(db:expire('b', 500) and db:ttl('b') == 500 and not db:expire('c', 1))
         db:put('c', 3, {ttl_ms = 100}) assert(db:persist('c') and db:ttl('c') == math.huge)
         db:put('d', 4, {ttl_ms = 0}) assert(db:get('d') == nil)
         db:put('e', 5, {flags = 9}) db:expire('e', 100) assert(db:record('e').flags == 9)
         db:expire('e', -1) assert(not db:exists('e'))",
    );
    bed.run().unwrap();
    bed.store.advance(499);
    assert_eq!(bed.stored("b").as_deref(), Some("2"));
    bed.store.advance(1);
    assert_eq!(bed.stored("b"), None);
    bed.store.advance(500);
    assert_eq!(bed.stored("a"), None);
    assert_eq!(bed.stored("c").as_deref(), Some("3"));
}

#[test]
fn several_databases_are_one_transaction() {
    let mut bed = Bed::body(
        "tx.a:put('k', 1) tx['b-2']:put('k', 2) tx:database('now_ms'):put('k', 3)
         assert(tx.a:get('k') == '1' and tx['b-2']:get('k') == '2')
         assert(tx:database('now_ms'):get('k') == '3' and type(tx:now_ms()) == 'number')
         assert(tostring(tx.a) == 'database a' and rawequal(tx.a, tx.a))
         assert(tx:is_writable())",
    );
    bed.run().unwrap();
    let names: Vec<_> = bed.store.databases().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["a", "b-2", "now_ms"]);
}

#[test]
fn a_read_procedure_finds_empty_databases_and_makes_none() {
    let mut bed = Bed::one(
        "local tokaido = require 'tokaido'
        local m = {}
        m.read = tokaido.read(function(tx)
          local db = tx.nowhere
          for key in db:scan() do error(key) end
          assert(not tx:is_writable())
          return {db:get('a') == nil, db:count(), db:exists('a'), next(db:get_many{'a'}) == nil}
        end)
        m.bad = tokaido.read(function(tx) return tx['a b']:get('k') or 1 end)
        m.write = tokaido.write(function(tx) tx.nowhere:put('a', 1) end)
        return m",
    );
    let empty =
        vec![Value::Boolean(true), Value::Integer(0), Value::Boolean(false), Value::Boolean(true)];
    assert_eq!(bed.call("m.read", &[]).unwrap(), Value::Array(empty));
    assert!(bed.store.databases().is_empty());
    assert!(bed.call("m.bad", &[]).unwrap_err().to_string().contains("bad database name"));
    // Once it exists, it is found.
    bed.call("m.write", &[]).unwrap();
    let Err(CallError::Raised { message, .. }) = bed.call("m.read", &[]) else { panic!() };
    assert_eq!(message, "m.lua:5: a");
}

#[test]
fn a_read_procedure_cannot_write() {
    let writes = [
        "put('a', 1)",
        "delete('a')",
        "add('a', 1)",
        "replace('a', 1)",
        "compare_and_set('a', nil, 1)",
        "increment('a')",
        "increment_float('a', 1)",
        "append('a', 'b')",
        "expire('a', 1)",
        "persist('a')",
        "clear()",
    ];
    for write in writes {
        let mut bed = Bed::one(&format!(
            "local tokaido = require 'tokaido'
            return {{ f = tokaido.read(function(tx) local x = tx.main:{write} end) }}"
        ));
        let message = bed.run().unwrap_err().to_string();
        assert_eq!(
            message, "m.lua:2: m.f is a read procedure; declare it with tokaido.write to write",
            "{write}"
        );
    }
}

#[test]
fn a_read_procedure_runs_in_a_write_transaction_too() {
    let mut bed = Bed::one(
        "local tokaido = require 'tokaido'
        return { f = tokaido.read(function(tx) return tx.main:get('a') end) }",
    );
    let mut writer = bed.store.writer().unwrap();
    let main = bed.store.database("main").unwrap();
    let transaction = writer.begin().unwrap();
    transaction.put(main, b"a", tokaido_store::NewRecord::of(b"1")).unwrap();
    let id = bed.vm.find(b"m.f").unwrap();
    assert_eq!(bed.vm.call(id, Transaction::Write(transaction).into(), &[]).unwrap(), text("1"));
}

#[test]
fn procedures_call_each_other_in_one_transaction() {
    let hits = "local tokaido = require 'tokaido'
        return { count = tokaido.write(function(tx, page)
          local n = tx.main:increment(page)
          return n
        end) }";
    let site = "local tokaido = require 'tokaido'
        local hits = require 'lib.hits'
        return { visit = tokaido.write(function(tx, page)
          return hits.count(tx, page) + hits.count(tx, page)
        end), peek = tokaido.read(function(tx) local n = hits.count(tx, 'x') end) }";
    let mut bed = Bed::of(&[("lib.hits", hits), ("site", site)]);
    assert_eq!(bed.call("site.visit", &[text("/")]).unwrap(), Value::Integer(3));
    assert_eq!(bed.stored("/").as_deref(), Some("2"));
    // The running transaction decides, not the procedure that was named first.
    let message = bed.call("site.peek", &[]).unwrap_err().to_string();
    assert_eq!(
        message,
        "lib/hits.lua:3: site.peek is a read procedure; declare it with tokaido.write to write"
    );
}

#[test]
fn a_transaction_that_was_kept_is_of_no_use() {
    let mut bed = Bed::one(
        "local tokaido = require 'tokaido'
        local kept, iterator, state
        local m = {}
        m.keep = tokaido.write(function(tx)
          kept = tx tx.main:put('a', 1) iterator, state = tx.main:scan()
        end)
        -- While another call runs, it is that call's.
        m.use = tokaido.read(function(tx) return kept.main:get('a') end)
        m.g = tokaido.http('GET /', function(tx, req, res) m.req, m.res = req, res return '' end)
        m.late = tokaido.read(function(tx) return m.req.path end)
        m.later = tokaido.read(function(tx) local x = m.res:write('x') end)
        local ok, why = pcall(function() return kept.main:get('a') end)
        return m",
    );
    bed.call("m.keep", &[]).unwrap();
    assert_eq!(bed.call("m.use", &[]).unwrap(), text("1"));
    bed.http("m.g", &support::request("GET", "/")).unwrap();
    for name in ["m.late", "m.later"] {
        let message = bed.call(name, &[]).unwrap_err().to_string();
        assert!(message.contains("this request is over"), "{message}");
    }
}

#[test]
fn outside_of_a_call_there_is_no_transaction() {
    let keeper = "local tokaido = require 'tokaido'
        local m = {}
        m.f = tokaido.write(function(tx) m.kept = tx m.db = tx.main end)
        return m";
    let mut bed = Bed::one(keeper);
    bed.run().unwrap();
    let mut writer = bed.store.writer().unwrap();
    for expression in ["m.db:get('a')", "m.db:put('a', 1)", "m.kept.other", "m.db:count()"] {
        let script = format!("local m = require 'm'\nlocal x = {expression}");
        let error =
            bed.vm.run_script("s.lua", script.as_bytes(), &[], Some(&mut *writer)).unwrap_err();
        assert!(
            error.to_string().ends_with(
                "this transaction has ended; a database can only be used while the procedure that got it runs"
            ),
            "{expression}: {error}"
        );
    }
}

#[test]
fn a_failed_write_cannot_be_hidden() {
    for (key, expected) in [
        ("broken engine", "writing failed: the disk is on fire"),
        ("panic", "a database call panicked, which is a fault of tokaido; please report it"),
    ] {
        let mut bed = Bed::body(&format!(
            "tx.main:put('before', 1)
            pcall(function() tx.main:put('{key}', 1) end)
            return 'all is well'"
        ));
        let Err(CallError::Raised { message, .. }) = bed.run() else { panic!() };
        assert_eq!(message, expected);
        assert_eq!(bed.stored("before"), None);
    }
}

#[test]
fn a_refused_call_may_be_caught() {
    let mut bed = Bed::body("pcall(tx.main.put, tx.main, '', 1) tx.main:put('a', 1)");
    bed.run().unwrap();
    assert_eq!(bed.stored("a").as_deref(), Some("1"));
}

#[test]
fn only_procedures_without_a_route_are_called_by_name() {
    let mut bed = Bed::of(&[
        ("m", &write_body("return 1")),
        ("page", "return { f = require('tokaido').http('GET /p', function() end) }"),
    ]);
    assert_eq!(bed.vm.find(b"m.g"), None);
    let Err(CallError::Value { message }) = bed.call("page.f", &[]) else { panic!() };
    assert_eq!(message, "page.f answers GET /p; call it over HTTP");
}
