//! What user code must not reach, and what it must not do by accident.

mod support;

use std::time::Duration;

use support::{Bed, text, write_body};
use tokaido_script::{CallError, Limits, Value};

/// Each expression must be nil or raise: none is a way out.
const OUT_OF_REACH: &[&str] = &[
    "ffi",
    "jit",
    "io",
    "package",
    "debug",
    "dofile",
    "loadfile",
    "getfenv",
    "setfenv",
    "newproxy",
    "gcinfo",
    "module",
    "core",
    "os.execute",
    "os.exit",
    "os.getenv",
    "os.remove",
    "os.rename",
    "os.tmpname",
    "os.setlocale",
    "string.dump",
    "string.buffer",
    "require 'ffi'",
    "require 'jit'",
    "require 'io'",
    "require 'os'",
    "require 'debug'",
    "require 'string.buffer'",
    "require '../m'",
    "_G.ffi",
    "_G._G.io",
    "rawget(_G, 'debug')",
    "rawget(_G, 'ffi')",
    "load('return ffi')()",
    "load('return io', 'x', 't')()",
    "loadstring('return package')()",
    "load('\\27LJ\\2\\10')()",
    "load(function() return nil end, 'x', 'b')()",
    "load('return debug', 'x', 'b', _G)()",
    "getmetatable('').__index",
    "getmetatable(tx).__index",
    "getmetatable(tx.main).__index",
    "getmetatable(_G).__index",
    "getmetatable(tokaido).__index",
    "setmetatable(tx, {})",
    "setmetatable(tx.main, {})",
    "setmetatable(_G, {})",
    "setmetatable('', {})",
    "collectgarbage('stop')",
    "collectgarbage()",
    "collectgarbage('setpause', 1000)",
    "tokaido.core",
    "tokaido.transact(function() end)",
    "tokaido.snapshot(function() end)",
    "(1LL).x",
    "(1LL)[0]",
    "rawset(1LL, 1, 2)",
    "getmetatable(1LL).__index",
    "tx.main.index.x",
    "coroutine.running().x",
];

#[test]
fn nothing_reaches_out() {
    for expression in OUT_OF_REACH {
        let mut bed = Bed::one(&write_body(&format!("return {expression}")));
        match bed.run() {
            Ok(Value::Nil) | Err(CallError::Raised { .. }) => {}
            other => panic!("{expression}: {other:?}"),
        }
    }
}

#[test]
fn what_belongs_to_the_language_is_there() {
    let mut bed = Bed::body(
        "assert(#os.date() > 0 and os.time() > 0 and os.clock() >= 0 and os.difftime(2, 1) == 1)
         assert(require('bit').band(6, 3) == 2 and bit.bor(1, 2) == 3)
         assert(load('return 1 + 1')() == 2)
         assert(select(2, load('return +')):find('unexpected'))
         assert(('%d'):format(3) == '3' and ('abc'):upper() == 'ABC')
         assert(collectgarbage('count') > 0)
         assert(math.floor(1.5) == 1 and unpack({1, 2}) == 1)
         assert(coroutine.wrap(function() return 7 end)() == 7)
         assert(table.concat({1, 2}, ',') == '1,2')
         return 'all'",
    );
    assert_eq!(bed.run().unwrap(), text("all"));
}

