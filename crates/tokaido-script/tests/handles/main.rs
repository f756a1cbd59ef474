//! Handles of hashes, lists, sets, sorted sets and streams in procedures, over an on-disk store.

#[path = "../support/mod.rs"]
mod support;

mod streams;

use std::sync::Arc;

use support::{limits, sources, text, write_body};
use tempfile::TempDir;
use tokaido_script::{CallError, Limits, Mode, Runtime as _, Transaction, Value, Vm};
use tokaido_store::{Store, tree};

/// An on-disk store, and one file of procedures.
struct Bed {
    store: Arc<dyn Store>,
    vm: Vm,
    _directory: TempDir,
}

impl Bed {
    fn with_limits(lua: &str, limits: Limits) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let options = tree::Options { size_max: 1 << 30, ..tree::Options::default() };
        let store: Arc<dyn Store> = Arc::new(tree::open(directory.path(), options).unwrap());
        let (vm, errors) = Vm::new(&store, &sources(&[("m", lua)]), limits).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { store, vm, _directory: directory }
    }

    fn one(lua: &str) -> Self {
        Self::with_limits(lua, Limits::default())
    }

    /// A write procedure `m.f` with this body.
    fn body(body: &str) -> Self {
        Self::one(&write_body(body))
    }

    /// Calls a procedure in its mode, and commits if it succeeds.
    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, CallError> {
        let id = self.vm.find(name.as_bytes()).unwrap();
        if self.vm.procedures().iter().find(|p| p.name == name).unwrap().mode == Mode::Read {
            let mut snapshot = self.store.snapshot().unwrap();
            return self.vm.call(id, Transaction::Read(&mut *snapshot).into(), arguments);
        }
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let result = self.vm.call(id, transaction.into(), arguments);
        match &result {
            Ok(_) => drop(writer.commit().unwrap()),
            Err(_) => writer.rollback().unwrap(),
        }
        writer.flush().unwrap();
        result
    }

    fn run(&mut self) -> Result<Value, CallError> {
        self.call("m.f", &[])
    }
}

/// Runs a body whose assertions must hold.
#[track_caller]
fn holds(body: &str) {
    if let Err(error) = Bed::body(body).run() {
        panic!("{error}");
    }
}

/// The error of a body, which names its line.
#[track_caller]
fn raised(body: &str) -> String {
    let error = Bed::body(body).run().unwrap_err().to_string();
    assert!(error.starts_with("m.lua:2: "), "{error}");
    error
}

/// A name too long for any packed collection, to get the large form.
const LONG: &str = "local long = ('x'):rep(100) ";

#[test]
fn a_hash_has_fields() {
    for begin in ["local long = 'x'", LONG] {
        holds(&format!(
            "{begin}
             local h = tx.main:hash('h')
             assert(h:count() == 0 and h:get('a') == nil and not h:has('a') and h:random() == nil)
             assert(not h:delete('a') and next(h:all()) == nil and not tx.main:exists('h'))
             assert(h:set('a', 1) and not h:set('a', 2) and h:set(long, long))
             assert(h:get('a') == '2' and h:get(long) == long and h:has('a') and h:count() == 2)
             assert(not h:add('a', 3) and h:add('b', 3) and h:get('b') == '3')
             assert(h:increment('a') == 3 and h:increment('n', -5) == -5 and h:get('n') == '-5')
             h:set('w', '9007199254740992')
             assert(h:increment('w', 2) == 9007199254740994LL)
             assert(h:increment_float('n', 0.5) == -4.5 and h:get('n') == '-4.5')
             local many = h:get_many {{'a', 'none', 7, 'b'}}
             assert(many.a == '3' and many.none == nil and many[7] == nil and many.b == '3')
             local all, count = h:all(), 0
             for field, value in pairs(all) do count = count + 1 end
             assert(count == 5 and all.a == '3' and all[long] == long)
             local field, value = h:random()
             assert(all[field] == value)
             assert(h:set(7, 8) and h:get(7) == '8')
             for field in h:scan() do assert(h:delete(field)) end
             assert(h:count() == 0 and not tx.main:exists('h'))
             assert(tostring(h) == 'hash h')"
        ));
    }
}

