//! Streams and consumer groups.

use crate::{holds, raised};

#[test]
fn a_stream_has_entries() {
    holds(
        "local s = tx.main:stream('s')
         assert(s:count() == 0 and s:last_id() == nil and s:get('1-0') == nil and not s:delete('1'))
         assert(s:trim { max_count = 0 } == 0 and not tx.main:exists('s') and tostring(s) == 'stream s')
         for id in s:scan() do error(id) end
         assert(s:add({ b = 2, a = 'x' }, { id = '5-1' }) == '5-1')
         assert(s:add({ a = 3 }, { id = 7 }) == '7-0' and s:count() == 2 and s:last_id() == '7-0')
         assert(s:get('5-1').a == 'x' and s:get('5-1').b == '2' and s:get(7).a == '3' and s:get('5') == nil)
         local auto = s:add { [1] = 2LL }
         assert(auto:match '^%d+%-0$' and s:get(auto)['1'] == '2' and s:count() == 3)
         assert(s:delete('7-0') and not s:delete('7-0') and s:count() == 2)
         assert(s:trim { max_count = 1 } == 1 and s:count() == 1 and s:get(auto))
         assert(s:delete(auto) and s:count() == 0 and s:last_id() == auto and tx.main:exists('s'))",
    );
}

#[test]
fn entries_of_a_stream_are_gone_through_in_both_directions() {
    holds(
        "local s = tx.main:stream('s')
         for ms = 1, 300 do s:add({ ms = ms }, { id = ms .. '-5' }) end
         local function ids(range)
           local found, sum = 0, 0
           for id, fields in s:scan(range) do
             assert(id == fields.ms .. '-5')
             found, sum = found + 1, sum + fields.ms
           end
           return found .. ' ' .. sum
         end
         assert(ids() == '300 45150' and ids { reverse = true } == '300 45150')
         assert(ids { from = '100', to = 200 } == '101 15150')
         assert(ids { from = '100', to = 200, reverse = true } == '101 15150')
         assert(ids { after = '100-5', before = '200-5' } == '99 14850')
         assert(ids { after = '100-5', before = '200-5', reverse = true } == '99 14850')
         assert(ids { after = '100' } == '201 40200' and ids { to = '100-4' } == '99 4950')
         assert(ids { limit = 150 } == '150 11325' and ids { reverse = true, limit = 150 } == '150 33825')
         assert(ids { limit = 0 } == '0 0' and ids { after = '18446744073709551615-18446744073709551615' } == '0 0')
         assert(ids { before = 0 } == '0 0' and ids { from = 200, to = 100 } == '0 0')
         for id, fields in s:scan { limit = 310 } do
           if fields.ms then s:add({ n = 1 }, { id = '1000-' .. fields.ms }) end
           assert(s:delete(id))
         end
         assert(s:count() == 290)
         assert(s:add({ x = 1 }, { max_count = 10 }) and s:count() == 10)
         assert(s:add({ x = 1 }, { min_id = s:last_id() }) and s:count() == 2)",
    );
}

