//! Shows that database calls in a loop become machine code: a loop over each hot call must end in a
//! looping trace, with no abort and no exit to the interpreter on the way.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mlua::{Function, Table};
use tokaido_collections::{End, Hash, List, Packing, Set, SortedSet, Stream, StreamId};
use tokaido_store::{
    Store, cache, cdb,
    composite::{CompositeStore, Mount, MountEngine},
    transact, tree,
};

use crate::{
    CommandError, CommandReply, Dialect, Host, Limits, Runtime as _, Scope, Settings, Source,
    Sources, Transaction, Value, Vm,
};

#[path = "../tests/support/store.rs"]
#[allow(dead_code, unreachable_pub)]
pub(crate) mod store;

/// Enough for the loop to get hot (56), and for side traces to show up (10 exits each).
pub(crate) const ITERATIONS: i64 = 4000;

/// Enough for a scan to get hot more than once: a trace that is aborted because another loop has to
/// be traced first is retried later.
const RECORDS: usize = 1000;

/// As many as there are records, and more than are packed into one record.
const ELEMENTS: usize = 1000;

/// The end of an event in which the compiler reached an inner loop that has no trace yet. That loop
/// gets one, and then the outer loop is retried. Which of them gets hot first is chance.
const INNER_LOOP_FIRST: &str = ": 9 nil";

/// The end of an event in which a loop ended just as it got hot. It will get hot again.
const LOOP_ENDED: &str = ": 8 nil";

/// An inner loop without a trace of its own ran more often than a trace unrolls it. It gets a trace, and
/// the outer loop is retried.
const INNER_LOOP_UNROLLED: &str = ": 10 nil";

