//! The Tokyo Tyrant dialect: calls, records, walks and what threads share, in scripts that check themselves.

mod support;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use support::{
    text,
    tyrant::{self, run, run_on},
};
use tokaido_collections::{Hash, Packing};
use tokaido_script::{CallError, Hook, Limits, Value};
use tokaido_store::{NewRecord, WriteError, transact, transact_in_place};

#[test]
fn global_functions_get_a_key_and_a_value() {
    let mut bed = tyrant::of(
        "local function hidden() end
         function _private(key) return key end
         calls = 0
         find = string.find
         function echo(key, value) calls = calls + 1 return key .. '=' .. value .. calls end
         function kinds(key)
           local results = {
             half = 0.5, whole = 7, yes = true, no = false, text = 'a\\0b', list = { 'first', 2 }, number = { 3 },
             truth = { true }, empty = {}, nested = { {} }, call = print,
           }
           return results[key]
         end",
    );
    let names: Vec<_> = bed.runtime.procedures().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["echo", "kinds"]);
    let given = ["a", "1", "x"].map(text);
    assert_eq!(bed.call("echo", &given[..2]).unwrap(), text("a=11"));
    assert_eq!(bed.call("echo", &given[..1]).unwrap(), text("a=2"));
    assert_eq!(bed.call("echo", &[]).unwrap(), text("=3"));
    assert_eq!(bed.call("echo", &[Value::Integer(5), Value::Number(0.5)]).unwrap(), text("5=0.54"));
    for wrong in [&given[..], &[Value::Boolean(true)]] {
        let error = bed.call("echo", wrong).unwrap_err();
        assert!(error.to_string().contains("takes a key and a value"), "{error}");
    }
    for (key, result) in [
        ("half", "0.5"),
        ("whole", "7"),
        ("yes", "true"),
        ("text", "a\0b"),
        ("list", "first"),
        ("number", "3"),
        ("truth", "true"),
    ] {
        assert_eq!(bed.call("kinds", &[text(key)]).unwrap(), text(result), "{key}");
    }
    for key in ["no", "empty", "nested", "call", "none"] {
        assert_eq!(bed.call("kinds", &[text(key)]).unwrap(), Value::Nil, "{key}");
    }
}

#[test]
fn hooks_are_procedures_that_nobody_finds() {
    let bed = tyrant::of("function _begin() end function _end() end function f() end");
    let procedures = bed.runtime.procedures().iter();
    let hooks: Vec<_> = procedures.map(|p| (p.name.as_str(), p.hook)).collect();
    let expected = [("m._begin", Some(Hook::Begin)), ("m._end", Some(Hook::End)), ("f", None)];
    assert_eq!(hooks, expected);
    assert!(bed.runtime.find(b"f").is_some() && bed.runtime.find(b"m._begin").is_none());
}

#[test]
fn no_result_keeps_what_was_written_and_an_error_does_not() {
    let mut bed = tyrant::of(
        "function quiet() _put('quiet', 1) return nil end
         function fault() _put('fault', 1) _lock('l') error('no more tea') end
         function relock() return _lock('l') end",
    );
    assert_eq!(bed.call("quiet", &[]).unwrap(), Value::Nil);
    assert_eq!(bed.stored("quiet").unwrap(), b"1");
    let error = bed.call("fault", &[]).unwrap_err();
    let CallError::Raised { message, traceback } = &error else { panic!("{error:?}") };
    assert_eq!(message, "m.lua:3: no more tea");
    assert!(traceback.contains("m.lua:3"), "{traceback}");
    assert_eq!(bed.stored("fault"), None);
    assert_eq!(bed.call("relock", &[]).unwrap(), text("true"));
    assert_eq!(bed.call("relock", &[]).unwrap(), Value::Nil);
}

#[test]
fn a_file_sees_no_more_than_it_is_offered() {
    let message = |script: &str| {
        let bed = tyrant::with(script, Limits::default());
        bed.errors.first().map(ToString::to_string)
    };
    assert_eq!(message("assert(_read == nil) x = x or 1 print(_hash('md5', ''))"), None);
    for name in ["io", "require", "dofile", "debug", "package"] {
        let error = message(&format!("local x = {name}")).unwrap();
        assert!(error.contains(&format!("{name} is not offered")), "{error}");
        assert!(error.contains("docs/tokyo-tyrant-lua.md"), "{error}");
    }
    for script in ["_put('a', 1)", "_get('a')", "_foreach(print)", "_iterinit()", "_rnum()"] {
        let error = message(script).unwrap();
        assert!(error.contains("m.lua:2: the database can be used while"), "{script}: {error}");
    }
}

