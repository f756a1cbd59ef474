//! What client scripts must not reach, and must not change for others.

mod support;

use support::redis::RedisBed;
use tokaido_script::{CallError, Limits, Value};

/// Each gives nothing or raises: none is a way out.
const OUT_OF_REACH: &[&str] = &[
    // Names.
    "return ffi",
    "return jit",
    "return io",
    "return package",
    "return debug",
    "return require",
    "return module",
    "return dofile",
    "return loadfile",
    "return print",
    "return getfenv",
    "return setfenv",
    "return newproxy",
    "return core",
    "return tokaido",
    "return tx",
    "return arg",
    "return rust",
    "return native",
    "return __redis__err__handler",
    "return _G.ffi",
    "return _G._G.io",
    "return _G.debug",
    "return rawget(_G, 'debug')",
    "return rawget(_G, 'ffi')",
    "return rawget(_G, 'package')",
    "return rawget(_G, '__index')",
    "return rawget(redis, '__index')",
    "return os.execute",
    "return os.exit",
    "return os.getenv",
    "return os.remove",
    "return os.rename",
    "return os.tmpname",
    "return os.setlocale",
    "return os.time",
    "return string.dump",
    "return string.buffer",
    "return ('x').dump",
    "return ('x'):dump()",
    "return table.clear",
    "return table.new",
    "return redis.core",
    "return redis.register_function",
    "return cjson.ffi",
    "return math.ffi",
    "return coroutine.ffi",
    "return bit.ffi",
    "return string.format.ffi",
    "for k, v in pairs(_G) do if k == 'ffi' or k == 'debug' or k == 'jit' then return v end end",
    "for k, v in next, _G do if k == 'ffi' or k == 'io' or k == 'package' then return v end end",
    "for k, v in ipairs(_G) do return v end",
    "require 'ffi'",
    "require('jit').off()",
    "require 'string.buffer'",
    // Text that is compiled, and things that are not text.
    "return load('return ffi')()",
    "return load('return io', 'x', 't')()",
    "return load('return debug', 'x', 'b', _G)()",
    "return load('return os.execute', 'x', 't', _G)()",
    "return load('return print', 'x', 't', {})()",
    "return load('return ...', 'x', 't', nil)()",
    "return loadstring('return package')()",
    "return loadstring('return getfenv(0)')()",
    "return loadstring('\\27LJ\\2\\10')()",
    "return load('\\27LJ\\2\\10')()",
    "return load('\\27Lua')()",
    "return load(function() return nil end, 'x', 'b')()",
    "local sent = false return load(function() if not sent then sent = true return '\\27LJ\\2' end end)()",
    "return load('return setmetatable(_G, {})', 'x', 't')()",
    "return loadstring(('x = 1 '):rep(2 ^ 18))()",
    "return load(string, 'x')",
    "return load({})",
    "return load(('('):rep(1e5))()",
    "return loadstring(('{'):rep(1e5))()",
    "return loadstring('local ' .. ('a,'):rep(300) .. 'a')()",
    "return load('return ' .. ('not '):rep(1e5) .. '1')()",
    "return load(('do '):rep(1e4) .. ('end '):rep(1e4))()",
    // Metatables.
    "return getmetatable('').__index",
    "return getmetatable('').__metatable",
    "return getmetatable(_G).__index",
    "return getmetatable(redis).__index",
    "return getmetatable(string).__newindex",
    "return getmetatable(cjson).__index",
    "return getmetatable(1)",
    "return getmetatable(nil)",
    "return getmetatable(true)",
    "return getmetatable(redis.call)",
    "return getmetatable(coroutine.create(function() end))",
    "return getmetatable(cjson.null)",
    "return getmetatable(1LL).__index",
    "return getmetatable(1LL).__gc",
    "setmetatable(_G, {})",
    "setmetatable(redis, {})",
    "setmetatable(string, nil)",
    "setmetatable(cjson, {})",
    "setmetatable('', {})",
    "setmetatable(1, {})",
    "setmetatable(1LL, {})",
    "setmetatable(redis.call, {})",
    "setmetatable(cjson.null, {})",
    "getmetatable('').__index = {}",
    "getmetatable('').__add = function() return 1 end",
    "getmetatable(_G).__newindex = nil",
    "return setmetatable({}, {__gc = function() mine = 1 end}).x",
    // 64-bit numbers and complex ones, which belong to the FFI.
    "return (1LL).x",
    "return (1LL)[0]",
    "return (1LL)()",
    "return #1LL",
    "return (1LL) .. ''",
    "return pairs(1LL)",
    "return rawget(1LL, 1)",
    "return rawset(1LL, 1, 2)",
    "return next(1LL)",
    "(1LL).x = 1",
    "(1LL)[0] = 1",
    "return (1i).x",
    "(1i).re = 5",
    "(1i)[0] = 1",
    "return (1i)()",
    "return unpack(1LL)",
    "return cjson.encode(1i)",
    "return redis.call(1LL)",
    "return string.rep('x', 1LL, 2)()",
    "return bit.lshift(1i, 1)[0]",
    // Writes to what all scripts share.
    "mine = 1",
    "_G.mine = 1",
    "_G['string'] = 1",
    "_G._G = {}",
    "string = {}",
    "redis = {}",
    "cjson = nil",
    "tostring = nil",
    "KEYS = {}",
    "ARGV = {}",
    "function redis.mine() end",
    "function tostring() end",
    "redis.call = nil",
    "redis.mine = 1",
    "string.mine = 1",
    "string.rep = nil",
    "table.mine = 1",
    "table[1] = 1",
    "math.mine = 1",
    "bit.mine = 1",
    "coroutine.mine = 1",
    "os.mine = 1",
    "cjson.mine = 1",
    "cjson.encode = nil",
    "cmsgpack.mine = 1",
    "struct.mine = 1",
    "rawset(_G, 'mine', 1)",
    "rawset(redis, 'call', 1)",
    "rawset(string, 'mine', 1)",
    "rawset(_G, 1, 1)",
    "table.insert(_G, 1)",
    "table.insert(string, 1, 1)",
    "table.remove(redis)",
    "table.sort(_G)",
    "table.sort(cjson, function() return true end)",
    "xpcall(rawset, function() end, _G, 'mine', 1) return rawget(_G, 'mine')",
    "pcall(rawset, _G, 'mine', 1) return rawget(_G, 'mine')",
    "pcall(function() mine = 1 end) return rawget(_G, 'mine')",
    "coroutine.wrap(function() mine = 1 end)()",
    "load('mine = 1')()",
    "load('string.mine = 1')()",
    "local t = setmetatable({}, {__newindex = string}) t.mine = 1",
    "local t = setmetatable({}, {__newindex = _G}) t.mine = 1",
    "for _, t in pairs(_G) do if type(t) == 'table' and t ~= KEYS and t ~= ARGV then t.mine = 1 end end",
    "local f = next(_G) for k in next, redis, nil do redis[k] = nil end",
    // What would take time or memory where no limit applies.
    "return string.rep('x', 2 ^ 40)",
    "return ('x'):rep(2 ^ 31, 'y')",
    "return ('x'):rep(1e308)",
    "return table.concat({}, '', 1, 2 ^ 30)",
    "return unpack({}, 1, 2 ^ 30)",
    "return unpack({}, 0, 2 ^ 31 - 1)",
    "return unpack({}, -2 ^ 31, 2 ^ 31 - 1)",
    "table.insert({}, -2 ^ 31, 1)",
    "return select(-2 ^ 31)",
    "return string.format('%9999d', 1)",
    "return string.format(('%s'):rep(300))",
    "return string.format('%d', redis.call)",
    "collectgarbage('stop') return collectgarbage('restart') == 1 and 1",
    "return collectgarbage('setpause', 1000) == 1 and 1",
    "local t = {} t.t = t return cjson.encode(t)",
    "local t = {} for i = 1, 2000 do t = {t} end return cjson.encode(t)",
    "local t = {} for i = 1, 60 do t = {t, t} end return cjson.encode(t)",
    "local t = {} for i = 1, 60 do t = {t, t} end return t",
    "local s, t = ('x'):rep(2 ^ 22), {} for i = 1, 1000 do t[i] = s end return t",
    "local s, t = ('x'):rep(2 ^ 22), {} for i = 1, 1000 do t[i] = s end return cjson.encode(t)",
    "local s, t = ('x'):rep(2 ^ 22), {} for i = 1, 1000 do t[i] = s end return cmsgpack.pack(t)",
    "cjson.encode_sparse_array(false, 0) return cjson.encode({[2 ^ 50] = 1})",
    "cjson.encode_max_depth(2 ^ 31 - 1) local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
    "cjson.decode_max_depth(2 ^ 31 - 1) return cjson.decode(('['):rep(1e6))",
    "return cjson.decode(('['):rep(1e6))",
    "return cjson.decode(('{\"a\":'):rep(1e6))",
    "return cjson.encode_number_precision(99)",
    "return cmsgpack.unpack(('\\145'):rep(1e6))",
    "return cmsgpack.unpack(('\\129'):rep(1e6))",
    "return cmsgpack.unpack('\\221\\255\\255\\255\\255\\1')",
    "return cmsgpack.unpack('\\223\\255\\255\\255\\255\\1')",
    "return cmsgpack.unpack('\\219\\255\\255\\255\\255\\1')",
    "return cmsgpack.unpack('\\129\\192\\1')",
    "return cmsgpack.unpack('\\129\\203\\127\\248\\0\\0\\0\\0\\0\\0\\1')",
    "return cmsgpack.unpack_one('abc', 2 ^ 31)",
    "return cmsgpack.unpack_limit('abc', -2 ^ 31, -2 ^ 31)",
    "return cmsgpack.unpack(('\\1'):rep(1e6))",
    "return struct.pack('i99999999999', 1)",
    "return struct.pack('i33', 1)",
    "return struct.pack('c2147483647', 'x')",
    "return struct.unpack('c2147483647', 'x')",
    "return struct.unpack('i4', 'abcd', 2 ^ 31)",
    "return struct.unpack('i4', 'abcd', -1)",
    "return struct.unpack('i4', 'abcd', 2 ^ 62)",
    "return struct.unpack('Lc0', '\\255\\255\\255\\255\\255\\255\\255\\255abc')",
    "return struct.unpack('lc0', '\\255\\255\\255\\255\\255\\255\\255\\255abc')",
    "return struct.unpack(('b'):rep(1e5), ('x'):rep(1e5))",
    "return struct.pack('!3i', 1)",
    "return struct.size('!0i')",
    "return bit.tohex(1, -2 ^ 31 - 1)()",
    "return redis.sha1hex({})()",
    "return redis.log(redis.LOG_WARNING, setmetatable({}, {__tostring = function() error 'x' end}))",
    // Errors, and their handlers.
    "error(setmetatable({}, {__tostring = function() mine = 1 end}))",
    "error(setmetatable({}, {__index = function() mine = 1 end}))",
    "error({err = setmetatable({}, {__tostring = function() return 'x' end})})",
    "error({err = {}})",
    "error(redis)",
    "error(_G)",
    "error(cjson.null)",
    "error(redis.call)",
    "error(1LL)",
    "error(('x'):rep(2 ^ 20))",
    "xpcall(error, function(e) mine = 1 end) return rawget(_G, 'mine')",
    "local function f() return f() + 1 end f()",
    "local function f() pcall(f) end f() return nil",
    "local c c = coroutine.wrap(function() c() end) c()",
    "return coroutine.running().x",
    "coroutine.resume(coroutine.running())",
    "coroutine.yield()",
    "coroutine.wrap(function() redis.call(coroutine.yield()) end)() error 'x'",
];

