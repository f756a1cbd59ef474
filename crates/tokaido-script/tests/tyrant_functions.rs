//! The functions of Tokyo Tyrant's Lua that touch no database, in scripts that check themselves.

mod support;

use support::tyrant::run;

#[test]
fn numbers_are_packed_and_texts_taken_apart() {
    run(
        r"is(_pack('nN', 1, 2), '\0\1\0\0\0\2') is(_pack('C*', { 1, 2, 255 }), '\1\2\255') is(_pack('w', 300), '\130,')
         is(_pack('CCC', 1, { 2 }, '3'), '\1\2\3') is(_pack('C3', 1), '\1') is(_pack('CC', true, 2), '\0\2')
         is(_unpack('C*', '\1\2\255'), { 1, 2, 255 }) is(_unpack('c', '\255'), { -1 }) is(_unpack('i', nil), {}) is(_unpack('iC', 'ab'), {})
         is(_unpack('wCn2', _pack('WCn2', 300, 7, { 1, 2 })), { 300, 7, 1, 2 })
         is(_unpack('sSiIlLfdNM', _pack('sSiIlLFDNM', { -2, 3, -4, 5, -6, 7, 0.5, 0.25, 8, 9 })),
           { -2, 3, -4, 5, -6, 7, 0.5, 0.25, 8, 9 })
         assert(raises(_pack):find '_pack: invalid') assert(raises(_unpack, 'C'):find '_unpack: invalid')
         is(_split('a,b;;c', ',;'), { 'a', 'b', '', 'c' }) is(_split(''), { '' }) is(_split('a\0b'), { 'a', 'b' })
         is(_split(1.5, '.'), { '1', '5' }) assert(raises(_split):find '_split: invalid')",
    );
}

#[test]
fn texts_are_encoded_and_hashed() {
    run(
        r"is(_codec('url', 'a b~'), 'a%20b~') is(_codec('url', '\255'), '%FF') is(_codec('~url', 'a+b%20c'), 'a b c')
         is(_codec('~hex', '6869'), 'hi') is(_codec('rot13', 'a'), nil)
         is(_codec('~base', 'Y!Q=='), 'a') is(_codec('~quote', 'a='), 'a') is(_codec('zlib', 'a'), nil)
         is(_codec('pack', 'aaaab'), '\4a\1b') is(_codec('~pack', '\4a\1b'), 'aaaab') is(_codec('xml', '<&'), '&lt;&amp;')
         for _, mode in ipairs { 'url', 'base', 'quote', 'hex', 'pack', 'deflate', 'gzip', 'bzip', 'xml' } do
           is(_codec('~' .. mode, _codec(mode:upper(), 'hello hello\0\255')), 'hello hello\0\255')
         end
         is(_codec('~bzip', 'junk'), nil) is(_codec('~gzip', 'junk'), nil)
         assert(raises(_codec, 'tcbs', 'a'):find '_codec with tcbs is not offered')
         assert(raises(_codec, 'hex', ('x'):rep(5 * 2^20)):find 'at most') assert(raises(_codec, 'hex'):find 'invalid')
         is(_hash('md5', 'abc'), '900150983cd24fb0d6963f7d28e17f72') is(_hash('MD5', ''), 'd41d8cd98f00b204e9800998ecf8427e')
         is(_codec('hex', _hash('md5raw', 'abc')), '900150983cd24fb0d6963f7d28e17f72') is(_hash('sha1', 'a'), nil)
         is(_hash('crc32', 'abc'), 0x352441c2) assert(raises(_hash, 'md5'):find '_hash: invalid')",
    );
}

