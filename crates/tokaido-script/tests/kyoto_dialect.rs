//! The Kyoto Tycoon dialect: its objects, in scripts that check themselves.

mod support;

use std::{sync::Arc, time::Duration};

use support::{
    MemoryStore,
    kyoto::{self, run},
    text,
};
use tokaido_collections::{Hash, Packing};
use tokaido_script::{CallError, Limits, Value};
use tokaido_store::{NewRecord, WriteError, transact};

fn map(pairs: &[(&str, &str)]) -> Value {
    Value::Map(pairs.iter().map(|(name, value)| (text(name), text(value))).collect())
}

fn sorted(value: Value) -> Vec<(String, String)> {
    let Value::Map(pairs) = value else { panic!("{value:?}") };
    let shown = |value: &Value| match value {
        Value::String(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    let mut pairs: Vec<_> = pairs.iter().map(|(k, v)| (shown(k), shown(v))).collect();
    pairs.sort();
    pairs
}

#[test]
fn global_functions_are_procedures_with_a_map_in_and_a_map_out() {
    let mut bed = kyoto::of(
        "local kt = __kyototycoon__
         local function hidden() end
         _private = function() end
         calls = 0
         function echo(inmap, outmap) for k, v in pairs(inmap) do outmap[k] = v end end
         function kinds(inmap, outmap)
           calls = calls + 1
           outmap.calls, outmap.half, outmap.yes, outmap.none, outmap.t = calls, 0.5, true, nil, {}
           outmap[7] = 2 ^ 40
           return kt.RVSUCCESS
         end",
    );
    let names: Vec<_> = bed.runtime.procedures().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["echo", "kinds"]);
    let given = map(&[("a", "1"), ("b", "2")]);
    let expected = sorted(given.clone());
    assert_eq!(sorted(bed.call("echo", &[given]).unwrap()), expected);
    // As `FCALL` and `tokaido call` pass them.
    let turns = ["a", "1", "b", "2"].map(text);
    assert_eq!(sorted(bed.call("echo", &turns).unwrap()), expected);
    assert_eq!(bed.call("echo", &[]).unwrap(), Value::Map(Vec::new()));
    let error = bed.call("echo", &turns[..3]).unwrap_err();
    assert!(error.to_string().contains("names and values in turn"), "{error}");
    for calls in ["1", "2"] {
        let expected =
            [("7", "1099511627776"), ("calls", calls), ("half", "0.500000"), ("yes", "true")];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(sorted(bed.call("kinds", &[]).unwrap()), expected);
    }
}

#[test]
fn a_code_keeps_what_was_written_and_an_error_does_not() {
    let mut bed = kyoto::of(
        "kt = __kyototycoon__
         function code(inmap, outmap)
           kt.db:set('code', inmap.code)
           outmap.lost = 1
           return kt[inmap.code] or tonumber(inmap.code)
         end
         function fault() kt.db:set('fault', 1) error('no more tea') end",
    );
    for (code, status) in [
        ("RVENOIMPL", 501),
        ("RVEINVALID", 400),
        ("RVELOGIC", 450),
        ("RVETIMEOUT", 503),
        ("RVEINTERNAL", 500),
    ] {
        let error = bed.call("code", &[text("code"), text(code)]).unwrap_err();
        let CallError::Refused { code: Some(given), status: Some(at), is_kept: true, .. } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!((given.as_str(), *at), (code, status));
        assert_eq!(bed.stored("code").unwrap(), code.as_bytes());
    }
    // A constant that does not exist is nil, and nil is a success.
    assert!(bed.call("code", &[text("code"), text("EVEINTERNAL")]).is_ok());
    assert!(bed.call("code", &[text("code"), text("0.9")]).is_ok());
    let error = bed.call("fault", &[]).unwrap_err();
    let CallError::Raised { message, traceback } = &error else { panic!("{error:?}") };
    assert_eq!(message, "m.lua:8: no more tea");
    assert!(traceback.contains("m.lua:8"), "{traceback}");
    assert_eq!(bed.stored("fault"), None);
}

#[test]
fn a_code_keeps_nothing_where_the_store_has_failed() {
    let script = "db = __kyototycoon__.db
         function f() db:set('a', 1) db:set('broken engine', 1) return __kyototycoon__.RVELOGIC end";
    let mut bed = kyoto::over(Arc::new(MemoryStore::new()), script, Limits::default());
    let error = bed.call("f", &[]).unwrap_err();
    assert!(matches!(error, CallError::Raised { .. }), "{error:?}");
    assert!(error.to_string().contains("the disk is on fire"), "{error}");
    assert_eq!(bed.stored("a"), None);
}

#[test]
fn other_names_of_functions_that_are_offered_are_no_procedures() {
    let bed = kyoto::of(
        "kt = __kyototycoon__
         floor, find, split, tell = math.floor, string.find, kt.split, print
         function own() end",
    );
    let names: Vec<_> = bed.runtime.procedures().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["own"]);
}

