//! The functions of `__kyototycoon__`, in scripts that check themselves.

mod support;

use support::kyoto::run;

#[test]
fn numbers_are_read_and_texts_compared() {
    run("is(kt.atoi(' -12x'), -12) is(kt.atoi('x'), 0) is(kt.atoix('1.9K'), 1945) is(kt.atoix('2k'), 2048)
         is(kt.atoix('-3M'), -3145728) is(kt.atoix('1e3'), 2 ^ 60) is(kt.atoix('9999999999999999999'), 2 ^ 63)
         is(kt.atof('1.5e-2x'), 0.015) is(kt.atof('.5'), 0.5) is(kt.atof('inf'), math.huge) is(kt.atof('x'), 0)
         is(kt.hash_murmur('abc'), 114849429314854) is(kt.hash_fnv('abc'), 101813348627779)
         is(kt.levdist('kitten', 'sitting'), 3) is(kt.levdist('日本', '日'), 3) is(kt.levdist('日本', '日', true), 1)
         is(kt.strstr('hello', 'll'), 3) is(kt.strstr('hello', 'x'), 0) is(kt.strstr('a.b.c', '.', 'xx'), 'axxbxxc')
         is(kt.strfwm('hello', 'he'), true) is(kt.strfwm('hello', 'x'), false) is(kt.strbwm('hello', 'lo'), true)
         is(kt.strbwm('hello', ''), true) is(kt.strbwm('lo', 'hello'), false)
         is(kt.regex('hello', '^h.*o$'), true) is(kt.regex('hello', 'x'), false)
         is(kt.regex('hello world', '(o) (w)', '[$2$1&$&$0]'), 'hell[wo&o wo w]orld') is(kt.regex('a', '('), false)
         is(kt.split('a,b;;c', ',;'), { 'a', 'b', '', 'c' }) is(kt.split(''), { '' }) is(kt.split('a\\0b'), { 'a', 'b' })
         is(kt.bit('and', 12, 10), 8) is(kt.bit('or', 12, 10), 14) is(kt.bit('xor', 12, 10), 6)
         is(kt.bit('not', 0), 4294967295) is(kt.bit('left', 1, 31), 2147483648) is(kt.bit('right', 2 ^ 31, 31), 1)
         assert(kt.time() > 1.6e9) is(kt.log('error', 'a line'), nil)
         assert(raises(kt.log, 'info'):find 'kt_log: invalid arguments')");
}

#[test]
fn what_would_take_long_is_refused_or_goes_another_way() {
    run("local long = ('1'):rep(2^20)
         is(kt.atof(long), math.huge) is(kt.atof(' +1.e1x'), 10) is(kt.atof('-.5e'), -0.5) is(kt.atof('.'), 0)
         is(kt.atof('-'), 0) is(kt.strstr(long .. '2', '2'), 2^20 + 1)
         is(kt.strstr(('a'):rep(2^16) .. 'b', ('a'):rep(2^15) .. 'c'), 0)
         is(kt.regex('a', ('a?'):rep(3000)), false) is(db:match_regex(('a?'):rep(3000)), nil)
         assert(raises(kt.regex, long, '[01]{100}'):find 'which is most for this expression')
         assert(raises(kt.levdist, '', long .. '1'):find 'too long')
         is(db:open(('x'):rep(5000)), false) is(kt.DB:new():open(('/'):rep(5000)), false)
         is(kt.codec('hex', 'K'), '4b') assert(raises(kt.codec, 'hex', long .. long .. '1'):find 'at most')");
}

#[test]
fn texts_are_encoded_and_numbers_packed() {
    run(
        r"is(kt.codec('url', 'a b'), 'a%20b') is(kt.codec('~hex', '6869'), 'hi') is(kt.codec('none', 'a'), nil)
         is(kt.codec('~gzip', kt.codec('gzip', 'hello')), 'hello') is(kt.codec('~zlib', 'junk'), nil)
         is(kt.pack('nN', 1, 2), '\0\1\0\0\0\2') is(kt.pack('C*', { 1, 2, 255 }), '\1\2\255') is(kt.pack('w', 300), '\130,')
         is(kt.unpack('C*', '\1\2\255'), { 1, 2, 255 }) is(kt.unpack('c', '\255'), { -1 })
         is(kt.unpack('wCn2', kt.pack('wCn2', 300, 7, { 1 }, 2)), { 300, 7, 0, 2 })
         is(kt.unpack('sSiIlLfdNM', kt.pack('sSiIlLfdNM', { -2, 3, -4, 5, -6, 7, 0.5, 0.25, 8, 9 })),
           { -2, 3, -4, 5, -6, 7, 0.5, 0.25, 8, 9 })
         is(kt.arrayload(kt.arraydump { 'a', 2, ('x'):rep(300) }), { 'a', '2', ('x'):rep(300) })
         is(kt.arraydump { 'ab', 1.5 }, '\2ab\0081.500000') is(kt.arrayload('\5ab'), {})
         is(kt.mapload(kt.mapdump { a = 1, b = 'x' }), { a = '1', b = 'x' }) is(kt.mapdump { ab = 'c' }, '\2\1abc')
         is(kt.mapload('\2\9abc'), {})",
    );
}
