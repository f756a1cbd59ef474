//! Cursors of the Kyoto Tycoon dialect, and that they lead to no other memory.

mod support;

use support::{DISTURBED, kyoto::run};

#[test]
fn cursors_go_forward() {
    run("for i = 1, 300 do db[('%03d'):format(i)] = i end
         local cur = db:cursor()
         is(cur:get(), nil) is(code(), kt.Error.NOREC) is(cur:step(), false)
         is(cur:jump(), true) is({ cur:get() }, { '001', '1', NEVER }) is(cur:get_key(), '001')
         is(cur:get_key(true), '001') is(cur:get_value(true), '2') is({ cur:get(true) }, { '003', '3', NEVER })
         is(cur:step(), true) is(cur:get_key(), '005')
         is(cur:jump('0995'), true) is(cur:get_key(), '100') is(cur:jump('300'), true)
         is(cur:step(), false) is(cur:get(), nil) is(cur:step(), false)
         is(cur:jump('301'), false) is(cur:get(), nil)
         local n = 0 cur:jump()
         while true do
           local k, v = cur:get(true)
           if not k then break end
           n = n + 1 is(tonumber(k), n) is(tonumber(v), n)
         end
         is(n, 300) n = 0 cur:jump()
         for k, v in cur do n = n + 1 end is(n, 300)
         is(tostring(cur), 'main: (none)') is(cur:db(), db) is(cur:error():code(), code())
         cur:jump() cur:disable() is(cur:get(), nil)
         db:cursor_process(function(c) c:jump('200') n = c:get_value() end) is(n, '200')
         is(kt.Cursor:new(db):jump('1'), true)
         db:set('xt', 1, 50) cur = db:cursor() cur:jump('xt') local _, _, xt = cur:get() assert(xt < NEVER)");
}

#[test]
fn no_pointer_and_no_other_memory_is_within_reach() {
    run("for i = 1, 9 do db[i] = i end
         for _, d in ipairs(kt.dbs) do
           for k, v in pairs(d) do assert(type(v) ~= 'cdata' and type(v) ~= 'table', type(v)) end
         end
         for _, at in ipairs { -1, 1e9, 0 / 0, 0x7fffffffffffffffLL, '16' } do
           local cur = db:cursor() cur:jump('2')
           for k, v in pairs(cur) do if type(v) == 'table' and v.at then v.at = at end end
           assert(raises(cur.step, cur):find 'state of a cursor', tostring(at))
         end
         assert(raises(rawset, db, 'a', 1):find 'rawset is not for') is(getmetatable(db), 'tokaido')
         for _, f in pairs(kt) do assert(type(f) ~= 'cdata') end");
}

/// As `a_state_with_a_metatable_leads_to_no_other_memory` of scans.
#[test]
fn a_walk_with_a_metatable_leads_to_no_other_memory() {
    run(&format!(
        "{DISTURBED}
         local long = ('y'):rep(2^21)
         db.first = long db.second = 'short'
         for _, when in ipairs {{ 'read', 'write', 'moved' }} do
           local step, walk = db:pairs()
           local proxy = disturbed(walk, when, function() db:match_prefix('second') end)
           local ok, key, value = pcall(step, proxy)
           if ok then
             assert(key == 'first' and value == long, when)
           else
             assert(when ~= 'moved' and key:find('state of a cursor'), key)
           end
         end"
    ));
}

#[test]
fn cursors_go_back() {
    run("for i = 1, 300 do db[('%03d'):format(i)] = i end
         local cur = db:cursor()
         is(cur:jump_back(), true) is(cur:get_key(), '300') is(cur:step_back(), true) is(cur:get_key(), '299')
         is(cur:step(), true) is(cur:get_key(), '300') is(cur:step_back(), true) is(cur:get_key(), '299')
         is(cur:jump_back('0995'), true) is(cur:get_key(), '099') is(cur:jump_back('100'), true)
         is(cur:get_key(), '100') is(cur:jump_back('000'), false) is(cur:get(), nil)
         cur:jump() is(cur:step_back(), false) is(cur:get(), nil) is(cur:step_back(), false)
         local n = 0 cur:jump_back()
         repeat n = n + tonumber(cur:get_value()) until not cur:step_back()
         is(n, 300 * 301 / 2)
         cur:jump_back('200') db:remove('200') is(cur:step_back(), true) is(cur:get_key(), '199')");
}

#[test]
fn cursors_stand_where_records_come_and_go() {
    run("for i = 1, 9 do db[i] = i end
         local cur, other = db:cursor(), db:cursor()
         cur:jump('3') is(cur:remove(), true) is(cur:get_key(), '4') is(db['3'], nil)
         is({ cur:seize() }, { '4', '4', NEVER }) is(cur:get_key(), '5')
         db:remove('5') is(cur:get_key(), '6') db:remove('6') is(cur:step(), true) is(cur:get_key(), '8')
         is(cur:set_value('x'), true) is(cur:get_value(), 'x') is(cur:set_value('y', 60, true), true)
         is(cur:get_key(), '9') local _, xt = db:get('8') assert(xt < NEVER) is(db['8'], 'y')
         assert(raises(cur.set_value, cur, ''):find 'cur_set_value: invalid arguments')
         is(cur:remove(), true) is(cur:get(), nil) is(cur:remove(), false) is(cur:seize(), nil)
         cur:jump('1') other:jump('1') other:remove() is(cur:get_key(), '2')
         is(cur:accept(function(k, v) return v .. '!' end), true) is(db['2'], '2!')
         is(cur:accept(function() return kt.Visitor.NOP end, false, true), true) is(cur:get_key(), '7')
         is(cur:accept(function() return kt.Visitor.REMOVE end), true) is(cur:get_key(), '8')
         is(cur:accept(function() return kt.Visitor.REMOVE end, true, true), true) is(cur:get(), nil)
         for i = 1, 9 do db[i] = i end cur:jump() local n = 0
         while cur:get_key() do
           n = n + 1
           if n % 2 == 0 then cur:remove() else db:set(cur:get_key(), 'odd') cur:step() end
         end
         is(n, 9) is(db:count(), 5)");
}

#[test]
fn cursors_over_databases_without_an_order() {
    run("local hot = kt.dbs.hot
         for i = 1, 250 do hot[i] = i end
         local cur, n, seen = hot:cursor(), 0, {}
         is(cur:jump(), true)
         while true do
           local k, v, xt = cur:get(true)
           if not k then break end
           is(k, v) is(xt, NEVER) seen[k], n = true, n + 1
         end
         is(n, 250) is(cur:jump('17'), true) is(cur:get_value(), '17') is(cur:jump('none'), false)
         is(cur:jump_back(), false) is(code(hot), kt.Error.NOIMPL) is(cur:step_back(), false)
         cur:jump('17') is(cur:set_value('x'), true) is(cur:get_value(), 'x') is(hot['17'], 'x')
         is(cur:remove(), true) is(hot['17'], nil) assert(cur:get_key() ~= '17')
         n = 0 for k, v in hot:pairs() do n = n + 1 end is(n, 249)
         cur:jump() while cur:remove() do end is(hot:count(), 0)
         is(hot:increment('n', 3), 3) is(hot:append('a', 'b'), true) is(hot:check('a'), 1)
         is(hot:cas('a', 'b', 'c'), true) is(hot:add('a', 1), false) is(hot:seize('a'), 'c')");
}