#[test]
fn a_file_sees_no_more_than_it_is_offered() {
    let message = |script: &str| {
        let bed = kyoto::with(script, Limits::default());
        bed.errors.first().map(ToString::to_string)
    };
    assert_eq!(message("assert(undeclared == nil) x = x or 1 collectgarbage('collect')"), None);
    assert_eq!(message("assert(__kyototycoon__.EVEINTERNAL == nil) print('hello', 1)"), None);
    for name in ["io", "require", "dofile", "debug", "package"] {
        let error = message(&format!("local x = {name}")).unwrap();
        assert!(error.contains(&format!("{name} is not offered")), "{error}");
        assert!(error.contains("docs/kyoto-tycoon-lua.md"), "{error}");
    }
    let error = message("__kyototycoon__.db:set('a', 1)").unwrap();
    assert!(error.contains("m.lua:2: databases can be used while a procedure runs"), "{error}");
}

#[test]
fn limits_hold() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut bed = kyoto::with(
        "local db = __kyototycoon__.db
         function endless() db:set('a', 1) while true do end end
         function stubborn() db:transaction(function() while true do pcall(endless) end end) end
         function visitor() db:accept('a', function() while true do end end) end
         function fine(_, outmap) outmap.a = db:get('a') end",
        limits,
    );
    for name in ["endless", "stubborn", "visitor"] {
        let error = bed.call(name, &[]).unwrap_err();
        assert!(matches!(error, CallError::TimeLimit { .. }), "{name}: {error:?}");
    }
    assert_eq!(bed.call("fine", &[]).unwrap(), Value::Map(Vec::new()));
    let limits = Limits { time: Duration::from_secs(60), memory_bytes: 32 << 20, ..limits };
    let mut bed = kyoto::with(
        "local db = __kyototycoon__.db
         function large() local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end end
         function fine(_, outmap) outmap.a = db:get('a') end",
        limits,
    );
    let error = bed.call("large", &[]).unwrap_err();
    assert!(matches!(error, CallError::MemoryLimit { .. }), "{error:?}");
    assert_eq!(bed.call("fine", &[]).unwrap(), Value::Map(Vec::new()));
}

