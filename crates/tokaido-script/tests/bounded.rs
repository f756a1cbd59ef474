//! The functions of Lua's libraries that are reimplemented so that limits reach them do what Lua's own do.

mod support;

use support::Bed;
use tokaido_script::CallError;

macro_rules! holds {
    ($($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            Bed::body($body).run().unwrap();
        }
    )*};
}

holds! {
    a_sort_of_many_without_a_comparison:
        "local t = {} for i = 1, 1000 do t[i] = i * 7919 % 1009 end table.sort(t)
         for i = 2, #t do assert(t[i - 1] < t[i]) end";
    a_sort_with_a_comparison:
        "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function(a, b) return a > b end)
         for i = 1, #t do assert(t[i] == 1001 - i) end";
    insertions:
        "local t = {'b'} table.insert(t, 'd') table.insert(t, 1, 'a') table.insert(t, 3, 'c')
         assert(table.concat(t) == 'abcd')";
    a_format_of_tables:
        "local t = setmetatable({}, {__tostring = function() return 'tea' end})
         assert(string.format('%s', t) == 'tea' and ('%d %s %5s %s %s'):format(1, 'x', t, nil, true)
           == '1 x   tea nil true')
         assert(string.format('%s', {}):match '^table: ')
         assert(string.format('%d%%', 5) == '5%')
         assert(not pcall(string.format, '%s') and not pcall(string.format, '%d', t))";
    replacements_that_are_functions:
        "assert(('hello world'):gsub('o', function(c) return c:upper() end) == 'hellO wOrld')
         assert(('abc'):gsub('%w', function(c) if c == 'b' then return false end return c .. c end) == 'aabcc')
         assert(('k=v, a=b'):gsub('(%w)=(%w)', function(k, v) return v .. '=' .. k end) == 'v=k, b=a')
         assert(('abc'):gsub('', function() return '-' end) == '-a-b-c-')
         assert(('abc'):gsub('()', function(i) return i end) == '1a2b3c4')
         assert(('aaa'):gsub('^a', function() return 'b' end) == 'baa')
         assert(select(2, ('aaaa'):gsub('a', function() end, 3)) == 3)
         local t = setmetatable({}, {__index = function(_, k) return k .. '!' end})
         assert(('a b'):gsub('%w', t) == 'a! b!')
         assert(not pcall(string.gsub, 'a', 'a', function() return {} end))";
    searches_for_long_texts:
        "local s, t = ('a'):rep(2 ^ 16) .. 'b', ('a'):rep(2 ^ 10) .. 'b'
         local first, last = s:find(t, 1, true)
         assert(first == 2 ^ 16 - 2 ^ 10 + 1 and last == #s)
         assert(s:find(t) == first and s:find(t, -5, true) == nil and s:find(t, #s + 9, true) == nil)
         assert(s:find(t .. 'c', 1, true) == nil)";
    patterns_with_optional_items:
        "assert(('a'):rep(3):find('a?a?a?aaa') == 1)
         assert(('https://x'):match('^https?://(.*)$') == 'x')
         assert(('{a{b}c}d'):match('%b{}') == '{a{b}c}')";
    coroutines:
        "local c = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b, nil, 3 end)
         assert(c(1) == 2) assert(select('#', c(5)) == 3)
         local ok, why = pcall(c) assert(not ok and why:find('dead', 1, true))
         local ok, why = pcall(coroutine.wrap(function() error({code = 7}) end))
         assert(not ok and why.code == 7)
         local thread = coroutine.create(function(...) return ... end)
         assert(select('#', coroutine.resume(thread, 1, nil, nil)) == 4)
         assert(coroutine.status(thread) == 'dead' and not pcall(coroutine.resume, 1))";
    coroutines_within_each_other_as_deep_as_they_may:
        "local function nest(n) if n == 0 then return 0 end return 1 + coroutine.wrap(nest)(n - 1) end
         assert(nest(150) == 150)
         for _ = 1, 1000 do coroutine.wrap(nest)(3) end";
}

#[test]
fn coroutines_that_are_too_deep_are_an_error() {
    let body = "local function nest(n) if n == 0 then return 0 end
        return 1 + coroutine.wrap(nest)(n - 1) end nest(151)";
    let Err(CallError::Raised { message, .. }) = Bed::body(body).run() else { panic!() };
    assert!(message.contains("coroutines resume each other more than 150 deep"), "{message}");
}
