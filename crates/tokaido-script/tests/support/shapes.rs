//! The shapes of runaway scripts.

/// How a shape may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By its time limit.
    Stopped,
    /// By any error, whether a limit or the refusal of what would take too long.
    Refused,
}

use End::{Refused, Stopped};

/// The shapes: a name, how it may end, and its Lua.
pub(crate) const SHAPES: &[(&str, End, &str)] = &[
    // Loops.
    ("a loop", Stopped, "while true do end"),
    ("a loop of goto", Stopped, "::again:: goto again"),
    ("a numeric loop without end", Stopped, "for i = 1, math.huge do end"),
    ("a numeric loop that does not step", Stopped, "for i = 1, 2, 0 do end while true do end"),
    ("a loop of tail calls", Stopped, "local function f() return f() end f()"),
    ("a loop of tail calls with varargs", Stopped, "local function f(...) return f(...) end f(1, 2, 3)"),
    ("a tree of calls", Stopped, "local function f(n) if n > 0 then f(n - 1) f(n - 1) end end f(60)"),
    ("a loop in loaded text", Stopped, "load('while true do end')()"),
    ("a reader of load that never ends", Stopped, "load(function() while true do end end)"),
    ("a loop over next", Stopped, "local t = {1} while true do next(t) end"),
    ("a loop that prints nothing", Stopped, "while true do tostring({}) end"),

    // Catching.
    ("a pcall that swallows", Stopped, "pcall(function() while true do end end)"),
    ("a loop of pcall", Stopped, "while true do pcall(function() while true do end end) end"),
    ("a loop of pcall(error)", Stopped, "while true do pcall(error, 'x') end"),
    ("nested pcalls", Stopped, "pcall(pcall, pcall, pcall, function() while true do end end)"),
    ("a pcall that recurs", Stopped, "local function f() pcall(f) f() end pcall(f) while true do pcall(f) end"),

    // Error handlers.
    ("a handler that loops", Stopped,
        "xpcall(function() while true do end end, function(e) while true do end end)"),
    ("a handler that loops at an ordinary error", Stopped, "xpcall(error, function() while true do end end)"),
    ("a handler that counts", Stopped,
        "xpcall(function() while true do end end, function(e) for i = 1, 1e15 do end end)"),
    ("a handler of goto", Stopped, "xpcall(function() while true do end end, function(e) ::a:: goto a end)"),
    ("a handler that calls pcall", Stopped,
        "xpcall(function() while true do end end, function(e) while true do pcall(error) end end)"),
    ("a handler with a handler", Stopped,
        "xpcall(function() while true do end end, function(e)
           xpcall(function() while true do end end, function(e) while true do end end) end)"),
    ("handlers in a loop", Stopped,
        "local function h(e) xpcall(error, h, e) while true do end end
         while true do xpcall(function() while true do end end, h) end"),
    ("a handler that raises", Stopped,
        "local function h(e) error(e) end
         while true do xpcall(function() while true do end end, h) end"),
    ("a handler that is the function", Stopped,
        "local function f() while true do end end xpcall(f, f)"),
    ("a handler in a coroutine", Stopped,
        "coroutine.wrap(function()
           xpcall(function() while true do end end, function(e) while true do end end) end)()"),
    ("a handler that resumes", Stopped,
        "xpcall(function() while true do end end, function(e)
           coroutine.wrap(function() while true do end end)() end)"),
    ("a handler around a coroutine", Stopped,
        "xpcall(coroutine.wrap(function() while true do end end), function(e) while true do end end)"),
    ("a handler around a comparison", Stopped,
        "xpcall(table.sort, function(e) while true do end end, {3, 1, 2}, function() while true do end end)"),
    ("a handler around a replacement", Stopped,
        "xpcall(string.gsub, function(e) while true do end end, 'aa', 'a', function() while true do end end)"),
    ("a handler that reads", Stopped,
        "xpcall(function() while true do end end, function(e) while true do tx.main:get('x') end end)"),
    ("a handler that scans", Stopped,
        "xpcall(function() while true do end end, function(e)
           while true do for k in tx.main:scan() do end end end)"),
    ("a handler at the memory limit", Refused,
        "xpcall(function() local t = {} for i = 1, 1e9 do t[i] = {} end end, function(e) while true do end end)"),
    ("a handler at a large block", Refused,
        "xpcall(function() local s = 'x' while true do s = s .. s end end, function(e) while true do end end)
         while true do end"),
    ("a handler at the end of the stack", Stopped,
        "local function f(n) return 1 + f(n) end xpcall(f, function(e) while true do end end, 1) while true do end"),
    ("a handler with metamethods", Stopped,
        "local t = setmetatable({}, {__index = function(t, k) while true do end end})
         xpcall(function() return t.x end, function(e) return t.y end)"),
    ("a handler as callable table", Refused,
        "local h = setmetatable({}, {__call = function() while true do end end})
         xpcall(function() while true do end end, h) while true do end"),

    // Errors that are tables.
    ("an error whose text never ends", Stopped,
        "error(setmetatable({}, {__tostring = function() while true do end end}))"),
    ("an error whose message never ends", Stopped,
        "error(setmetatable({}, {__index = function() while true do end end}))"),
    ("an error that raises when shown", Refused,
        "error(setmetatable({}, {__tostring = function() error('again') end}))"),
    ("a text that never ends in a handler", Stopped,
        "local t = setmetatable({}, {__tostring = function() while true do end end})
         xpcall(function() error(t) end, tostring)"),

    // Coroutines.
    ("a coroutine", Stopped, "coroutine.wrap(function() while true do end end)()"),
    ("a coroutine that yields", Stopped,
        "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end"),
    ("coroutines without end", Stopped, "while true do coroutine.resume(coroutine.create(function() end)) end"),
    ("coroutines that loop", Stopped,
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end"),
    ("coroutines that wrap and loop", Stopped,
        "while true do pcall(coroutine.wrap(function() while true do end end)) end"),
    ("a coroutine within a coroutine", Stopped,
        "coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()"),
    ("coroutines nested without end", Refused, "local function f() coroutine.wrap(f)() end f()"),
    ("coroutines nested by resume", Refused,
        "local function f() coroutine.resume(coroutine.create(f)) end f() while true do end"),
    ("a dead coroutine", Stopped,
        "local c = coroutine.create(function() end) while true do coroutine.resume(c) end"),

    // Iterators.
    ("an iterator that never ends", Stopped, "for _ in function() return 1 end do end"),
    ("an iterator that loops", Stopped, "for _ in function() while true do end end do end"),
    ("an iterator that is a coroutine", Stopped,
        "for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end"),
    ("pairs of a table that is refilled", Stopped,
        "local t = {1} while true do for k in pairs(t) do t[k] = k end end"),
    ("ipairs of a metatable", Stopped,
        "local t = setmetatable({}, {__index = function(_, i) return i end}) while true do for i in ipairs(t) do end end"),
    ("gmatch of nothing", Stopped, "while true do for w in string.gmatch('aaa', '') do end end"),
    ("a scan that is begun again", Stopped, "while true do for k in tx.main:scan() do end end"),
    ("keys that are begun again", Stopped, "while true do for k in tx.main:keys() do end end"),

    // Metamethods.
    ("__index", Stopped, "local t = setmetatable({}, {__index = function() while true do end end}) return t.x"),
    ("__newindex", Stopped,
        "local t = setmetatable({}, {__newindex = function() while true do end end}) t.x = 1"),
    ("__index of itself", Refused,
        "local t = {} setmetatable(t, {__index = t}) for i = 1, 1e15 do local x = t.x end"),
    ("a loop of __index", Refused,
        "local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a}) return a.x"),
    ("__index that recurs", Refused,
        "local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) return t.x"),
    ("__call", Stopped, "setmetatable({}, {__call = function() while true do end end})()"),
    ("__call of itself", Refused, "local t = {} setmetatable(t, {__call = t}) t()"),
    ("__eq", Stopped,
        "local m = {__eq = function() while true do end end}
         return setmetatable({}, m) == setmetatable({}, m)"),
    ("__lt", Stopped, "local t = setmetatable({}, {__lt = function() while true do end end}) return t < t"),
    ("__le", Stopped, "local t = setmetatable({}, {__le = function() while true do end end}) return t <= t"),
    ("__concat", Stopped,
        "local t = setmetatable({}, {__concat = function() while true do end end}) return t .. 'x'"),
    ("__unm", Stopped, "local t = setmetatable({}, {__unm = function() while true do end end}) return -t"),
    ("__add", Stopped, "local t = setmetatable({}, {__add = function() while true do end end}) return t + 1"),
    ("__tostring by tostring", Stopped,
        "tostring(setmetatable({}, {__tostring = function() while true do end end}))"),
    ("__tostring by format", Stopped,
        "string.format('%s', setmetatable({}, {__tostring = function() while true do end end}))"),
    ("__tostring by print", Stopped,
        "print(setmetatable({}, {__tostring = function() while true do end end}))"),
    ("__tostring that recurs in C", Refused,
        "local t = setmetatable({}, {__tostring = function(t) return string.format('%s', t) end}) tostring(t)"),

    // C functions that C calls.
    ("a sort whose comparison is rawequal", Stopped,
        "local t = {} for i = 1, 1e6 do t[i] = i end while true do table.sort(t, rawequal) end"),
    ("a sort whose comparison is pcall", Stopped,
        "local t = {} for i = 1, 1e5 do t[i] = 1 end while true do table.sort(t, pcall) end"),
    ("a sort of what compares by rawequal", Stopped,
        "local m, t = {__lt = rawequal}, {} for i = 1, 1e5 do t[i] = setmetatable({}, m) end
         while true do pcall(table.sort, t) end"),
    ("a replacement by pcall", Stopped, "while true do string.gsub(('a'):rep(1e5), 'a', pcall) end"),
    ("a replacement by a table that gets from C", Stopped,
        "local t = setmetatable({}, {__index = rawget}) while true do string.gsub(('a'):rep(1e5), 'a', t) end"),
    ("tostring as __tostring", Stopped, "tostring(setmetatable({}, {__tostring = tostring}))"),
    ("tostring as __tostring by format", Stopped,
        "string.format('%s', setmetatable({}, {__tostring = tostring}))"),
    ("tostring as __tostring of an error", Stopped,
        "error(setmetatable({}, {__tostring = tostring}))"),
    ("tostring as the call of a __tostring", Stopped,
        "local t = {} setmetatable(t, {__call = tostring, __tostring = t}) tostring(t) while true do end"),
    ("pcall as __call", Stopped, "local t = {} setmetatable(t, {__call = pcall}) t(t) while true do end"),
    ("pcall as __index", Stopped, "local t = setmetatable({}, {__index = pcall}) while true do local x = t.x end"),
    ("pcalls of pcall", Stopped,
        "local t = {} for i = 1, 7000 do t[i] = pcall end t[7001] = function() while true do end end pcall(unpack(t))"),
    ("a handler that is pcall", Stopped, "while true do xpcall(error, pcall, pcall) end"),
    ("a handler that is error", Stopped, "while true do xpcall(error, error, error) end"),
    ("a coroutine of pcall", Stopped,
        "coroutine.wrap(pcall)(pcall, function() while true do end end)"),
    ("coroutines of wrap", Stopped, "while true do coroutine.wrap(coroutine.wrap)(coroutine.wrap) end"),
    ("foreach", Stopped, "table.foreach({1, 2}, function() while true do end end)"),
    ("foreach of a table that grows", Stopped,
        "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.foreach(t, type) end"),
    ("a reader of load in C", Refused, "load(tostring) while true do end"),

    // Finalizers are not offered.
    ("a proxy with a finalizer", Refused, "getmetatable(newproxy(true)).__gc = function() while true do end end"),
    ("__gc of a table", Stopped,
        "setmetatable({}, {__gc = function() while true do end end}) while true do local t = {} end"),

    // Numbers as text.
    ("a find in a number", Refused,
        "string.find(11111111111111, ('1?'):rep(40) .. ('1'):rep(40)) while true do end"),
    ("a match in a number", Refused,
        "string.match(11111111111111, ('1?'):rep(40) .. ('1'):rep(40)) while true do end"),
    ("a gmatch in a number", Refused,
        "for w in string.gmatch(11111111111111, ('1?'):rep(40) .. ('1'):rep(40)) do end while true do end"),
    ("a replacement of a number that replaces", Refused,
        "local function f() string.gsub(1, 1, f) end f()"),
    ("a replacement by the pattern of a number", Refused,
        "local function f() ('1'):gsub(1, f) end f()"),
    ("a replacement by a number", Stopped,
        "while true do string.gsub(('1'):rep(1e5), 1, 1) end"),
    ("an insertion at a number in text", Refused, "table.insert({1, 2, 3}, '-2000000000', 1)"),
    ("an insertion at no integer", Refused,
        "for _, at in ipairs {0 / 0, 1e300, 2 ^ 31, -1e300} do pcall(table.insert, {}, at, 1) end error('no')"),

    // Long patterns.
    ("sets that are not closed", Refused, "string.find('a', ('['):rep(1e6))"),
    ("sets that are negated and not closed", Refused, "string.find('a', ('[^'):rep(1e6))"),
    ("a long set", Refused,
        "string.find(('a'):rep(1e6), '[' .. ('b'):rep(1e6) .. ']*c') while true do end"),
    ("a long choice", Refused, "assert(load('if x then ' .. ('elseif x then '):rep(7e4) .. 'end'))"),
    ("labels", Refused,
        "local s = {} for i = 1, 5e4 do s[i] = 'goto l' .. i end
         assert(load(table.concat(s, ' ')))"),

    // What C does.
    ("a sort with a comparison that loops", Stopped,
        "table.sort({3, 2, 1}, function() while true do end end)"),
    ("a sort with a comparison that is wrong", Stopped,
        "while true do local t = {} for i = 1, 2000 do t[i] = i end
         pcall(table.sort, t, function(a, b) return true end) end"),
    ("a sort that compares by metamethod", Stopped,
        "local m = {__lt = function() while true do end end}
         table.sort({setmetatable({}, m), setmetatable({}, m)})"),
    ("a sort that takes the square of its length", Stopped, QUADRATIC_SORT),
    ("a sort within a sort", Refused,
        "local function less() table.sort({2, 1}, less) return false end table.sort({2, 1}, less)"),
    ("a replacement that loops", Stopped, "string.gsub('a', 'a', function() while true do end end)"),
    ("a replacement by a table that loops", Stopped,
        "string.gsub('a', 'a', setmetatable({}, {__index = function() while true do end end}))"),
    ("a replacement within a replacement", Refused,
        "local function f() string.gsub('a', 'a', f) end f()"),
    ("a replacement by a table within a replacement", Refused,
        "local t = {} setmetatable(t, {__index = function() string.gsub('a', 'a', t) end}) string.gsub('a', 'a', t)"),
    ("optional items", Refused, "string.find(('a'):rep(45), ('a?'):rep(45) .. ('a'):rep(45))"),
    ("optional items of a set", Refused, "string.match(('a'):rep(45), ('[a]?'):rep(45) .. ('a'):rep(45))"),
    ("many lazy items", Refused, "string.find((','):rep(5000), '(.-),(.-),(.-),(.-),(.-)x')"),
    ("many greedy items", Refused, "string.find(('a'):rep(5000), 'a*a*a*a*a*b')"),
    ("balanced items", Refused, "string.gsub(('{'):rep(2 ^ 20), '%b{}', '') while true do end"),
    ("balanced items in a find", Refused, "string.find(('{'):rep(2 ^ 22), '%b{}') while true do end"),
    ("balanced items in a gmatch", Refused, "for w in string.gmatch(('('):rep(2 ^ 20), '%b()') do end while true do end"),
    ("references back", Refused, "string.find(('a'):rep(2 ^ 16), '(a*)%1b') while true do end"),
    ("a plain find of a long text", Stopped,
        "while true do string.find(('a'):rep(2 ^ 20), ('a'):rep(2 ^ 19) .. 'b', 1, true) end"),
    ("a find of a long literal", Stopped,
        "while true do string.find(('a'):rep(2 ^ 20), ('a'):rep(2 ^ 19) .. 'b') end"),
    ("a match of a long literal", Refused,
        "string.match(('a'):rep(2 ^ 20), ('a'):rep(2 ^ 19) .. 'b') while true do end"),
    ("a concat of a large table", Stopped,
        "local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.concat(t) end"),
    ("a concat of a range that is not there", Refused, "table.concat({}, '', 1, 2 ^ 30)"),
    ("an insertion far below", Refused, "table.insert({}, -2 ^ 31, 1) while true do end"),
    ("insertions at the front", Stopped, "local t = {} while true do table.insert(t, 1, 1) end"),
    ("a repetition of nothing", Stopped, "string.rep('', 2 ^ 52) while true do end"),
    ("a repetition that is too long", Refused, "string.rep('x', 2 ^ 52)"),
    ("format without end", Stopped, "while true do string.format('%99.99f', 1e300) end"),
    ("unpack of too much", Refused, "unpack({}, 1, 2 ^ 30)"),
    ("JSON of tables that share", Refused,
        "local json = require 'tokaido.json' local t = {} for i = 1, 60 do t = {t, t} end json.encode(t)"),
    ("JSON of itself", Refused,
        "local json = require 'tokaido.json' local t = {} t.t = t json.encode(t)"),
    ("JSON that is nested", Refused,
        "local json = require 'tokaido.json' json.decode(('['):rep(2 ^ 20))"),
    ("JSON of many values", Stopped,
        "local json = require 'tokaido.json' local s = '[' .. ('1,'):rep(1e5) .. '1]' while true do json.decode(s) end"),
    ("JSON of too many values", Refused,
        "local json = require 'tokaido.json' json.decode('[' .. ('1,'):rep(5e6) .. '1]') while true do end"),
    ("JSON of many tables", Refused,
        "local json = require 'tokaido.json' json.decode('[' .. ('[],'):rep(3e6) .. '1]') while true do end"),
    ("JSON of many names", Refused,
        "local json = require 'tokaido.json' local s = '{' .. ('\"a\":1,'):rep(1e6) .. '\"a\":1}'
         while true do json.decode(s) end"),
    ("JSON of one string again and again", Refused,
        "local json = require 'tokaido.json' local s, t = ('x'):rep(2 ^ 20), {} for i = 1, 1e5 do t[i] = s end
         json.encode(t)"),
    ("JSON that is longer than its value", Refused,
        "local json = require 'tokaido.json' json.encode(('\\1'):rep(1e7))"),
    ("JSON of tables without anything in them", Refused,
        "local json = require 'tokaido.json' local empty, t = {}, {} for i = 1, 2 ^ 18 do empty[i] = i end
         for i = 1, 2 ^ 18 do empty[i] = nil end for i = 1, 1e6 do t[i] = empty end json.encode(t)"),
    ("text that is nested", Refused, "assert(load('return ' .. ('('):rep(1e5) .. (')'):rep(1e5)))"),
    ("require in a loop", Stopped, "while true do require 'tokaido' end"),
    ("dates", Stopped, "while true do os.date(('%c'):rep(1000)) end"),
];

/// Numbers in an order in which a quicksort with the median of three as its pivot takes quadratic time.
const QUADRATIC_SORT: &str = "local n = 400000 local t = {}
    for i = 1, n / 2 do
      if i % 2 == 1 then t[i], t[i + 1] = i, n / 2 + i end
      t[n / 2 + i] = i * 2
    end
    while true do table.sort({unpack(t, 1, 1000)}) local c = {} for i = 1, n do c[i] = t[i] end table.sort(c) end";