#[test]
fn records_are_written_and_read() {
    run("is(db:set('a', 'x'), true) is({ db:get('a') }, { 'x', NEVER })
         is(db:get('b'), nil) is(code(), kt.Error.NOREC) is(db:error():name(), 'no record')
         is(tostring(db:error()), 'no record: no record')
         is(db:set(1, 2.5), true) is(db:get('1'), '2.5') is(db:get(1), '2.5')
         is(db:add('a', 'y'), false) is(code(), kt.Error.DUPREC) is(db:add('c', 'y'), true)
         is(db:replace('d', 'y'), false) is(code(), kt.Error.NOREC)
         is(db:replace('c', 'z'), true) is(db:get('c'), 'z')
         is(db:append('c', '!'), true) is(db:append('new', 'n'), true)
         is(db:get('c') .. db:get('new'), 'z!n')
         is(db:check('c'), 2) is(db:check('none'), -1)
         is(db:remove('c'), true) is(db:remove('c'), false) is(code(), kt.Error.NOREC)
         is({ db:seize('new') }, { 'n', NEVER }) is(db:seize('new'), nil)
         is(db:cas('a', 'no', 'y'), false) is(code(), kt.Error.LOGIC)
         is(db:cas('a', 'x', 'y'), true) is(db:cas('e', nil, 'new'), true)
         is(db:cas('e', 'new', nil), true) is(db:get('e'), nil)
         is(db:set(nil, 'x'), false) is(code(), kt.Error.INVALID) is(db:set('x', {}), false)
         is(db:get(nil), nil) is(db:remove(true), false)
         assert(raises(db.set, db, 'a'):find 'db_set: invalid arguments')
         assert(raises(db.get, db):find 'db_get: invalid arguments')
         is(db:count(), 2) assert(db:size() > 0) is(db:path(), 'main')
         is(tostring(db), 'main: 2: ' .. db:size()) is(db:status().count, '2')
         is(db:clear(), true) is(db:count(), 0)");
}

#[test]
fn records_expire() {
    run("local now = kt.time()
         db:set('a', 'x', 100) local _, xt = db:get('a') assert(math.abs(xt - now - 100) <= 2)
         db:set('a', 'x', -(2 ^ 33)) is({ db:get('a') }, { 'x', 2 ^ 33 })
         db:append('a', 'y') is({ db:get('a') }, { 'xy', NEVER })
         db:append('a', 'z', '50') _, xt = db:get('a') assert(math.abs(xt - now - 50) <= 2)
         db:set('a', 'x') is({ db:get('a') }, { 'x', NEVER })
         db:set('b', 'x', -1) is(db:get('b'), nil)
         db:cas('a', 'x', 'y', 9) _, xt = db:get('a') assert(xt < NEVER)
         is(db:set('far', 1, 2 ^ 50), true) is({ db:get('far') }, { '1', NEVER })");
}

#[test]
fn counters_are_those_of_the_wire() {
    run(r"is(db:increment('n', 5), 5) is(db:get('n'), '\0\0\0\0\0\0\0\5')
         is(db:increment('n', -7), -2) is(db:get('n'), ('\255'):rep(7) .. '\254')
         is(db:increment('n'), -2) is(db:increment('m', 1, 100), 101)
         is(db:increment('o', 1, -math.huge), nil) is(code(), kt.Error.LOGIC)
         is(db:increment('n', 9, math.huge), 9) is(db:increment('n', '1'), 10)
         db:set('s', '12') is(db:increment('s', 1), nil) is(code(), kt.Error.LOGIC)
         is(db:increment('big', 2 ^ 62), 2 ^ 62) is(db:increment('big', 2 ^ 62), nil)
         is(db:increment('n', 1, 0, 60), 11) local _, xt = db:get('n') assert(xt < NEVER)
         is(db:increment_double('d', 1.5), 1.5) is(#db:get('d'), 16)
         is(db:get('d'), '\0\0\0\0\0\0\0\1' .. kt.pack('M', 5e14))
         is(db:increment_double('d', -2.25), -0.75) is(db:increment_double('d'), -0.75)
         is(db:increment_double('e', 1, 10), 11) is(db:increment_double('f', 1, -math.huge), nil)
         is(db:increment_double('d', 3, math.huge), 3)
         is(db:increment_double('s', 1), nil) is(code(), kt.Error.LOGIC)");
}

#[test]
fn fields_of_a_database_are_its_records() {
    run("db.a = 'x' is(db['a'], 'x') is(db.a, 'x') db.a = 2 is(db.a, '2') db.a = nil is(db.a, nil)
         db.set = 'y' is(db:get('set'), 'y') is(type(db.set), 'function')
         for i = 1, 200 do db['k' .. i] = i end
         local n = 0 for k, v in db:pairs() do n = n + 1 assert(db[k] == v or k == 'set') end is(n, 201)
         for k in db:pairs() do db:remove(k) end is(db:count(), 0)");
}

#[test]
fn databases_are_found_by_number_and_by_name() {
    run("is(#kt.dbs, 4) is(kt.dbs[1], kt.db) is(kt.dbs.main, db) is(kt.dbs[2], kt.dbs.other)
         is(kt.dbs.none, nil) kt.dbs.other.a = 1 is(db.a, nil) is(kt.dbs[2]:get('a'), '1')
         is(kt.dbs.ports:get('ssh'), '22') is(kt.dbs.ports:set('a', 1), false)
         local own = kt.DB:new()
         is(own:set('a', 1), false) is(code(own), kt.Error.INVALID) is(own:get('a'), nil)
         is(own:open('data/other.kct#bnum=100'), true) is(own.a, '1') is(own:close(), true)
         is(own:get('a'), nil) is(own:close(), false)
         is(kt.DB:process(function(d) d.b = 2 end, 'other'), nil) is(kt.dbs.other.b, '2')
         is(db:open('x'), false) is(db:close(), false)
         assert(raises(own.open, own, '*'):find 'DB:open of %* is not offered')
         assert(raises(own.open, own):find 'not offered')
         for _, name in ipairs { 'copy', 'dump_snapshot', 'load_snapshot' } do
           assert(raises(db[name], db, 'file'):find('DB:' .. name .. ' is not offered.*kyoto%-tycoon%-lua'))
         end
         assert(raises(kt.DB.new_ptr):find 'not offered') assert(raises(kt.sleep, 1):find 'not offered')
         is(kt.sleep(), nil) is(kt.thid, 0) is(type(kt.VERSION), 'string')");
}

#[test]
fn visitors_see_and_change_records() {
    run("local seen
         local function visit(k, v, xt) seen = { k, v, xt } return v and v .. '!' or 'new' end
         is(db:accept('a', visit), true) is(seen, { 'a' }) is(db.a, 'new')
         is(db:accept('a', visit), true) is(seen, { 'a', 'new', NEVER }) is(db.a, 'new!')
         is(db:accept('a', visit, false), true) is(db.a, 'new!')
         is(db:accept('a', function() return kt.Visitor.NOP end), true) is(db.a, 'new!')
         is(db:accept('a', function() error 'oops' end), true) is(db.a, 'new!')
         is(db:accept('a', function() return 'x', 50 end), true)
         local _, xt = db:get('a') assert(xt < NEVER)
         is(db:accept('a', function(k, v) return v .. 'y' end), true) is({ db:get('a') }, { 'xy', xt })
         is(db:accept('a', function() return kt.Visitor.REMOVE end), true) is(db.a, nil)
         is(db:accept('a', function() return kt.Visitor.REMOVE end), true)
         is(db:accept('n', function() return 5 end), true) is(db.n, '5')
         assert(raises(db.accept, db, 'a'):find 'db_accept: invalid arguments')");
}

#[test]
fn visitors_are_tables_too_and_see_many_records() {
    run("local log = {}
         local visitor = kt.Visitor:new()
         function visitor:visit_before() log[#log + 1] = 'before' end
         function visitor:visit_after() log[#log + 1] = 'after' end
         function visitor:visit_full(k, v, xt) log[#log + 1] = k .. v return v .. v end
         function visitor:visit_empty(k) log[#log + 1] = k return self.NOP end
         db.a = 1 db.c = 3
         is(db:accept_bulk({ 'a', 'b', 'c' }, visitor), true)
         is(log, { 'before', 'a1', 'b', 'c3', 'after' }) is(db.a .. db.c, '1133') is(db.b, nil)
         is(db:accept_bulk({ 'a' }, {}), true)
         log = {}
         is(db:iterate(visitor, false), true) is(log, { 'before', 'a11', 'c33', 'after' })
         is(db:iterate(function(k, v) if k == 'a' then return kt.Visitor.REMOVE end return v .. '?' end), true)
         is(db.a, nil) is(db.c, '33?')
         kt.dbs.hot.x = 1 kt.dbs.hot.y = 2
         is(kt.dbs.hot:iterate(function(k, v) return v .. v end), true)
         is(kt.dbs.hot.x .. kt.dbs.hot.y, '1122')
         local ports = {} kt.dbs.ports:iterate(function(k, v) ports[k] = v end, false)
         is(ports, { http = '80', ssh = '22' })");
}

#[test]
fn transactions_of_a_database_are_committed_or_given_up() {
    run("db.a = 1 db:set('b', 2, 60) local _, xt = db:get('b')
         local function change() db.a = 'x' db:remove('b') db.c = 3 db:increment('n', 1) end
         is(db:transaction(function() change() return true end), true)
         is({ db.a, db.b, db.c }, { 'x', nil, '3' })
         db.a = 1 db:set('b', 2, 60) db.c = nil
         is(db:transaction(function() change() change() return false end), true)
         is({ db.a, db.b, db.c }, { '1', '2' }) is({ db:get('b') }, { '2', xt }) is(db:increment('n'), 1)
         assert(raises(db.transaction, db, function() change() error 'no more tea' end):find 'no more tea')
         is(db.a, '1')
         is(db:begin_transaction(), true) is(db:begin_transaction(), false) is(code(), kt.Error.LOGIC)
         local cur = db:cursor() cur:jump() cur:remove() cur:set_value('z')
         db:accept('new', function() return 1 end) db:set_bulk { p = 1 } kt.dbs.other.a = 'kept'
         is(db:end_transaction(false), true) is(db.a, '1') is(db.b, '2') is(db.new, nil) is(db.p, nil)
         is(kt.dbs.other.a, 'kept') is(db:end_transaction(), false) is(code(), kt.Error.INVALID)
         db:begin_transaction() db:clear() db.z = 1 is(db:count(), 1) db:end_transaction(false)
         is(db.a, '1') is(db.z, nil) db:begin_transaction() db.a = 2 is(db:end_transaction(true), true)
         is(db.a, '2')");
}

#[test]
fn a_transaction_that_is_left_open_is_given_up_at_the_end_of_the_call() {
    let mut bed = kyoto::of(
        "db = __kyototycoon__.db
         function open() db.a = 1 db:begin_transaction() db.a = 2 end
         function look(_, outmap) outmap.a, outmap.ended = db.a, db:end_transaction() end",
    );
    bed.call("open", &[]).unwrap();
    let expected = [("a", "1"), ("ended", "false")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(sorted(bed.call("look", &[]).unwrap()), expected);
}

#[test]
fn a_transaction_that_was_stopped_is_not_given_up_later() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut bed = kyoto::with(
        "db = __kyototycoon__.db
         function stuck() db:transaction(function() db.a = 'lost' while true do end end) end
         function set(inmap) db.a = inmap.a end
         function look(_, outmap) outmap.a = db.a end",
        limits,
    );
    bed.call("set", &["a", "old"].map(text)).unwrap();
    let error = bed.call("stuck", &[]).unwrap_err();
    assert!(matches!(error, CallError::TimeLimit { .. }), "{error:?}");
    bed.call("set", &["a", "new"].map(text)).unwrap();
    let expected = [("a".to_owned(), "new".to_owned())];
    assert_eq!(sorted(bed.call("look", &[]).unwrap()), expected);
}

#[test]
fn many_records_are_set_removed_and_got() {
    run("is(db:set_bulk { a = 1, b = 'x', c = 1.5, d = true }, 3) is(db.c, '1.500000') is(db.d, nil)
         is(db:get_bulk { 'a', 'b', 'none' }, { a = '1', b = 'x' })
         is(db:remove_bulk { 'a', 'none', 'b' }, 2) is(db:count(), 1)
         is(db:set_bulk({ t = 1 }, 60), 1) local _, xt = db:get('t') assert(xt < NEVER)");
}

#[test]
fn keys_are_looked_for() {
    run("for _, k in ipairs { 'abc', 'abd', 'ab', 'b', 'xab', '日本' } do db[k] = 1 end
         is(db:match_prefix('ab'), { 'ab', 'abc', 'abd' }) is(db:match_prefix('ab', 2), { 'ab', 'abc' })
         is(#db:match_prefix(''), 6) is(db:match_prefix('ab', 0), {})
         is(db:match_regex('^ab[cd]$'), { 'abc', 'abd' }) is(db:match_regex('b$', 1), { 'ab' })
         is(db:match_regex('('), nil) is(code(), kt.Error.LOGIC)
         is(db:match_similar('abc'), { 'abc', 'ab', 'abd' }) is(db:match_similar('abc', 0), { 'abc' })
         is(db:match_similar('日', 1, true), { 'b', '日本' }) is(db:match_similar('abc', 1, false, 2), { 'abc', 'ab' })
         kt.dbs.hot.abc = 1 kt.dbs.hot.x = 1 is(kt.dbs.hot:match_prefix('ab'), { 'abc' })");
}

#[test]
fn collections_are_passed_over_and_are_no_values() {
    let mut bed = kyoto::of(
        "db = __kyototycoon__.db
         function f(_, outmap)
           local keys, cur = {}, db:cursor()
           for k in db:pairs() do keys[#keys + 1] = k end
           cur:jump('h')
           keys[#keys + 1] = cur:get_key()
           assert(not db:get('h') and db:error():code() == 8 and db:check('h') == -1)
           db:begin_transaction()
           assert(not db:set('h', 1) and db:error():code() == 8)
           assert(db:clear() and db:count() == 1 and db:end_transaction(false) and db:count() == 3)
           assert(db:set('h', 1) and db:get('h') == '1')
           outmap.keys = table.concat(keys, ' ')
         end",
    );
    let mut writer = bed.store.writer().unwrap();
    let main = bed.store.database("main").unwrap();
    transact::<_, WriteError>(&mut *writer, |tx| {
        tx.put(main, b"a", NewRecord::of(b"1"))?;
        tx.put(main, b"z", NewRecord::of(b"2"))?;
        Hash::new(main, b"h").set(tx, Packing::default(), [(&b"f"[..], &b"v"[..])])
    })
    .unwrap();
    drop(writer);
    let keys = [("keys".to_owned(), "a z z".to_owned())];
    assert_eq!(sorted(bed.call("f", &[]).unwrap()), keys);
}

#[test]
fn databases_are_merged_and_mapped() {
    run("local other = kt.dbs.other
         db.a = 1 other.a = 2 other:set('b', 3, 60)
         is(db:merge({ other }, kt.DB.MADD), true) is({ db.a, db.b }, { '1', '3' })
         local _, xt = db:get('b') assert(xt < NEVER)
         db:merge({ other }) is(db.a, '2') other.c = 1 db:merge({ other }, kt.DB.MREPLACE) is(db.c, nil)
         db:merge({ other }, kt.DB.MAPPEND) is({ db.a, db.c }, { '22', '1' })
         db:clear() db.x = 'tea or tea' db.y = 'or coffee'
         local counts, order, log, calls = {}, {}, {}, {}
         local function map(k, v, emit) for _, w in ipairs(kt.split(v, ' ')) do emit(w, k) end return true end
         local function reduce(k, iter)
           order[#order + 1], counts[k] = k, 0
           while iter() do counts[k] = counts[k] + 1 end
           return true
         end
         is(db:mapreduce(map, reduce, nil, kt.DB.XNOLOCK + kt.DB.XNOCOMP, nil, nil, nil,
           function(n, m) log[#log + 1] = m end,
           function(emit) calls[#calls + 1] = emit ~= nil return true end), true)
         is(counts, { tea = 2, ['or'] = 2, coffee = 1 }) is(order, { 'coffee', 'or', 'tea' })
         is(calls, { true, true, false }) assert(#log > 0)
         is(db:mapreduce(function() end, reduce), false) is(code(), kt.Error.LOGIC)
         is(db:mapreduce(map, function() return false end), false)
         is(db:synchronize(true), true) is(db:occupy(false, function(path, count) return count == 2 end), true)
         local p = kt.FileProcessor:new() function p:process(path) self.path = path return false end
         is(db:synchronize(false, p), false) is(p.path, 'main')");
}

#[test]
fn errors_are_objects() {
    run("local e = kt.Error:new(kt.Error.NOREC, 'gone') is(e:code(), 7) is(e:message(), 'gone')
         is(tostring(e), 'no record: gone') e:set(kt.Error.MISC, 'other') is(e:name(), 'miscellaneous error')
         is(kt.Error:new():code(), kt.Error.SUCCESS) is(kt.dbs.other:error():name(), 'success')");
}