/// Accidents, with the place and the message that they give.
#[test]
fn accidents_are_errors_with_a_place() {
    for (body, expected) in [
        ("count = 1", "assignment to undeclared variable 'count'; declare it with 'local'"),
        ("return cuont", "undeclared variable 'cuont'"),
        ("tx.main = 1", "tx.main is a database; write with tx.main:put(key, value)"),
        ("tx.main.a = 1", "a database has no field 'a'; write with db:put(key, value)"),
        ("tx.main:gte('a')", "a database has no method 'gte'"),
        ("tx.main.get('a')", "call methods with a colon, as in db:get(key)"),
        ("tx.main:get()", "a key is a string or a number, this one is nil"),
        ("tx.main:get({})", "a key is a string or a number, this one is a table"),
        ("tx.main:get('')", "a key has 1 to 4096 bytes, this one has 0"),
        ("tx.main:put('a')", "a value is a string or a number, this one is nil"),
        (
            "tx.main:put('a', {})",
            "a value is a string or a number, this one is a table; tokaido.json.encode makes a string of it",
        ),
        ("tx.main:put('a', 0/0)", "NaN cannot be stored"),
        (
            "tx.main:put('a', 1, 5)",
            "the options are a table, as {ttl_ms = 60000}, these are a number",
        ),
        (
            "tx.main:put('a', 1, {ttl = 5})",
            "no option 'ttl'; there are ttl_ms, expires_at_ms, flags",
        ),
        ("tx.main:put('a', 1, {flags = -1})", "flags are an integer from 0 to 4294967295"),
        ("tx.main:increment('a', 1.5)", "the increment is an integer, this is 1.5"),
        (
            "tx.main:put('a', 'x') tx.main:increment('a')",
            "the value is not a number that can be incremented; put one there first",
        ),
        ("tx.main:expire('a')", "ttl_ms is a number, this is nil"),
        (
            "tx.main:scan{form = 'a'}",
            "a scan has no option 'form'; there are prefix, from, after, to, before, reverse, limit",
        ),
        ("tx.main:scan{from = {}}", "from is a string or a number, this is a table"),
        ("tx.main:scan{limit = 'x'}", "limit is a number, this is x"),
        ("tx.main:scan{to = 1/0}", "inf cannot be stored"),
        ("tx.main:get(0/0)", "NaN cannot be stored"),
        ("tx.main:put('a', 1, {ttl_ms = 'x'})", "ttl_ms is a number, this is x"),
        ("tx.main:put(('k'):rep(5000), 1)", "a key has 1 to 4096 bytes, this one has 5000"),
        ("tx.main:get_many{'a', {}}", "a key is a string or a number, this one is a table"),
        ("tx.main:scan(true)", "a scan takes a prefix or a table, this is a boolean"),
        (
            "for k in tx.main.scan('a') do end",
            "call a database's methods with a colon, as in db:scan()",
        ),
        (
            "return tx['no such name']",
            "bad database name \"no such name\": use 1 to 64 of a-z A-Z 0-9 _ - . with a letter, digit or _ first",
        ),
        ("tokaido.wirte(print)", "tokaido has no field 'wirte'"),
        ("tokaido.x = 1", "tokaido cannot be changed"),
        ("require 'nothing'", "no module 'nothing' in the procedures directory"),
        ("tokaido.json.decode('{')", "EOF while parsing an object at line 1 column 1"),
        ("tokaido.json.encode(print)", "the value has a function, which cannot be passed on"),
        (
            "('x'):rep(1e12)",
            "string.rep would make 1000000000000 bytes; at most 67108864 are allowed",
        ),
        (
            "local s = (','):rep(5000):match('^(.-),(.-),(.-),(.-)x$')",
            "string.match: the pattern backtracks too much on this string; make it more exact, or take the string apart first",
        ),
        (
            "local s = (','):rep(5000):gsub('.-.-.-.-.-x', '')",
            "string.gsub: the pattern backtracks too much on this string; make it more exact, or take the string apart first",
        ),
        ("error()", "error without a message"),
        ("error({})", "error with a table that has no message"),
        ("error(42, 0)", "42"),
        ("error(true)", "true"),
        ("local x = nil; return x.y", "attempt to index local 'x' (a nil value)"),
    ] {
        // None of them is ended by the time limit.
        let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
        let mut bed = Bed::with_limits(&[("m", &write_body(body))], limits);
        let Err(CallError::Raised { message, .. }) = bed.run() else { panic!("{body}") };
        assert_eq!(message, format!("m.lua:2: {expected}"), "{body}");
    }
}

#[test]
fn an_error_with_a_table_is_a_refusal() {
    let mut bed = Bed::body("error{message = 'no such page', code = 'ABSENT', status = 404}");
    let Err(CallError::Refused { message, code, status, .. }) = bed.run() else { panic!() };
    assert_eq!((&*message, code.as_deref(), status), ("no such page", Some("ABSENT"), Some(404)));
}

#[test]
fn an_accident_stays_in_its_file() {
    let spoiler = "string.format = nil table.insert = nil math = nil
        local tokaido = require 'tokaido'
        return { f = tokaido.read(function() return pcall(string.format, '') end) }";
    let mut bed = Bed::of(&[
        ("a", spoiler),
        ("m", &write_body("return ('%d'):format(math.floor(1.5)) .. string.format('x')")),
    ]);
    assert_eq!(bed.run().unwrap(), text("1x"));
    // The strings' own methods stay as well, even in the spoiler itself.
    assert!(matches!(bed.call("a.f", &[]), Ok(Value::Boolean(false))));
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
}

/// The counting matcher, used for long subjects, gives what LuaJIT's gives for short ones.
#[test]
fn long_strings_are_matched_as_short_ones_are() {
    let body = write_body(
        r##"
        local long = ("key=value; "):rep(3000)
        local short = "key=value; "
        assert(long:find("(%w+)=(%w+)") == 1 and select("#", long:find("(%w+)=(%w+)")) == 4)
        assert(select(2, long:find("=(%w+)", 12)) == 20)
        assert(select("#", long:find("%w+=%w+")) == 2)
        assert(long:find("x(%w*)$") == nil and long:match("()=") == 4)
        assert(long:match("%s*(%w+)=", -11) == "key" and long:match("k", 1e9) == nil)
        local n = 0
        for k, v in long:gmatch("(%w+)=(%w+)") do assert(k == "key" and v == "value") n = n + 1 end
        assert(n == 3000)
        n = 0 for word in long:gmatch("%a*") do n = n + 1 end
        local m = 0 for word in short:gmatch("%a*") do m = m + 1 end
        assert(n == (m - 1) * 3000 + 1, n .. " " .. m)
        for _, by in ipairs{"<%1>", "%0%0", "%%", ""} do
          local a, count = long:gsub("(%w+)=", by)
          local b = short:gsub("(%w+)=", by)
          assert(a == b:rep(3000) and count == 3000)
        end
        assert(long:gsub("%w*", "-") == (short:gsub("%w*", "-")):sub(1, -2):rep(3000) .. "-")
        assert(long:gsub("(%w+)=(%w+)", function(k, v) return v .. k end):sub(1, 8) == "valuekey")
        assert(long:gsub("(%w+)=", {key = 7}, 2):sub(1, 17) == "7value; 7value; k")
        assert(long:gsub("^(%w+)=", "") == long:sub(5))
        return "same"
        "##,
    );
    // A lot for one call on a busy machine; how long it takes is not compared.
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let mut bed = Bed::with_limits(&[("m", &body)], limits);
    match bed.run() {
        Ok(result) => assert_eq!(result, text("same")),
        Err(error) => panic!("{error}"),
    }
}
