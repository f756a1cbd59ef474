"""Scripts whose replies are compared between Redis and Tokaido, one per line."""

# Scripts that are run with the keys `a` and `b` and the arguments `x` and `7`, one by one.
RUN = """
return 1
return
return nil
return true
return false
return 'text'
return {1, 2, 3.99, -3.99, '4', true, false}
return {1, 2, nil, 4}
return {1, false, 3}
return {false}
return {}
return {{1, {2, {3, {}}}}, {}}
return {3.5, 1e300, -1e300, 0/0, 1/0, 1e18, 2^53, 2^53 + 1, -0.5, 0.5}
return {ok = 'fine'}
return {ok = 'two\\r\\nlines'}
return {err = 'MINE no'}
return {err = 'Mine'}
return {err = '-Mine x'}
return {err = 5, 1, 2}
return {ok = 5, 1, 2}
return {1, ok = 'fine'}
return {a = 1, b = 2}
return {1, 2, a = 3}
return {[1] = 1, [2] = 2, [4] = 4}
return {[1.5] = 1, [1] = 'one', [-1] = 2, [0] = 3}
return {double = 3.5}
return {double = 3}
return {double = 'x', 1}
return {map = {a = 1}}
return {map = {}}
return {map = {1, 2}}
return {set = {a = true}}
return {set = {}}
return {big_number = '123456789012345678901234567890'}
return {verbatim_string = {string = 'text', format = 'txt'}}
return {{ok = 'a'}, {err = 'B c'}, {double = 0.25}}
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return {true, false}
redis.setresp(3) return {map = {a = true}}
redis.setresp(3) return redis.call('hgetall', 'hash')
redis.setresp(3) return redis.call('hgetall', 'hash').map.f
redis.setresp(3) return redis.call('smembers', 'set')
redis.setresp(3) return redis.call('smembers', 'set').set.m
redis.setresp(3) return redis.call('zscore', 'zset', 'm')
redis.setresp(3) return tostring(redis.call('zscore', 'zset', 'm').double)
redis.setresp(3) return type(redis.call('get', 'missing'))
redis.setresp(3) return #redis.call('mget', 'a', 'b')
redis.setresp(3) return redis.call('mget', 'missing', 'string')
redis.setresp(3) return redis.call('zrange', 'zset', 0, -1, 'withscores')
redis.setresp(3) redis.setresp(2) return redis.call('hgetall', 'hash')
return redis.call('hgetall', 'hash')
return redis.call('smembers', 'set')
return redis.call('zscore', 'zset', 'm')
return redis.call('zrange', 'zset', 0, -1, 'withscores')
return redis.call('lrange', 'list', 0, -1)
return type(redis.call('get', 'missing'))
return redis.call('mget', 'missing', 'string')
return redis.call('set', KEYS[1], ARGV[1])
return redis.call('set', KEYS[1], ARGV[1]).ok
return redis.call('set', KEYS[1], 1.5) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 0.1) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], 10) and redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], -2^53) and redis.call('get', KEYS[1])
return redis.call('incrby', KEYS[1], ARGV[2])
return redis.call('incrby', KEYS[1], 9007199254740993)
return redis.call('set', 'k', 'v', 'ex', 100, 'nx')
return redis.call('set', 'string', 'v', 'nx')
return redis.call('incr', 'string')
return redis.pcall('incr', 'string')
return redis.pcall('incr', 'string').err
return redis.call('lpush', 'string', 1)
return redis.call('nosuch')
return redis.pcall('nosuch')
return redis.call('get')
return redis.call()
return redis.pcall()
return redis.call({})
return redis.call('get', {})
return redis.call('get', nil)
return redis.call('get', true)
return redis.call('multi')
return redis.call('exec')
return redis.call('watch', 'a')
return redis.call('eval', 'return 1', 0)
return redis.call('script', 'kill')
return redis.call('script', 'load', 'return 1')
return redis.call('function', 'list')
return redis.call('fcall', 'f', 0)
return redis.call('config', 'get', 'save')
return redis.call('client', 'id')
return redis.call('publish', 'channel', 'message')
return redis.call('subscribe', 'channel')
return redis.call('pubsub', 'numpat')
return redis.call('blpop', 'list', 0)
return redis.call('blpop', 'missing', 0)
return redis.call('auth', 'x')
return redis.call('hello')
return redis.call('ping')
return redis.call('echo', 'x')
return redis.call('select', '1')
redis.call('select', '1') redis.call('set', 'k', 'v') return redis.call('dbsize')
local ok, e = pcall(redis.call, 'incr', 'string') return {tostring(ok), type(e), e.err}
local ok, e = pcall(error, 'x') return {tostring(ok), e}
local ok, e = pcall(error, {err = 'x'}) return e
local ok, e = pcall(function() return nosuch end) return e
local ok, e = pcall(function() nosuch = 1 end) return e
error('boo')
error('boo', 0)
error('boo', 2)
error({err = 'MINE no'})
error()
error(nil)
error(5)
error(true)
local t = nil return t.x
local t = {} return t.x.y
return 1 + {}
return 'x' + 1
return #5
return nosuch
return nosuch.field
nosuch = 1
function f() end
KEYS = 1
redis = nil
redis.call = nil
redis.mine = 1
string.mine = 1
table.mine = 1
_G.mine = 1
_G._G = nil
rawset(_G, 'mine', 1)
rawset(redis, 'mine', 1)
setmetatable(_G, {})
table.insert(string, 1)
KEYS[1] = 'mine' return KEYS[1]
KEYS.x = 1 return #KEYS
return rawget(_G, 'redis') == redis
return rawget(_G, 'nosuch')
return tostring(redis.nosuch)
return 1 +
return
return '
for
local x = 5 return x end
return KEYS
return ARGV
return #KEYS + #ARGV
return {KEYS[1], ARGV[2], KEYS[3], ARGV[3]}
return select('#', ...)
return _VERSION
return {1, 2}, 3
local function f() return redis.call('incr', 'string') end local x = f() return x
return redis.error_reply('a')
return redis.error_reply('a b')
return redis.error_reply('-a b')
return redis.error_reply('-a')
return redis.error_reply('')
return redis.error_reply('a b\\r\\n')
return redis.error_reply(1)
return redis.error_reply()
return redis.error_reply('a').err
return redis.status_reply('a b')
return redis.status_reply(1)
return redis.status_reply()
return redis.sha1hex('')
return redis.sha1hex('abc')
return redis.sha1hex(12)
return redis.sha1hex()
return redis.sha1hex('a', 'b')
return redis.log(redis.LOG_WARNING, 'a', 'b')
return redis.log()
return redis.log('x', 'y')
return redis.log(9, 'y')
return redis.setresp()
return redis.setresp(4)
return redis.setresp('x')
return redis.set_repl(redis.REPL_ALL)
return redis.set_repl(redis.REPL_NONE)
return redis.set_repl(9)
return redis.set_repl()
return redis.replicate_commands()
return redis.breakpoint()
return redis.debug('x')
return redis.acl_check_cmd('get', 'x')
return redis.acl_check_cmd('nosuch')
return redis.acl_check_cmd()
return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}
return {redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL}
return tostring(redis.register_function)
return loadstring('return 7')()
return load(function() return nil end) and 1
return loadstring('return nosuch')()
return tostring(loadstring('return +'))
return tostring(dofile)
return tostring(print)
return tostring(require)
return tostring(package)
return tostring(io)
return tostring(debug)
return math.floor(3.7)
return {math.max(1, 9), math.abs(-3), math.fmod(7, 3)}
return {string.format('%d %s %5.2f %q', 3, 'x', 1.5, 'a'), ('x'):rep(3), ('abc'):sub(2), ('abc'):byte(1)}
return {table.concat({1, 2, 3}, ','), #table.concat({})}
local t = {3, 1, 2} table.sort(t) return t
local t = {} for k, v in pairs({a = 1}) do t[#t + 1] = k end return t
local t = {} for w in ('a b c'):gmatch('%a') do t[#t + 1] = w end return t
return {('hello'):find('l'), ('hello'):gsub('l', 'L')}
return tostring(tonumber('0x10')) .. tostring(tonumber('x'))
return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10), bit.lshift(1, 4), bit.rshift(256, 4), bit.tohex(255), bit.bnot(0)}
return {unpack({1, 2, 3})}
return coroutine.wrap(function() return 7 end)()
"""