/// Whether everything is as it was: the libraries have what they had, and nothing was left.
const PROBE: &str = "
    local n = 0
    for _, library in pairs({_G, redis, string, table, math, bit, coroutine, os, cjson, cmsgpack, struct}) do
      for name in pairs(library) do n = n + 1 end
      assert(rawget(library, 'mine') == nil and rawget(library, 1) == nil)
    end
    assert(('x'):rep(2) == 'xx' and #KEYS == 1 and #ARGV == 1 and KEYS[1] == 'k')
    assert(cjson.encode({1/3}) == '[0.33333333333333]' and cmsgpack.unpack(cmsgpack.pack(7)) == 7)
    assert(struct.unpack('b', struct.pack('b', 7)) == 7 and redis.sha1hex('') == 'da39a3ee5e6b4b0d3255bfef95601890afd80709')
    return n";

#[test]
fn nothing_reaches_out_and_nothing_stays() {
    assert!(OUT_OF_REACH.len() >= 150, "{}", OUT_OF_REACH.len());
    let mut bed = RedisBed::new(Limits { memory_bytes: 64 << 20, ..Limits::default() });
    let before = bed.run(PROBE).unwrap();
    for script in OUT_OF_REACH {
        match bed.run(script) {
            Ok(Value::Nil | Value::Boolean(false))
            | Err(
                CallError::Raised { .. }
                | CallError::MemoryLimit { .. }
                | CallError::TimeLimit { .. },
            ) => {}
            other => panic!("{script}: {other:?}"),
        }
        assert_eq!(bed.run(PROBE).unwrap(), before, "{script}");
    }
}

/// The same as functions, and as code that runs while a library is loaded.
#[test]
fn nothing_reaches_out_of_a_library() {
    let mut bed = RedisBed::new(Limits { memory_bytes: 64 << 20, ..Limits::default() });
    let before = bed.run_function(PROBE).unwrap();
    for body in OUT_OF_REACH {
        match bed.run_function(body) {
            Ok(Value::Nil | Value::Boolean(false))
            | Err(
                CallError::Raised { .. }
                | CallError::MemoryLimit { .. }
                | CallError::TimeLimit { .. },
            ) => {}
            other => panic!("{body}: {other:?}"),
        }
        assert_eq!(bed.run_function(PROBE).unwrap(), before, "{body}");
        assert!(bed.load(body).is_err(), "{body}");
        assert_eq!(bed.run_function(PROBE).unwrap(), before, "after loading {body}");
    }
}

/// While a library is loaded there is only what registers functions; that is all it can keep.
#[test]
fn what_is_loaded_finds_nothing_else() {
    let mut bed = RedisBed::new(Limits::default());
    let refused = [
        "redis.call('SET', 'k', 'v')",
        "redis.pcall('SET', 'k', 'v')",
        "local call = redis.call",
        "return _G",
        "local f = getmetatable('')",
        "string.rep('x', 2)",
        "pcall(error)",
        "KEYS = {}",
        "setmetatable(redis, {})",
        "redis.register_function('f', function() end) redis = nil",
        "redis.register_function{function_name = 'f', callback = setmetatable({}, {})}",
        "redis.register_function(('x'):rep(2 ^ 21), function() end)",
        "for i = 1, 1e9 do redis.register_function('f' .. i, function() end) end",
        "redis.log(redis.LOG_WARNING)",
    ];
    for body in refused {
        assert!(bed.load(body).is_err(), "{body}");
        assert_eq!(bed.run_function("return #redis.sha1hex('')").unwrap(), Value::Integer(40));
    }
    assert_eq!(bed.stored("k"), None);
    bed.load("local own = redis redis.register_function('f', function() return own.call end)")
        .unwrap();
    let kept = "local own = redis
        redis.register_function('f', function()
          return own.register_function('g', function() end)
        end)";
    bed.load(kept).unwrap();
    let values = bed.run_function("return redis.register_function").unwrap();
    assert_eq!(values, Value::Nil);
}

/// A script that runs again finds nothing of its last run.
#[test]
fn a_script_keeps_nothing() {
    let mut bed = RedisBed::new(Limits::default());
    let script = "
        local before = math.random() .. tostring(KEYS.mine) .. cjson.encode_number_precision()
        KEYS.mine = 1 cjson.encode_number_precision(3) math.randomseed(1)
        return before:sub(-5)";
    for _ in 0..3 {
        assert_eq!(bed.run(script).unwrap(), Value::String(b"nil14".to_vec()));
    }
    let random = "local r = tostring(math.random()) math.randomseed(1) return r";
    assert_ne!(bed.run(random).unwrap(), bed.run(random).unwrap());
}