/// Records what the compiler does. Gets `jit` and `jit.util`, which user code never sees.
const OBSERVER: &str = r#"
    local jit, util = ...
    local events, starts = {}, {}

    local function place(func, pc)
      local info = util.funcinfo(func, pc)
      return info.loc or "a built-in function"
    end

    jit.attach(function(what, trace, func, pc, code, reason)
      if what == "start" then
        starts[trace] = place(func, pc) .. (code and " side of " .. code or "")
      elseif what == "stop" then
        events[#events + 1] = starts[trace] .. ": " .. util.traceinfo(trace).linktype
      elseif what == "abort" then
        events[#events + 1] = (starts[trace] or "?") .. ": abort at " .. place(func, pc) .. ": "
          .. tostring(code) .. " " .. tostring(reason)
      end
    end, "trace")
    return events
"#;

/// A store on disk with a cache `hot` and a file `ports` beside it.
pub(crate) fn composite(directory: &Path) -> Arc<dyn Store> {
    let path = directory.join("ports.cdb");
    let mut writer = cdb::Writer::create(&path, &cdb::Options::default()).unwrap();
    for i in 0..RECORDS {
        writer.put(format!("k{i:02}").as_bytes(), b"7").unwrap();
    }
    writer.finish().unwrap();
    let options = cache::Options { bytes_max: 1 << 20, ..cache::Options::default() };
    let mounts = [("hot", MountEngine::Cache(options)), ("ports", MountEngine::Cdb(path))];
    let mounts = mounts.map(|(name, engine)| Mount { name: name.to_owned(), engine });
    let options = tree::Options { size_max: 1 << 28, ..tree::Options::default() };
    let tree = Box::new(tree::open(&directory.join("tree"), options).unwrap());
    Arc::new(CompositeStore::new(tree, mounts.into()).unwrap())
}

/// A host whose commands reply with their first argument, as an integer if it is one.
struct First;

impl Host for First {
    fn command(
        &mut self,
        _transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        let integer = std::str::from_utf8(arguments[1]).unwrap().parse();
        Ok(integer.map_or_else(|_| Value::String(arguments[1].to_vec()), Value::Integer).into())
    }
}

/// Runs `body`, the body of a write procedure over `db`, the database of that name, and `n`.
/// Gives the compiler's events.
fn observe(database: &str, body: &str) -> Vec<String> {
    let text = format!(
        "local tokaido = require 'tokaido'\nreturn {{ f = tokaido.write(function(tx, n) local db = tx.{database}\n{body}\nend) }}"
    );
    observe_file(&Dialect::NATIVE, &text, "m.f", &[Value::Integer(ITERATIONS)])
}

/// The same for a procedure in a file.
fn observe_file(
    dialect: &'static Dialect,
    text: &str,
    name: &str,
    arguments: &[Value],
) -> Vec<String> {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let store = composite(directory.path());
    let mut sources = Sources::default();
    let path = PathBuf::from("m.lua");
    sources.add(Source {
        module: "m".to_owned(),
        path,
        text: text.as_bytes().into(),
        dialect: None,
        settings: Vec::new(),
    });
    let settings = Settings {
        kyoto_databases: ["main", "hot", "ports"].map(str::to_owned).to_vec(),
        ..Settings::default()
    };
    let (mut vm, errors) =
        Vm::start(dialect, Ok(Arc::clone(&store)), &sources, Limits::default(), settings.into())
            .unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let procedure = vm.find(name.as_bytes()).unwrap();

    let mut writer = store.writer().unwrap();
    for name in ["main", "hot"] {
        let database = store.database(name).unwrap();
        transact::<_, tokaido_store::WriteError>(&mut *writer, |tx| {
            for i in 0..RECORDS {
                let record = tokaido_store::NewRecord::of(b"7");
                tx.put(database, format!("k{i:02}").as_bytes(), record)?;
            }
            Ok(())
        })
        .unwrap();
    }
    let kinds = store.database("kinds").unwrap();
    transact::<_, tokaido_store::WriteError>(&mut *writer, |tx| {
        let names: Vec<String> = (0..ELEMENTS).map(|i| i.to_string()).collect();
        let names = || names.iter().map(|name| name.as_bytes());
        let packing = Packing::default();
        Hash::new(kinds, b"fields").set(tx, packing, names().zip(names()))?;
        Set::new(kinds, b"members").add(tx, packing, names())?;
        List::new(kinds, b"items").push(tx, packing, End::Back, names())?;
        let (stream, fields) = (Stream::new(kinds, b"entries"), [&b"field"[..], b"value"]);
        let mut state = stream.open(tx)?;
        for ms in 1..=ELEMENTS as u64 {
            stream.append(tx, &mut state, StreamId { ms, seq: 0 }, fields.into_iter())?;
        }
        let scores = names().zip((0..).map(f64::from));
        SortedSet::new(kinds, b"board").update(tx, packing, scores, |_, score| Some(score))
    })
    .unwrap();
    let events = observe_vm(&mut vm);
    let transaction = Transaction::Write(writer.begin().unwrap());
    let scope = Scope { transaction, host: Some(&mut First) };
    vm.call(procedure, scope, arguments).unwrap();
    writer.rollback().unwrap();
    events.sequence_values::<String>().map(Result::unwrap).collect()
}

/// The list in which the compiler's events of a VM are recorded from here on.
pub(crate) fn observe_vm(vm: &mut Vm) -> Table {
    let lua = vm.state_for_tests().lua();
    let registry = |name: &str| lua.named_registry_value::<Table>(name).unwrap();
    let jit: Table = registry("_LOADED").get("jit").unwrap();
    let util: Function = registry("_PRELOAD").get("jit.util").unwrap();
    let util: Table = util.call(()).unwrap();
    lua.load(OBSERVER).call((jit, util)).unwrap()
}

/// The body has its loop at line 3. What the prelude's own functions compile to does not matter, as
/// long as the loop over them stays on its trace and the exits from it rejoin it.
#[track_caller]
fn assert_compiles(database: &str, body: &str) {
    assert_on_trace(&observe(database, body), body);
}

/// The same in Kyoto Tycoon's dialect.
#[track_caller]
fn assert_kyoto_compiles(database: &str, body: &str) {
    let text = format!(
        "-- dialect: kyototycoon\nfunction f() local kt = __kyototycoon__ local db, n = kt.dbs.{database}, {ITERATIONS}\n{body}\nend"
    );
    assert_on_trace(&observe_file(&Dialect::KYOTO_TYCOON, &text, "f", &[]), body);
}

#[track_caller]
pub(crate) fn assert_on_trace(events: &[String], body: &str) {
    let shown = events.join("\n");
    assert!(events.iter().any(|event| event == "m.lua:3: loop"), "no loop trace:\n{body}\n{shown}");
    let of_loop = events.iter().filter(|event| event.starts_with("m.lua:"));
    for event in of_loop.filter(|event| !event.ends_with(INNER_LOOP_FIRST)) {
        let on_trace = event.ends_with(": loop") || event.ends_with(": root");
        assert!(on_trace, "{event} leaves the trace:\n{body}\n{shown}");
    }
}

macro_rules! compiles {
    ($database:literal; $($name:ident: $body:expr;)*) => {
        compiles! { assert_compiles, $database; $($name: $body;)* }
    };
    ($assert:ident, $database:literal; $($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            $assert($database, $body);
        }
    )*};
}

compiles! {
    "main";
    get_compiles: "for i = 1, n do db:get('k01') end";
    get_of_absent_compiles: "for i = 1, n do db:get('absent') end";
    get_through_tx_compiles: "for i = 1, n do tx.main:get('k01') end";
    get_with_a_number_key_compiles: "for i = 1, n do db:get(i) end";
    get_with_changing_key_compiles: "for i = 1, n do db:get(tostring(i)) end";
    exists_compiles: "for i = 1, n do db:exists('k01') end";
    record_compiles: "for i = 1, n do db:record('k01') end";
    put_compiles: "for i = 1, n do db:put('k01', 'v') end";
    put_of_numbers_compiles: "for i = 1, n do db:put(i, i) end";
    add_compiles: "for i = 1, n do db:add(tostring(i), 'v') end";
    replace_compiles: "for i = 1, n do db:replace('k01', 'v') end";
    compare_and_set_compiles: "for i = 1, n do db:compare_and_set('k01', '7', '7') end";
    delete_compiles: "for i = 1, n do db:delete(tostring(i)) end";
    increment_compiles: "for i = 1, n do db:increment('k01') end";
    increment_by_compiles: "for i = 1, n do db:increment('k01', 5) end";
    increment_beyond_doubles_compiles:
        "db:put('w', '9007199254740993') for i = 1, n do db:increment('w') end";
    increment_float_compiles: "for i = 1, n do db:increment_float('k01', 0.5) end";
    append_compiles: "for i = 1, n do db:append('k01', 'x') end";
    expire_compiles: "for i = 1, n do db:expire('k01', 60000) end";
    ttl_compiles: "for i = 1, n do db:ttl('k01') end";
    count_compiles: "for i = 1, n do db:count() end";
    set_get_remove_compiles:
        "for i = 1, n do local k = tostring(i) db:put(k, k) db:get(k) db:delete(k) end";
    scan_forward_compiles: "for k, v in db:scan{from = 'k00'} do end";
    scan_prefix_compiles: "for k, v in db:scan('k') do end";
    scan_backward_compiles: "for k, v in db:scan{reverse = true} do end";
    scan_with_limit_compiles: "for k, v in db:scan{limit = 999} do end";
    keys_compile: "for k in db:keys() do end";
    get_many_compiles: "for i = 1, n do db:get_many{'k01', 'k02'} end";
    get_all_compiles: "for i = 1, n do db:get_all('k01') end";
    a_key_by_format_compiles: "for i = 1, n do db:get(string.format('k%02d', i % 100)) end";
    a_key_by_format_of_many_compiles:
        "for i = 1, n do db:get(('%s:%s:%d:%02d'):format('a', 'b', 5, i)) end";
    a_list_of_values_compiles: "local t = {} for i = 1, n do table.insert(t, db:get('k01')) end";
    command_compiles: "for i = 1, n do tx:command('GET', 'k01') end";
    command_with_numbers_compiles: "for i = 1, n do tx:command('INCRBY', i, 5) end";
}

compiles! {
    "kinds";
    hash_get_compiles: "local h = db:hash('h') h:set('f', 1) for i = 1, n do h:get('f') end";
    hash_of_a_handle_in_the_loop_compiles: "for i = 1, n do db:hash('h'):get('f') end";
    hash_set_compiles: "local h = db:hash('h') for i = 1, n do h:set(i % 50, i) end";
    hash_has_add_and_delete_compile:
        "local h = db:hash('h') for i = 1, n do if not h:has('f') then h:add('f', 1) else h:delete('f') end end";
    hash_increment_compiles: "local h = db:hash('h') for i = 1, n do h:increment('f') h:increment_float('g', 0.5) end";
    hash_count_compiles: "local h = db:hash('h') for i = 1, n do h:count() end";
    hash_scan_compiles: "local h = db:hash('fields') for f, v in h:scan() do h:get(f) end";
    set_scan_compiles: "local s = db:set('members') for m in s:scan() do s:has(m) end";
    list_scan_compiles: "for i, item in db:list('items'):scan() do end";
    list_scan_backward_compiles: "for i, item in db:list('items'):scan{reverse = true} do end";
    sorted_set_scan_compiles: "local z = db:sorted_set('board') for m, s in z:scan{from = 7} do z:rank(m) end";
    sorted_set_scan_of_members_compiles: "for m, s in db:sorted_set('board'):scan_members() do end";
    list_push_and_pop_compile:
        "local l = db:list('l') for i = 1, n do l:push_right(i) l:push_left('x') l:pop_right() end";
    list_get_and_set_compile:
        "local l = db:list('l') l:push_left('a') for i = 1, n do l:set(1, i) l:get(-1) l:count() end";
    set_compiles: "local s = db:set('s') for i = 1, n do s:add(i % 50) s:has('7') s:remove(i % 30) s:count() end";
    set_pop_and_random_compile: "local s = db:set('s') for i = 1, n do s:add(i) s:random() s:pop() end";
    sorted_set_writes_compile:
        "local z = db:sorted_set('z') for i = 1, n do z:add(i % 50, i) z:increment('m', 2) z:remove(i % 30) end";
    sorted_set_reads_compile:
        "local z = db:sorted_set('z') z:add('m', 1) for i = 1, n do z:score('m') z:rank('m', true) z:count() end";
    stream_scan_compiles: "for id, fields in db:stream('entries'):scan() do end";
    stream_scan_backward_compiles: "for id, fields in db:stream('entries'):scan{reverse = true, limit = 900} do end";
    stream_reads_compile:
        "local s = db:stream('s') s:add({n = 1}, {id = '5-1'}) for i = 1, n do s:get('5-1') s:count() s:last_id() end";
    sorted_set_pop_compiles: "local z = db:sorted_set('z') for i = 1, n do z:add(i, i) z:pop_min() end";
}

compiles! {
    "hot";
    cache_get_compiles: "for i = 1, n do db:get('k01') end";
    cache_get_of_absent_compiles: "for i = 1, n do db:get('absent') end";
    cache_get_through_tx_compiles: "for i = 1, n do tx.hot:get('k01') end";
    cache_get_with_changing_key_compiles: "for i = 1, n do db:get(tostring(i)) end";
    cache_exists_compiles: "for i = 1, n do db:exists('k01') end";
    cache_record_compiles: "for i = 1, n do db:record('k01') end";
    cache_put_compiles: "for i = 1, n do db:put('k01', 'v') end";
    cache_put_of_numbers_compiles: "for i = 1, n do db:put(i, i) end";
    cache_add_compiles: "for i = 1, n do db:add(tostring(i), 'v') end";
    cache_replace_compiles: "for i = 1, n do db:replace('k01', 'v') end";
    cache_compare_and_set_compiles: "for i = 1, n do db:compare_and_set('k01', '7', '7') end";
    cache_delete_compiles: "for i = 1, n do db:delete(tostring(i)) end";
    cache_increment_compiles: "for i = 1, n do db:increment('k01') end";
    cache_increment_float_compiles: "for i = 1, n do db:increment_float('k01', 0.5) end";
    cache_append_compiles: "for i = 1, n do db:append('k01', 'x') end";
    cache_expire_compiles: "for i = 1, n do db:expire('k01', 60000) end";
    cache_ttl_compiles: "for i = 1, n do db:ttl('k01') end";
    cache_get_many_compiles: "for i = 1, n do db:get_many{'k01', 'k02'} end";
    cache_scan_compiles: "for k, v in db:scan() do end";
    cache_scan_of_a_range_compiles: "for k, v in db:scan{prefix = 'k', limit = 999} do end";
    cache_keys_compile: "for k in db:keys() do end";
    a_tree_and_a_cache_in_one_loop_compile:
        "local t = tx.main for i = 1, n do if not db:get('a') then db:put('a', t:get('k01')) end end";
}

compiles! {
    "ports";
    cdb_get_compiles: "for i = 1, n do db:get('k01') end";
    cdb_get_all_compiles: "for i = 1, n do db:get_all('k01') end";
    cdb_scan_compiles: "for k, v in db:scan() do end";
}

compiles! {
    assert_kyoto_compiles, "main";
    kyoto_set_get_remove_compiles:
        "for i = 1, n do local k = tostring(i) db:set(k, k) db:get(k) db:remove(k) end";
    kyoto_set_of_numbers_compiles: "for i = 1, n do db:set(i, i) end";
    kyoto_set_with_xt_compiles: "for i = 1, n do db:set('k01', 'v', 60) end";
    kyoto_get_compiles: "for i = 1, n do local v, xt = db:get('k01') end";
    kyoto_get_of_absent_compiles: "for i = 1, n do db:get('absent') end";
    kyoto_add_compiles: "for i = 1, n do db:add(i % 500, 'v') end";
    kyoto_replace_compiles: "for i = 1, n do db:replace('k01', 'v') end";
    kyoto_append_compiles: "for i = 1, n do db:append('k01', 'x') end";
    kyoto_check_compiles: "for i = 1, n do db:check('k01') end";
    kyoto_cas_compiles: "for i = 1, n do db:cas('k01', '7', '7') end";
    kyoto_seize_compiles: "for i = 1, n do db:set('s', 'v') db:seize('s') end";
    kyoto_increment_compiles: "for i = 1, n do db:increment('n', 1) end";
    kyoto_increment_double_compiles: "for i = 1, n do db:increment_double('d', 0.5) end";
    kyoto_field_compiles: "for i = 1, n do local v = db['k' .. i % 100] db['x' .. i % 100] = i end";
    kyoto_cursor_compiles: "local c = db:cursor() c:jump() while c:get(true) do end";
    kyoto_cursor_back_compiles:
        "local c = db:cursor() c:jump_back() while c:get() do c:step_back() end";
    kyoto_cursor_with_writes_compiles:
        "local c = db:cursor() c:jump() for i = 1, n do if not c:get(true) then c:jump() end db:set('k01', i) end";
    kyoto_pairs_compiles: "for k, v in db:pairs() do end";
}

compiles! {
    assert_kyoto_compiles, "hot";
    kyoto_cache_set_get_remove_compiles:
        "for i = 1, n do local k = tostring(i) db:set(k, k) db:get(k) db:remove(k) end";
    kyoto_cache_increment_compiles: "for i = 1, n do db:increment('n', 1) end";
}

/// An inner loop has a trace of its own. Whatever comes between two runs of it is a side trace, from its
/// exit back to its start. So nothing may be aborted, here or in the prelude.
#[track_caller]
fn assert_stays_on_traces(body: &str) -> Vec<String> {
    let events = observe("kinds", body);
    let shown = events.join("\n");
    assert!(events.iter().any(|event| event.ends_with(": loop")), "no loop trace:\n{shown}");
    for event in &events {
        let ends = [INNER_LOOP_FIRST, LOOP_ENDED, INNER_LOOP_UNROLLED];
        let is_tried_again = ends.iter().any(|end| event.ends_with(end));
        assert!(is_tried_again || !event.contains(": abort at "), "{event}:\n{shown}");
        assert!(!event.ends_with(": stitch"), "{event} calls what cannot be compiled:\n{shown}");
        // If a function of the prelude got a trace of its own, how that ends does not matter.
        let on_trace = event.ends_with(": loop") || event.ends_with(": root");
        let is_of_loop = event.starts_with("m.lua:");
        assert!(is_tried_again || !is_of_loop || on_trace, "{event} leaves the trace:\n{shown}");
    }
    // The side trace of an inner loop may be the only trace of the outer one.
    let is_around = |event: &str| event.contains(" side of ") && event.ends_with(": root");
    let is_of_loop = |event: &String| event.starts_with("m.lua:") || is_around(event);
    assert!(events.iter().any(is_of_loop), "none of the loop:\n{shown}");
    events
}

#[test]
fn the_top_ten_of_a_leaderboard_and_a_rank_stay_on_traces() {
    let events = assert_stays_on_traces(
        "local z, sum = db:sorted_set('board'), 0 for i = 1, n do
           for member, score in z:scan { reverse = true, limit = 10 } do sum = sum + score end
           sum = sum + z:rank('7', true) + z:score('9')
         end",
    );
    assert!(events.iter().any(|event| event == "m.lua:4: loop"), "no loop trace:\n{events:?}");
}

#[test]
fn entries_that_are_added_and_deleted_stay_on_traces() {
    assert_stays_on_traces(
        "local s = db:stream('s') for i = 1, n do
           local id = s:add { n = i, s = 'x' }
           if i % 2 == 0 then s:delete(id) end
         end",
    );
}

#[test]
fn entries_that_a_group_delivers_stay_on_traces() {
    assert_stays_on_traces(
        "local s = db:stream('s') local g = s:group('g') g:create()
         for i = 1, math.min(n, 500) do
           local id = s:add { n = i }
           g:read('a', 2) g:claim('b', id, 0) g:acknowledge(id)
         end",
    );
}