LIBRARIES = r"""
return cjson.encode({1, 2, {a = 1}})
return cjson.encode({})
return cjson.encode({{}, {}})
return cjson.encode({[1] = 1, [2] = 2, [5] = 5})
return cjson.encode({[1] = 1, [100] = 2})
return cjson.encode({[10] = 1})
return cjson.encode({[11] = 1})
return cjson.encode({[1.5] = 1})
return cjson.encode({[-1] = 1})
return cjson.encode({[0] = 1})
return cjson.encode({[{}] = 1})
return cjson.encode({[true] = 1})
return cjson.encode('text')
return cjson.encode(nil)
return cjson.encode(cjson.null)
return cjson.encode({cjson.null, true, false})
return cjson.encode(true)
return cjson.encode({1, 1.5, -1, 0.1, 1e15, 1e14, 123456789012345, 1e100, 1/3, 2^53})
return cjson.encode('/\127\0\1\31"\\\b\f\n\r\t')
return cjson.encode('\195\169\255')
return cjson.encode(0/0)
return cjson.encode(1/0)
return cjson.encode(redis.call)
return cjson.encode({redis.call})
return cjson.encode(coroutine.create(function() end))
return cjson.encode()
return cjson.encode(1, 2)
return cjson.decode('[1,2,{"a":1}]')
return cjson.decode('{"a":{"b":[1,2,3]}}').a.b
return cjson.decode('{"a":1,"a":2}').a
return cjson.decode('[]')
return cjson.decode('{}')
return tostring(cjson.decode('null') == cjson.null)
return cjson.decode('[null, 1]')
return cjson.decode(' [ 1 , 2 ] ')
return cjson.decode('"a\\u00e9\\ud83d\\ude00\\n\\/"')
return cjson.decode('"\\ud83d"')
return cjson.decode('"\\ude00"')
return cjson.decode('"\\u12g4"')
return cjson.decode('"\\x"')
return cjson.decode('"abc')
return cjson.decode('true')
return cjson.decode('false')
return cjson.decode('truex')
return cjson.decode('12')
return tostring(cjson.decode('-1.5e3'))
return tostring(cjson.decode('0x10'))
return tostring(cjson.decode('inf'))
return tostring(cjson.decode('-Infinity'))
return tostring(cjson.decode('nan'))
return tostring(cjson.decode('01'))
return cjson.decode('+1')
return cjson.decode('-')
return cjson.decode('.5')
return cjson.decode('[1')
return cjson.decode('[1,]')
return cjson.decode('[1 2]')
return cjson.decode('{x')
return cjson.decode('{"x"')
return cjson.decode('{"x":')
return cjson.decode('{"x":1')
return cjson.decode('{"x":1,}')
return cjson.decode('{1:1}')
return cjson.decode('')
return cjson.decode('nul')
return cjson.decode('1 2')
return cjson.decode('[1]]')
return cjson.decode('\0\1')
return cjson.decode('1\0 2')
return cjson.decode(12)
return cjson.decode({})
return cjson.decode()
return cjson.decode('1', 2)
return {cjson.encode_sparse_array()}
local on = cjson.encode_sparse_array(true, 3, 5) local back = cjson.decode(cjson.encode({[1] = 1, [100] = 2})) return {tostring(on), back['1'], back['100'], back[1] == nil}
local t = {} for i = 1, 999 do t = {t} end return #cjson.encode(t)
local t = {} for i = 1, 1000 do t = {t} end return cjson.encode(t)
return type(cjson.decode(('['):rep(1000) .. (']'):rep(1000)))
return cjson.decode(('['):rep(1001) .. (']'):rep(1001))
cjson.encode_sparse_array(true) return cjson.encode({[100] = 2})
cjson.encode_sparse_array(false, 0) return #cjson.encode({[100] = 2})
return cjson.encode_sparse_array('x')
return cjson.encode_sparse_array(true, -1)
return cjson.encode_sparse_array(true, 1, 2, 3)
return cjson.encode_max_depth()
cjson.encode_max_depth(2) return cjson.encode({{1}})
cjson.encode_max_depth(2) return cjson.encode({{{1}}})
return cjson.encode_max_depth(0)
return cjson.encode_max_depth('x')
return cjson.decode_max_depth()
cjson.decode_max_depth(2) return cjson.decode('[[1]]')
cjson.decode_max_depth(2) return cjson.decode('[[[1]]]')
return cjson.encode_number_precision()
cjson.encode_number_precision(3) return cjson.encode({1/3, 1234567})
return cjson.encode_number_precision(0)
return cjson.encode_number_precision(15)
return tostring(cjson.encode_invalid_numbers())
cjson.encode_invalid_numbers('null') return cjson.encode({0/0, 1/0})
cjson.encode_invalid_numbers(true) return cjson.encode({1/0, -1/0})
return cjson.encode_invalid_numbers('x')
return tostring(cjson.decode_invalid_numbers(false))
cjson.decode_invalid_numbers('off') return cjson.decode('0x10')
cjson.decode_invalid_numbers('off') return cjson.decode('nan')
cjson.decode_invalid_numbers('off') return cjson.decode('01')
return cjson.decode_invalid_numbers('null')
return tostring(cjson.encode_keep_buffer())
return tostring(cjson.encode_keep_buffer(false))
return cjson._NAME .. cjson._VERSION .. type(cjson.null)
cjson.mine = 1
return cmsgpack.pack(1)
return cmsgpack.pack(1, 'a', {1, 2}, {a = 1}, true, false, nil, 1.5, 0.1)
return cmsgpack.pack({})
return cmsgpack.pack({[1] = 1, [3] = 3})
return cmsgpack.pack({[2] = 'b'})
return cmsgpack.pack(redis.call)
return cmsgpack.pack(cjson.null)
return cmsgpack.pack()
return cmsgpack.pack(('x'):rep(31)) .. cmsgpack.pack(('x'):rep(32)) .. #cmsgpack.pack(('x'):rep(255)) .. #cmsgpack.pack(('x'):rep(256))
return #cmsgpack.pack(('x'):rep(65535)) .. ' ' .. #cmsgpack.pack(('x'):rep(65536))
local t = {} for i = 1, 16 do t[i] = i end return cmsgpack.pack(t)
local t = {} for i = 1, 65536 do t[i] = 1 end return #cmsgpack.pack(t)
local t = {} for i = 1, 30 do t = {t} end return cmsgpack.pack(t)
return cmsgpack.pack(0, 127, 128, 255, 256, 65535, 65536, 4294967295, 4294967296, 2^53, 2^62, 2^63, 2^64)
return cmsgpack.pack(-1, -32, -33, -128, -129, -32768, -32769, -2147483648, -2147483649, -2^53, -2^63)
return {cmsgpack.unpack(cmsgpack.pack(1, 'a', {1, 2}, true, 1.5))}
return cmsgpack.unpack(cmsgpack.pack({a = {b = 7}})).a.b
return cmsgpack.unpack('\193')
return cmsgpack.unpack('\147')
return cmsgpack.unpack('\196\1a')
return cmsgpack.unpack('\217')
return cmsgpack.unpack('\219\255\255\255\255')
return cmsgpack.unpack('\221\255\255\255\255')
return cmsgpack.unpack('')
return cmsgpack.unpack({})
return {cmsgpack.unpack('\204\200\205\1\0\206\0\1\0\0\208\200\209\200\0\210\200\0\0\0\224\255')}
return tostring(cmsgpack.unpack('\207\255\255\255\255\255\255\255\255'))
return tostring(cmsgpack.unpack('\211\255\255\255\255\255\255\255\254'))
return tostring(cmsgpack.unpack('\202\63\192\0\0')) .. tostring(cmsgpack.unpack('\203\63\248\0\0\0\0\0\0'))
return {cmsgpack.unpack_one('\1\2\3')}
return {cmsgpack.unpack_one('\1\2\3', 1)}
return {cmsgpack.unpack_one('\1\2\3', 2)}
return {cmsgpack.unpack_one('abc', 3)}
return cmsgpack.unpack_one('abc', 9)
return cmsgpack.unpack_one('abc', -1)
return {cmsgpack.unpack_limit('\1\2\3', 2)}
return {cmsgpack.unpack_limit('\1\2\3', 2, 1)}
return {cmsgpack.unpack_limit('\1\2\3', 9, 1)}
return {cmsgpack.unpack_limit('\1\2\3', 0)}
return cmsgpack.unpack_limit('abc', -1)
return cmsgpack._NAME .. cmsgpack._VERSION
return struct.pack('b', 1)
return struct.pack('bBhHlLiITfd', 1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5)
return struct.pack('>bBhHlLiITfd', 1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5)
return struct.pack('<i3>i3i16', -2, -2, 5)
return struct.pack('!bibl', 1, 2, 3, 4)
return struct.pack('!4bd', 1, 2)
return struct.pack('s', 'text')
return struct.pack('c3c0', 'text', 'more')
return struct.pack('xbx b', 1, 2)
return struct.pack('i', -1.9)
return struct.pack('b', 300)
return struct.pack('i', '12')
return struct.pack('s', 12)
return struct.pack('Z', 1)
return struct.pack('i9999', 1)
return struct.pack('i99999999999', 1)
return struct.pack('i', {})
return struct.pack('i')
return struct.pack('s', {})
return struct.pack('c5', 'a')
return struct.pack('!3i', 1)
return struct.pack({})
return struct.pack()
return {struct.unpack('bBhH', '\255\255\255\255\255\255')}
return {struct.unpack('>i3<i3', '\255\255\254\254\255\255')}
return {struct.unpack('s', 'ab\0cd')}
return {struct.unpack('sb', 'ab\0c')}
return {struct.unpack('bc0', '\3abcdef')}
return {struct.unpack('c2c1', 'abcdef')}
return {struct.unpack('!bi', struct.pack('!bi', 1, 2))}
return {struct.unpack('b', 'abc', 2)}
return {struct.unpack('i', 'a')}
return struct.unpack('s', 'a')
return struct.unpack('c0', 'a')
return struct.unpack('c0', 'a')
return struct.unpack('bc0', '\9a')
return struct.unpack('b', '')
return struct.unpack('i5', 'abcd')
return tostring((struct.unpack('d', struct.pack('d', 0.1)))) .. tostring((struct.unpack('>f', struct.pack('>f', 1.5))))
return {struct.size('bhilTfd'), struct.size('!bhilTfd'), struct.size('c5x'), struct.size('!8bi16')}
return struct.size('s')
return struct.size('c0')
return struct.size('!3i')
return struct.size('Z')
"""