#[test]
fn a_group_shares_entries_out() {
    holds(
        "local s = tx.main:stream('s')
         local g = s:group('g')
         assert(not g:exists() and not g:destroy() and not tx.main:exists('s'))
         assert(g:create() and not g:create() and g:exists() and tostring(g) == 'group g')
         for n = 1, 5 do s:add({ n = n }, { id = n }) end
         local first = g:read('a', 2)
         assert(#first == 2 and first[1].id == '1-0' and first[2].fields.n == '2')
         assert(#g:read('b', 10) == 3 and #g:read('c', 10) == 0)
         local told = g:summary()
         assert(told.pending == 5 and told.last_id == '5-0' and told.consumers.a == 2)
         assert(told.consumers.b == 3 and told.consumers.c == nil)
         assert(g:acknowledge('1-0') and not g:acknowledge('1-0'))
         local pending = g:pending { consumer = 'a' }
         assert(#pending == 1 and pending[1].id == '2-0' and pending[1].consumer == 'a')
         assert(pending[1].deliveries == 1 and pending[1].idle_ms >= 0)
         assert(#g:pending() == 4 and #g:pending { from = 3, limit = 2 } == 2 and #g:pending { after = '4-0' } == 1)
         assert(#g:pending { consumer = 'nobody' } == 0 and #g:pending { idle_ms = 1e12 } == 0)
         assert(g:claim('b', '2-0', 1e12) == nil and g:claim('b', '2-0', 0).n == '2')
         assert(g:pending { to = '2' }[1].deliveries == 2 and g:summary().consumers.a == 0)
         assert(g:claim('b', '1-0', 0) == nil)
         s:delete('3-0')
         assert(g:claim('a', '3-0', 0) == nil and g:summary().pending == 3)
         assert(s:group('all'):create('0-0') and #s:group('all'):read('a', 10) == 4)
         assert(g:destroy() and not g:exists() and s:group('all'):exists())",
    );
}

#[test]
fn what_no_stream_takes_is_refused() {
    for (call, message) in [
        ("s:add {}", "an entry has one field or more"),
        ("s:add 'text'", "an entry is a table"),
        ("s:add { a = {} }", "a value is a string or a number, this one is a table"),
        (
            "s:add({ a = 1 }, { max = 1 })",
            "there is no option 'max'; there are id, max_count, min_id",
        ),
        ("s:add({ a = 1 }, { id = '5-4' })", "larger than that of all before it, here than 5-5"),
        ("s:add({ a = 1 }, { id = '5-*' })", "\"5-*\" is no id"),
        ("s:add({ a = 1 }, { max_count = -1 })", "max_count is an integer from 0 up, this is -1"),
        ("s:add({ a = ('x'):rep(2 ^ 26) })", "a value has at most"),
        ("s:trim()", "options are a table"),
        ("s:get('x')", "\"x\" is no id"),
        ("s:get('+5')", "\"+5\" is no id"),
        ("s:get('18446744073709551616')", "is no id"),
        ("s:get(nil)", "an id is a string or a number"),
        ("for _ in s:scan { from = {} } do end", "an id is a string or a number"),
        ("for _ in s:scan { from = 1, after = 1 } do end", "from or after, not both"),
        ("for _ in s:scan { to = 'x' } do end", "\"x\" is no id"),
        ("for _ in s:scan { first = 1 } do end", "no option 'first'"),
        ("s:group('g'):read('a', 1)", "the stream has no group \"g\"; group:create() makes it"),
        ("s:group('g'):pending()", "has no group"),
        ("s:group('g'):summary()", "has no group"),
        ("s:group('g'):read('a')", "how many entries at most"),
        ("s:group('g'):claim('a', 1)", "idle_ms is a number"),
        ("s:group('g'):pending { to = {} }", "an id is a string or a number"),
        ("s:nothing()", "a stream has no method 'nothing'"),
        ("s.name = 1", "a stream has no field 'name'"),
        ("tx.main:stream('k', 'v')", "write a value with db:put"),
        ("tx.main:hash('s'):count()", "a value of another kind"),
    ] {
        let body =
            format!("local s = tx.main:stream('s') s:add({{ a = 1 }}, {{ id = '5-5' }}) {call}");
        let error = raised(&body);
        assert!(error.contains(message), "{call}: {error}");
    }
}

#[test]
fn what_is_refused_leaves_the_transaction() {
    holds(
        "local s = tx.main:stream('s')
         s:add({ a = 1 }, { id = '5-5' })
         assert(not pcall(s.add, s, { a = 1 }, { id = '1' }))
         assert(not pcall(s.add, tx.main:stream('t'), { a = 1 }, { id = 0 }))
         local g = s:group('g')
         assert(not pcall(g.read, g, 'a', 1) and not pcall(g.acknowledge, g, '5-5'))
         g:create(0)
         assert(not pcall(g.read, g, ('x'):rep(10000), 1) and g:summary().pending == 0)
         assert(s:count() == 1 and not tx.main:exists('t'))",
    );
}