#[test]
fn a_list_has_positions() {
    for begin in ["local long = 'x'", LONG] {
        holds(&format!(
            "{begin}
             local l = tx.main:list('l')
             local function shown() return table.concat(l:range(1, -1), ' ') end
             assert(l:count() == 0 and l:get(1) == nil and l:pop_left() == nil and l:find('a') == nil)
             assert(not l:set(1, 'a') and l:insert(2, 'a') == nil and l:remove(-1) == nil)
             assert(l:push_right('b') == 1 and l:push_left('a') == 2 and l:push_right(long) == 3)
             assert(l:get(1) == 'a' and l:get(-1) == long and l:get(0) == nil and l:get(4) == nil)
             assert(l:set(-1, 'c') and not l:set(4, 'd') and shown() == 'a b c')
             assert(l:insert(1, '0') == 4 and l:insert(5, 'd') == 5 and l:insert(-1, long) == 6)
             assert(l:find(long) == 5 and l:remove(5) == long and shown() == '0 a b c d')
             assert(table.concat(l:range(2, 3)) == 'ab' and table.concat(l:range(-2, 9)) == 'cd')
             assert(#l:range(6, 9) == 0 and #l:range(3, 2) == 0 and #l:range(1, -9) == 0)
             assert(table.concat(l:range(-9, 1)) == '0' and table.concat(l:range(0, 2)) == '0a')
             local seen = {{}}
             for i, item in l:scan {{ reverse = true, last = -2 }} do seen[#seen + 1] = i .. item end
             assert(table.concat(seen, ' ') == '4c 3b 2a 10')
             assert(l:pop_left() == '0' and l:pop_right() == 'd' and shown() == 'a b c')
             l:trim(2, -1)
             assert(shown() == 'b c')
             l:trim(5, 6)
             assert(l:count() == 0 and not tx.main:exists('l'))"
        ));
    }
}

#[test]
fn a_set_has_members() {
    for begin in ["local long = 'x'", LONG] {
        holds(&format!(
            "{begin}
             local s, t = tx.main:set('s'), tx.other:set('t')
             local function shown(members) table.sort(members) return table.concat(members, ' ') end
             assert(s:count() == 0 and not s:has('a') and s:pop() == nil and s:random() == nil)
             assert(s:add('a') and not s:add('a') and s:add('b') and s:add(long) and s:count() == 3)
             assert(s:has('a') and s:has(long) and not s:has('c') and not s:remove('c'))
             assert(shown(s:all()) == 'a b ' .. long)
             t:add('b') t:add('c')
             assert(shown(s:union(t)) == 'a b c ' .. long and shown(s:intersection(t)) == 'b')
             assert(shown(s:difference(t)) == 'a ' .. long and shown(t:difference(s)) == 'c')
             assert(shown(s:union()) == shown(s:all()) and #s:intersection(tx.main:set('none')) == 0)
             assert(s:replace(s:union(t)) == 4 and s:has('c') and s:replace {{}} == 0)
             assert(not tx.main:exists('s') and t:has(t:random()))
             local popped = t:pop()
             assert(not t:has(popped) and t:count() == 1 and t:remove(t:random()))
             assert(t:count() == 0)"
        ));
    }
}

#[test]
fn a_sorted_set_has_ranks_and_scores() {
    for begin in ["local long = 'x'", LONG] {
        holds(&format!(
            "{begin}
             local z = tx.main:sorted_set('z')
             local function shown(range)
               local seen = {{}}
               for member, score in z:scan(range) do seen[#seen + 1] = member:sub(1, 1) .. score end
               return table.concat(seen, ' ')
             end
             assert(z:count() == 0 and z:score('a') == nil and z:rank('a') == nil and shown() == '')
             assert(z:pop_min() == nil and z:pop_max() == nil and z:random() == nil)
             assert(z:add('a', 1) and not z:add('a', 3) and z:add('b', 1) and z:add(long, 5))
             assert(z:increment('c', 2) == 2 and z:increment('c') == 3 and z:increment('n', 0.5) == 0.5)
             assert(z:score('a') == 3 and z:has(long) and not z:has('none') and z:count() == 5)
             local rank, score = z:rank('a')
             assert(rank == 3 and score == 3 and z:rank('a', true) == 3 and z:rank(long, true) == 1)
             assert(shown() == 'n0.5 b1 a3 c3 x5')
             assert(shown {{ reverse = true, limit = 2 }} == 'x5 c3')
             assert(shown {{ from = 1, to = 3 }} == 'b1 a3 c3' and shown {{ after = 1, before = 5 }} == 'a3 c3')
             assert(shown {{ from = 1, first = 2, last = 3 }} == 'a3 c3')
             assert(shown {{ first = 2, last = -2 }} == 'b1 a3 c3' and shown {{ first = -2 }} == 'c3 x5')
             assert(shown {{ first = 2, last = 3, reverse = true }} == 'c3 a3')
             assert(shown {{ first = 3, last = 2 }} == '' and shown {{ from = 4, to = 2 }} == '')
             assert(shown {{ from = 1, after = 1 }} == 'a3 c3 x5' and shown {{ to = 3, before = 3 }} == 'n0.5 b1')
             assert(z:count {{ from = 3 }} == 3 and z:count {{ before = 3 }} == 2 and z:count {{ limit = 4 }} == 4)
             assert(z:remove_range {{ from = 3, to = 3 }} == 2 and z:remove_range {{ last = 1 }} == 1)
             assert(shown() == 'b1 x5' and z:remove_range {{ reverse = true, limit = 1 }} == 1)
             assert(z:remove('b') and not z:remove('b') and not tx.main:exists('z'))
             z:add('low', -math.huge) z:add('high', math.huge)
             local member, score = z:pop_max()
             assert(member == 'high' and score == math.huge and z:pop_min() == 'low')"
        ));
    }
}

#[test]
fn members_of_one_score_are_found_by_their_bytes() {
    holds(
        "local z = tx.main:sorted_set('z')
         for i = 1, 300 do z:add(('%03d'):format(i), 0) end
         local function shown(range)
           local seen = {}
           for member in z:scan_members(range) do seen[#seen + 1] = member end
           return table.concat(seen, ' ')
         end
         assert(#shown() == 300 * 4 - 1)
         assert(shown { from = '010', to = '012' } == '010 011 012')
         assert(shown { after = '010', before = '012' } == '011')
         assert(shown { prefix = '29', reverse = true, limit = 3 } == '299 298 297')
         assert(shown '30' == '300' and shown { reverse = true, limit = 1 } == '300')
         -- With other scores it is told nothing, as of Redis, but it ends.
         for i = 1, 300 do z:add(('%03d'):format(i), i) end
         assert(#shown() <= 300 * 4)",
    );
}

#[test]
fn loops_are_long_and_may_write() {
    holds(
        "local h, l, s, z = tx.main:hash('h'), tx.main:list('l'), tx.main:set('s'), tx.main:sorted_set('z')
         local n = 2000
         for i = 1, n do h:set(i, i) l:push_right(i) s:add(i) z:add(i, i % 7) end
         local seen, sum = {}, 0
         for field, value in h:scan() do
           assert(field == value and not seen[field])
           seen[field], sum = true, sum + value
           h:set(field, 0) h:set('new', 'new') h:delete('new')
         end
         assert(sum == n * (n + 1) / 2)
         sum = 0
         for member in s:scan() do sum = sum + member assert(s:remove(member)) end
         assert(sum == n * (n + 1) / 2 and s:count() == 0)
         local at = 0
         for i, item in l:scan() do at = at + 1 assert(i == at and tonumber(item) == at) end
         assert(at == n)
         for i, item in l:scan { reverse = true } do assert(i == at and tonumber(item) == at) at = at - 1 end
         assert(at == 0)
         local last, count = -1, 0
         for member, score in z:scan() do
           assert(score >= last and score == member % 7)
           last, count = score, count + 1
           assert(z:remove(member))
         end
         assert(count == n and z:count() == 0)",
    );
}

#[test]
fn a_key_of_another_kind_is_refused_with_a_code() {
    for call in [
        "tx.main:hash('k'):get('f')",
        "tx.main:hash('k'):set('f', 'v')",
        "tx.main:list('k'):push_left('v')",
        "tx.main:sorted_set('k'):add('m', 1)",
        "tx.main:sorted_set('k'):rank('m')",
        "for _ in tx.main:hash('k'):scan() do end",
        "for _ in tx.main:list('k'):scan() do end",
        "for _ in tx.main:sorted_set('k'):scan() do end",
        "for _ in tx.main:sorted_set('k'):scan_members() do end",
        "tx.main:set('s'):union(tx.main:set('h'))",
        "for _ in tx.main:set('h'):scan() do end",
        "tx.main:get('k')",
    ] {
        let body = format!("tx.main:set('k'):add('m') tx.main:hash('h'):set('f', 'v')\n{call}");
        match Bed::body(&body).run().unwrap_err() {
            CallError::Refused { message, code, .. } => {
                assert_eq!(code.as_deref(), Some("WRONGTYPE"), "{call}");
                assert!(message.starts_with("m.lua:3: "), "{call}: {message}");
            }
            other => panic!("{call}: {other}"),
        }
    }
    holds(
        "tx.main:put('k', 'v')
         local ok, raised = pcall(tx.main:list('k').count, tx.main:list('k'))
         assert(not ok and raised.code == 'WRONGTYPE' and tostring(raised):find 'another kind')",
    );
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (body, expected) in [
        ("tx.main:hash()", "a key is a string or a number, this one is nil"),
        ("tx.main.hash('h')", "with a colon"),
        ("tx.main:hash('h').get('f')", "with a colon"),
        ("tx.main:hash('h'):get()", "a field is a string or a number, this one is nil"),
        ("tx.main:hash('h'):set('f', {})", "a value is a string or a number"),
        ("tx.main:hash('h'):put('f', 'v')", "a hash has no method 'put'"),
        ("tx.main:hash('h').f = 1", "a hash has no field 'f'; write with hash:set(field, value)"),
        ("tx.main:hash(''):set('f', 1)", "a key has 1 to"),
        ("tx.main:hash('h'):set(('x'):rep(5000), 1)", "a field or a member has at most"),
        ("local h = tx.main:hash('h') h:set('f', 'x') h:increment('f')", "not a number"),
        (
            "local h = tx.main:hash('h') h:set('f', '9223372036854775807') h:increment('f')",
            "overflow",
        ),
        ("tx.main:set('k', 'v')", "write a value with db:put(key, value)"),
        ("tx.main:set('s'):union('t')", "sets are combined with sets"),
        ("tx.main:set('s'):add(nil)", "a member is a string or a number, this one is nil"),
        ("tx.main:list('l'):get('a')", "a position is an integer, this is a string"),
        ("tx.main:list('l'):get(1.5)", "a position is an integer, this is 1.5"),
        (
            "tx.main:list('l'):scan { limit = 1 }",
            "no option 'limit'; there are first, last, reverse",
        ),
        ("tx.main:sorted_set('z'):add('m')", "a score is a number, this is nil"),
        ("tx.main:sorted_set('z'):add('m', 0 / 0)", "a score is a number"),
        ("tx.main:sorted_set('z'):scan { form = 1 }", "no option 'form'"),
        ("tx.main:sorted_set('z'):scan { from = 'a' }", "from is a number"),
        ("tx.main:sorted_set('z'):scan { first = 'a' }", "first is an integer"),
        (
            "local z = tx.main:sorted_set('z') z:add('m', math.huge) z:increment('m', -math.huge)",
            "no score",
        ),
    ] {
        let message = raised(body);
        assert!(message.contains(expected), "{body}: {message}");
    }
}

#[test]
fn a_dot_where_a_colon_belongs_is_said_so_in_every_method() {
    let annotations = include_str!("../../lua/types/collections.lua");
    let mut bed = Bed::body("return load('local tx = ... ' .. (...))(tx)");
    let mut wrong = Vec::new();
    for (class, handle) in [
        ("Hash", "tx.main:hash('h')"),
        ("List", "tx.main:list('l')"),
        ("Set", "tx.main:set('s')"),
        ("SortedSet", "tx.main:sorted_set('z')"),
    ] {
        let head = format!("function {class}:");
        let methods = annotations.lines().filter_map(|line| line.strip_prefix(&*head));
        let methods: Vec<&str> = methods.map(|rest| rest.split('(').next().unwrap()).collect();
        assert!(methods.contains(&"count"), "{methods:?}");
        for method in methods {
            for arguments in ["", "'k'", "'k', 'v'", "'k', 2", "1, 2", "'k', 'v', {}"] {
                let call = format!("local result = {handle}.{method}({arguments})");
                let message = match bed.call("m.f", &[text(&call)]) {
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
fn an_error_that_was_caught_leaves_the_transaction_whole() {
    let mut bed = Bed::body(
        "local h = tx.main:hash('h')
         h:set('f', 'v')
         assert(not pcall(h.set, h, ('x'):rep(5000), 1))
         assert(not pcall(tx.main.list, tx.main, {}))
         assert(not pcall(h.increment, h, 'f'))
         return h:get('f')",
    );
    assert_eq!(bed.run().unwrap(), text("v"));
}

#[test]
fn a_read_procedure_reads_and_does_not_write() {
    let read = |body: &str| write_body(body).replace("tokaido.write", "tokaido.read");
    let mut bed = Bed::one(&read(
        "local h, z = tx.none:hash('h'), tx.none:sorted_set('z')
         assert(h:get('f') == nil and h:count() == 0 and next(h:all()) == nil and z:rank('m') == nil)
         assert(#tx.none:list('l'):range(1, -1) == 0 and #tx.none:set('s'):union(tx.main:set('t')) == 0)
         for _ in z:scan() do error 'nothing is there' end
         return 'read'",
    ));
    assert_eq!(bed.run().unwrap(), text("read"));
    let error = Bed::one(&read("\ntx.none:hash('h'):set('f', 'v')")).run().unwrap_err().to_string();
    assert!(error.contains("is a read procedure"), "{error}");
}

#[test]
fn a_handle_outlives_no_transaction() {
    let mut bed = Bed::one(
        "local tokaido = require 'tokaido'
         local kept
         return {
           keep = tokaido.write(function(tx) kept = tx.main:hash('h') kept:set('f', 'v') end),
           use = tokaido.read(function(tx) return kept:get('f') end),
         }",
    );
    bed.call("m.keep", &[]).unwrap();
    // The next call has its own transaction, to which the handle then belongs.
    assert_eq!(bed.call("m.use", &[]).unwrap(), text("v"));
}

#[test]
fn one_call_goes_through_a_limited_number_of_elements() {
    let limits = Limits { many_keys_max: 100, ..Limits::default() };
    for (body, is_refused) in [
        ("for i = 1, 150 do l:push_right(i) end l:trim(120, -1)", true),
        ("for i = 1, 150 do l:push_right(i) end l:trim(75, -1) l:insert(38, 'x')", false),
        ("for i = 1, 300 do l:push_right(i) end l:insert(150, 'x')", true),
        ("for i = 1, 150 do l:push_right(i) end l:find('none')", true),
        ("for i = 1, 150 do s:add(i) end s:union()", true),
        ("for i = 1, 150 do z:add(i, i) end z:remove_range { last = 149 }", true),
        ("for i = 1, 150 do z:add(i, i) end z:remove_range()", false),
    ] {
        let head = "local l, s, z = tx.main:list('l'), tx.main:set('s'), tx.main:sorted_set('z')";
        let ran = Bed::with_limits(&write_body(&format!("{head} {body}")), limits).run();
        match ran {
            Err(error) if is_refused => {
                assert!(error.to_string().contains("at most 100 elements"), "{body}: {error}");
            }
            Ok(_) if !is_refused => {}
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn runaways_over_handles_are_stopped() {
    for body in [
        "local h = tx.main:hash('h') while true do h:set('f', 'v') end",
        "local z, i = tx.main:sorted_set('z'), 0 while true do i = i + 1 z:add(i, i) end",
        "tx.main:set('s'):add('m') while true do for m in tx.main:set('s'):scan() do end end",
    ] {
        match Bed::with_limits(&write_body(body), limits()).run().unwrap_err() {
            CallError::TimeLimit { .. } => {}
            other => panic!("{body}: {other}"),
        }
    }
    let body = "local l, long = tx.main:list('l'), ('x'):rep(1000000)
                for i = 1, 40 do l:push_right(long .. i) end
                return #l:range(1, -1)";
    let limits = Limits { time: Limits::default().time, ..limits() };
    let error = Bed::with_limits(&write_body(body), limits).run().unwrap_err();
    assert!(matches!(error, CallError::MemoryLimit { .. }), "{error}");
}

#[test]
fn a_handle_of_a_database_cannot_be_turned_elsewhere() {
    holds(
        "tx.main:put('k', 'main') tx.other:put('k', 'other')
         for _, change in ipairs {
           function() rawset(tx.main, 'index', 1) end,
           function() rawset(tx.main, 'get', print) end,
           function() rawset(tx, 'main', tx.other) end,
           function() rawset(tx.main:hash('h'), 'index', 1) end,
           function() tx.main.index = 1 end,
           function() tx.main = tx.other end,
           function() setmetatable(tx.main, nil) end,
         } do
           assert(not pcall(change))
         end
         assert(tx.main:get('k') == 'main' and rawset({}, 'a', 1).a == 1)",
    );
}