#[test]
fn texts_are_searched_and_replaced() {
    run(
        r"is(_strstr('hello', 'll'), 3) is(_strstr('hello', 'x'), 0) is(_strstr('a.b.c', '.', 'xx'), 'axxbxxc')
         is(_strstr('abc', '', 'x'), 'abc') assert(raises(_strstr, 'a'):find '_strstr: invalid')
         is(_regex('hello', '^h.*o$'), true) is(_regex('hello', 'x'), false) is(_regex('HELLO', '*^h.*o$'), true)
         is(_regex('HELLO', '^h'), false) is(_regex('hello world', '(o) (w)', '[\\2\\1&\\&\\0]'), 'hell[woo w&o w]orld')
         is(_regex('Hello hello', '*h', 'j'), 'jello jello') is(_regex('a', '('), false) is(_regex('a', '(', 'x'), 'a')
         is(_regex('a', '*'), true) is(_regex('a', ('a?'):rep(3000)), false)
         assert(raises(_regex, ('1'):rep(2^20), '[01]{100}'):find 'which is most for this expression')
         is(_regex('abc', '', '-'), 'abc') is(_regex('abc', '*', '-'), 'abc') is(_regex('', '^$', '-'), '')
         is(_regex('abc', 'x*', '-'), '-abc') is(_regex('aab', 'a*', '-'), '--b')
         is(_codec('~bzip', _codec('bzip', ''):rep(100000)), '')
         is(_dist('kitten', 'sitting'), 3) is(_dist('日本', '日'), 3) is(_dist('日本', '日', true), 1)
         assert(raises(_dist, '', ('1'):rep(2^20 + 1)):find 'too long')
         is(_bit('and', 12, 10), 8) is(_bit('OR', 12, 10), 14) is(_bit('xor', 12, 10), 6) is(_bit('not', 0), 4294967295)
         is(_bit('left', 1, 31), 2147483648) is(_bit('right', 2 ^ 31, 31), 1) is(_bit('and', '12', '10'), 8)
         assert(raises(_bit, 'nand', 1, 2):find '_bit: invalid')",
    );
}

#[test]
fn characters_are_numbers_and_lists_are_sets() {
    run("is(_ucs('aé日x😀y'), { 97, 233, 0x65e5, 120, 121 }) is(_ucs({ 97, 233, 0x65e5 }), 'aé日') is(_ucs(''), {})
         is(_ucs({}), '') is(_ucs({ 65 + 2^16 }), 'A') is(_ucs('\\xe6'), {}) is(_ucs('\\233t\\233'), { 116 }) is(_ucs('a\\128b'), { 97, 98 })
         is(_ucs('\\240a'), { 97 }) assert(raises(_ucs):find '_ucs: invalid')
         is(_isect({ 'a', 'b', 'c' }, { 'c', 'b', 'x' }), { 'b', 'c' }) is(_isect({ 1, 1, 2 }, { 2, 1 }, { '1' }), { '1' })
         is(_isect({ 'a' }, {}), {}) is(_isect(), {}) is(_isect { 'a', 'a' }, { 'a' }) is(_isect({ 'a' }, 'b', { 'a' }), { 'a' })
         is(_isect { { 'a', 'b' }, { 'b' } }, { 'b' }) is(_union { { 'a', 'b' }, { 'b', 3 } }, { 'a', 'b', '3' })
         is(_union({ 'b', 'a' }, { 'c', 'b' }), { 'b', 'a', 'c' }) is(_union(), {})");
}

#[test]
fn the_server_is_told_of() {
    run("is(_version, '1.1.41') is(_sid, 0) is(_thnum, 1) is(_thid, 1) assert(_pid > 0) assert(_time() > 1.6e9)
         is(select('#', _log('a line')), 0) _log('a line', 2) _log(1, 9) assert(raises(_log):find '_log: invalid')
         is(_sleep(0), true) assert(raises(_sleep, 0.1):find '_sleep is not offered') assert(raises(_sleep):find 'invalid')
         for _, name in ipairs { '_eval', '_stat', '_glob', '_remove', '_mkdir' } do
           assert(raises(_G[name], 'x'):find(name .. ' is not offered.*docs/tokyo%-tyrant%-lua'))
         end");
}