#[test]
fn limits_hold() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut bed = tyrant::with(
        "function endless() _put('a', 1) while true do end end
         function walker() _put('b', 1) _foreach(function() while true do end end) end
         function stubborn() while true do _foreach(endless) pcall(endless) end end
         function stash() _stashput('a', 1) while true do _stashforeach(endless) end end
         function fine() return _get('a') or 'none' end",
        limits,
    );
    for name in ["endless", "walker", "stubborn", "stash"] {
        let error = bed.call(name, &[]).unwrap_err();
        assert!(matches!(error, CallError::TimeLimit { .. }), "{name}: {error:?}");
    }
    assert_eq!(bed.call("fine", &[]).unwrap(), text("none"));
    let limits = Limits { time: Duration::from_secs(60), memory_bytes: 32 << 20, ..limits };
    let mut bed = tyrant::with(
        "function large() local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end end
         function fine() return 'here' end",
        limits,
    );
    let error = bed.call("large", &[]).unwrap_err();
    assert!(matches!(error, CallError::MemoryLimit { .. }), "{error:?}");
    assert_eq!(bed.call("fine", &[]).unwrap(), text("here"));
}

const RECORDS: &str = "
    is(_put('a', 'x'), true) is(_get('a'), 'x') is(_get('b'), nil) is(_vsiz('a'), 1) is(_vsiz('b'), -1)
    is(_put(1, 2.5), true) is(_get('1'), '2.5') is(_get(1), '2.5')
    is(_putkeep('a', 'y'), false) is(_putkeep('c', 'y'), true) is(_get('a') .. _get('c'), 'xy')
    is(_putcat('a', 'z'), true) is(_putcat('d', 'new'), true) is(_get('a') .. _get('d'), 'xznew')
    is(_out('c'), true) is(_out('c'), false)
    is(_rnum(), 3) assert(_size() > 0)
    for _, f in ipairs { _put, _putkeep, _putcat, _addint } do
      assert(raises(f, 'a'):find 'invalid arguments') assert(raises(f, 'a', {}):find 'invalid arguments')
    end
    for _, f in ipairs { _out, _get, _vsiz } do
      assert(raises(f):find 'invalid arguments') assert(raises(f, 'a', 'b'):find 'invalid arguments')
      assert(raises(f, nil):find 'invalid arguments')
    end
    is(_get(('k'):rep(5000)), nil) is(_put(('k'):rep(5000), 1), false) is(_vsiz(('k'):rep(5000)), -1)
    is(_addint('n', 5), 5) is(_get('n'), '\\5\\0\\0\\0') is(_addint('n', '-7'), -2) is(_get('n'), '\\254\\255\\255\\255')
    is(_addint('n', 0), -2) is(_addint('zero', 0), 0) is(_get('zero'), '\\0\\0\\0\\0') is(_addint('n', 1.9), -1)
    is(_addint('max', 2^31 - 1), 2^31 - 1) is(_addint('max', 1), -2^31) is(_addint('a', 1), nil)
    is(_adddouble('d1', 1.5), 1.5) is(_adddouble('d1', -2.25), -0.75) is(#_get('d1'), 8)
    is(_unpack('d', _get('d1')), { -0.75 }) is(_adddouble('n', 1), nil) is(_adddouble('d1', 0 / 0), nil)
    is(_adddouble('inf', 1 / 0), 1 / 0) is(_adddouble('inf', -1 / 0), nil)
    is(_vanish(), true) is(_rnum(), 0)";

#[test]
fn records_are_written_and_read() {
    run(RECORDS);
}

#[test]
fn a_cache_is_a_database_as_well() {
    run_on("hot", RECORDS);
    run_on(
        "hot",
        "_put('a', 1) _put('b', 2) is(_iterinit(), true)
         local keys = { _iternext(), _iternext() } table.sort(keys) is(keys, { 'a', 'b' }) is(_iternext(), nil)
         is(_fwmkeys('a'), { 'a' }) is(#_fwmkeys('', 1), 1)
         local sum = 0 is(_foreach(function(k, v) sum = sum + v return true end), true) is(sum, 3)",
    );
}

#[test]
fn a_constant_database_is_read() {
    run_on(
        "ports",
        "is(_get('ssh'), '22') is(_vsiz('http'), 2) is(_put('a', 1), false) is(_out('ssh'), false) is(_vanish(), false)
         is(_putkeep('a', 1), false) is(_putcat('ssh', 1), false) is(_addint('a', 1), nil) is(_rnum(), 2)
         is(_fwmkeys('s'), { 'ssh' }) is(_iterinit(), true) assert(_iternext())
         local sum = 0 _foreach(function(k, v) sum = sum + v return true end) is(sum, 102)",
    );
}

#[test]
fn keys_are_gone_through() {
    run("for _, k in ipairs { 'abc', 'abd', 'ab', 'b' } do _put(k, k .. '!') end
         is(_fwmkeys('ab'), { 'ab', 'abc', 'abd' }) is(_fwmkeys('ab', 2), { 'ab', 'abc' }) is(_fwmkeys('ab', '1'), { 'ab' })
         is(_fwmkeys('ab', -1), { 'ab', 'abc', 'abd' }) is(_fwmkeys('x'), {}) is(_fwmkeys('ab', 1.5), { 'ab' }) is(#_fwmkeys('', 0/0), 4) is(#_fwmkeys(''), 4) is(_fwmkeys('', 0), {})
         is(_iternext(), nil) is(_iterinit(), true) is(_iternext(), 'ab') _out('abc') is(_iternext(), 'abd')
         _put('a', 1) _put('az', 1) is(_iternext(), 'az') is(_iternext(), 'b') is(_iternext(), nil) is(_iternext(), nil)
         assert(raises(_iterinit, 1):find '_iterinit: invalid') assert(raises(_fwmkeys):find '_fwmkeys: invalid')");
}

#[test]
fn the_iterator_goes_on_in_the_next_call() {
    let mut bed = tyrant::of(
        "function fill() for i = 1, 3 do _put(i, i) end return _iterinit() end function step() return _iternext() end",
    );
    bed.call("fill", &[]).unwrap();
    for key in ["1", "2", "3"] {
        assert_eq!(bed.call("step", &[]).unwrap(), text(key));
    }
    assert_eq!(bed.call("step", &[]).unwrap(), Value::Nil);
}

#[test]
fn every_record_is_visited() {
    run("for i = 1, 200 do _put(('%03d'):format(i), i) end
         local sum, count = 0, 0
         is(_foreach(function(k, v) sum = sum + v return true end), true) is(sum, 20100)
         is(_foreach(function() count = count + 1 end), true) is(count, 1)
         is(_foreach(function() count = count + 1 return count < 5 end), true) is(count, 5)
         is(_foreach(function() count = count + 1 error 'no more tea' end), true) is(count, 6)
         is(_foreach(function(k, v) return _put(k, v * 2) and _out(k .. 'x') == false end), true) is(_get('200'), '400')
         assert(raises(_foreach):find '_foreach: invalid') assert(raises(_foreach, 'f'):find 'invalid')");
}

#[test]
fn words_are_counted_by_map_and_reduce() {
    run("_put('x', 'tea or tea') _put('y', 'or coffee')
         local counts, order = {}, {}
         local function map(k, v, emit) for _, w in ipairs(_split(v, ' ')) do is(emit(w, k), true) end return true end
         local function reduce(k, values) order[#order + 1], counts[k] = k, table.concat(values) return true end
         is(_mapreduce(map, reduce), true)
         is(counts, { tea = 'xx', ['or'] = 'xy', coffee = 'y' }) is(order, { 'coffee', 'or', 'tea' })
         counts = {} is(_mapreduce(map, reduce, 'y'), true) is(counts, { ['or'] = 'y', coffee = 'y' })
         counts = {} is(_mapreduce(map, reduce, { 'none', 'x', {} }), true) is(counts, { ['or'] = 'x', tea = 'xx' })
         is(_mapreduce(function(k, v, emit) emit(k, v) end, reduce), true)
         is(_mapreduce(function() return false end, reduce), false)
         is(_mapreduce(function() error 'no more tea' end, reduce), false)
         is(_mapreduce(map, function() end), false) is(_mapreduce(map, function() error 'oh' end), false)
         is(_mapreduce(function(k, v, emit) emit(k) end, reduce), false)
         assert(raises(_mapreduce, map):find '_mapreduce: invalid')");
}

#[test]
fn the_stash_is_shared_and_bounded() {
    run("is(_stashget('a'), nil) is(_stashput('a', 'x'), true) is(_stashget('a'), 'x') is(_stashput(1, 2), true)
         is(_stashputkeep('a', 'y'), true) is(_stashget('a'), 'x') is(_stashputkeep('k', 'y'), true)
         is(_stashputcat('a', 'y'), true) is(_stashputcat('c', ''), true) is(_stashget('a'), 'xy') is(_stashget('c'), '')
         local seen = {} is(_stashforeach(function(k, v) seen[#seen + 1] = k .. v return true end), nil)
         is(seen, { '12', 'axy', 'c', 'ky' })
         _stashforeach(function(k, v) seen = k end) is(seen, '1')
         _stashforeach(function(k, v) seen = k error 'no more tea' end) is(seen, '1')
         is(_stashout('a'), true) is(_stashout('a'), false)
         _stashforeach(function(k) return _stashout(k) end) is(_stashget('k'), nil)
         _stashput('a', 1) is(select('#', _stashvanish()), 0) is(_stashget('a'), nil)
         assert(raises(_stashput, 'a', ('x'):rep(5000)):find 'the stash has 4096 bytes at most')
         for i = 1, 1000 do if not pcall(_stashput, i, 'x') then seen = i break end end assert(seen < 70)
         _stashvanish() is(_stashput('a', ('x'):rep(4000)), true)
         for _, f in ipairs { _stashput, _stashputkeep, _stashputcat, _stashout, _stashget, _stashforeach } do
           assert(raises(f):find 'invalid arguments')
         end");
}

#[test]
fn the_stash_is_no_part_of_the_transaction() {
    let mut bed = tyrant::of(
        "function keep(key, value) _stashput(key, value) error 'no more tea' end
         function look(key) return _stashget(key) end",
    );
    assert!(bed.call("keep", &["a", "1"].map(text)).is_err());
    assert_eq!(bed.call("look", &[text("a")]).unwrap(), text("1"));
}

#[test]
fn locks_are_held_until_they_are_freed() {
    run("is(_lock('a'), true) is(_lock('a'), false) is(_lock('b'), true) is(_unlock('a'), true)
         is(_unlock('a'), false) is(_lock('a'), true) assert(raises(_lock):find '_lock: invalid')");
}

#[test]
fn collections_are_passed_over_and_are_no_values() {
    let mut bed = tyrant::of(
        "function f()
           local seen = {}
           assert(_foreach(function(k) seen[#seen + 1] = k return true end))
           seen[#seen + 1] = table.concat(_fwmkeys(''))
           assert(_get('h') == nil and _vsiz('h') == -1 and _addint('h', 1) == nil and not _putcat('h', 1))
           assert(not _putkeep('h', 1) and _rnum() == 3 and _put('h', 1) and _get('h') == '1')
           return table.concat(seen, ' ')
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
    assert_eq!(bed.call("f", &[]).unwrap(), text("a z ahz"));
}

#[test]
fn flags_and_expiry_stay_where_something_is_added() {
    let mut bed = tyrant::of(
        "function add() return _addint('n', 1) end function both() return _adddouble('d', 1) and _putcat('c', 1) end",
    );
    let mut writer = bed.store.writer().unwrap();
    let main = bed.store.database("main").unwrap();
    let at = Some(1 << 50);
    transact::<_, WriteError>(&mut *writer, |tx| {
        for (key, value) in [("n", &[1, 0, 0, 0][..]), ("d", &[0; 8]), ("c", b"x")] {
            tx.put(
                main,
                key.as_bytes(),
                NewRecord { flags: 7, expires_at_ms: at, ..NewRecord::of(value) },
            )?;
        }
        Ok(())
    })
    .unwrap();
    drop(writer);
    assert_eq!(bed.call("add", &[]).unwrap(), text("2"));
    assert_eq!(bed.call("both", &[]).unwrap(), text("true"));
    let mut snapshot = bed.store.snapshot().unwrap();
    for key in ["n", "d", "c"] {
        let record = snapshot.get(main, key.as_bytes()).unwrap().unwrap();
        assert_eq!((record.flags, record.expires_at_ms), (7, at), "{key}");
    }
}

#[test]
fn misc_needs_a_server() {
    run(
        "assert(raises(_misc, 'get', 'a'):find '_misc needs a server') assert(raises(_misc):find '_misc: invalid')",
    );
}

/// Other threads write to a cache while a script adds to its values.
#[test]
fn sums_in_a_cache_lose_nothing() {
    let script = "function add() for i = 1, 20000 do _addint('n', 1) _adddouble('d', 1) end end";
    let mut bed = tyrant::over_database("hot", script, Limits::default());
    let (store, is_done) = (bed.store.clone(), AtomicBool::new(false));
    let hot = store.database("hot").unwrap();
    let added = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut added = 0_i32;
            while !is_done.load(Ordering::Relaxed) {
                let done = transact_in_place::<_, WriteError>(&*store, hot, |tx| {
                    let number = |value: Option<Vec<u8>>| {
                        value.map_or(0, |value| i32::from_le_bytes(value.try_into().unwrap()))
                    };
                    let old = number(tx.get(hot, b"n")?.map(|record| record.value.to_vec()));
                    tx.put(hot, b"n", NewRecord::of(&(old + 1).to_le_bytes()))
                });
                added += i32::from(done.is_ok());
            }
            added
        });
        bed.call("add", &[]).unwrap();
        is_done.store(true, Ordering::Relaxed);
        other.join().unwrap()
    });
    let mut snapshot = bed.store.snapshot().unwrap();
    let sum = snapshot.get(hot, b"n").unwrap().unwrap().value.to_vec();
    assert_eq!(i32::from_le_bytes(sum.try_into().unwrap()), 20_000 + added);
}
