//! What OpenResty handlers cannot reach or break, whatever they try with what they have.

mod support;

use std::time::Duration;

use tokaido_script::{CallError, Limits};

use support::handlers::{answer, begin, call, call_waiting, go_on, limited, runtime};

#[test]
fn no_pointer_comes_from_what_digests_keep() {
    for name in ["md5", "sha1", "sha256", "sha512"] {
        let said = answer(&format!(
            "local digest = require('resty.{name}').new()
             digest:update('a')
             for _, value in pairs(digest) do
               assert(type(value) ~= 'userdata' and type(value) ~= 'cdata', type(value))
             end
             ngx.say(digest:update('b') and #digest:final() > 0)"
        ));
        assert_eq!(said, "true\n", "{name}");
    }
}

#[test]
fn the_metatable_of_buffers_is_out_of_reach() {
    let said = answer(
        "local buffers = require 'string.buffer'
         local buffer = buffers.new()
         for _, name in ipairs { '__index', '__gc', '__len', '__tostring', 'reserve', 'ref', 'commit', 'putcdata' } do
           ngx.say(name, ' ', buffer[name])
         end
         ngx.say(getmetatable(buffer))
         buffer:put('a', 1):set('bc') ngx.say(#buffer, buffer:tostring(), tostring(buffer), buffer .. 'd')
         ngx.say(buffers.decode(buffers.encode { 7 })[1], ' ', buffer:reset():encode('x'):decode())",
    );
    let absent = ["__index", "__gc", "__len", "__tostring", "reserve", "ref", "commit", "putcdata"];
    let absent: String = absent.map(|name| format!("{name} nil\n")).concat();
    assert_eq!(said, format!("{absent}tokaido\n2bcbcbcd\n7 x\n"));
}

/// LuaJIT runs finalizers without the hook that stops a call.
#[test]
fn no_method_of_buffers_becomes_a_finalizer() {
    let text = "-- route: /
        local buffers = require 'string.buffer'
        local methods = buffers.new().__index or buffers.new()
        pcall(function() methods.__gc = function() while true do end end end)
        for _ = 1, 1000 do buffers.new():put(string.rep('x', 10000)) end
        ngx.say('over')";
    let mut served = runtime(&[("m", text)]);
    assert_eq!(call(&mut served, "m").unwrap().body, b"over\n");
}

#[test]
fn what_is_no_text_is_not_taken_for_one() {
    for taker in [
        "ngx.escape_uri(it)",
        "ngx.md5(it)",
        "ngx.encode_base64(it)",
        "ngx.encode_args { [it] = 'a' }",
        "ngx.req.set_header('x-a', { it })",
        "ngx.resp.add_header(it, 'a')",
        "ngx.re.match(it, 'a')",
    ] {
        let said = answer(&format!(
            "local buffer = require('string.buffer').new():put('abc')
             local it = setmetatable({{}}, {{ __tostring = function() return buffer end }})
             local ok, why = pcall(function() return {taker} end)
             ngx.say(ok, ' ', why)"
        ));
        assert!(said.starts_with("false "), "{taker}: {said}");
    }
}

#[test]
fn handles_are_not_cleared() {
    let mut served = runtime(&[
        (
            "clears",
            "-- route: /a
             local clear = require 'table.clear'
             local list = { 1, 2 } clear(list)
             ngx.say(#list, ' ', pcall(clear, ngx.shared), ' ',
               require('tokaido').read(function(tx) return pcall(clear, tx.main) end))",
        ),
        (
            "gets",
            "-- route: /b\nngx.say(require('tokaido').read(function(tx) return tx.main:get('a') end))",
        ),
    ]);
    let said = String::from_utf8(call(&mut served, "clears").unwrap().body).unwrap();
    assert!(said.starts_with("0 ") && said.contains("table.clear is not for"), "{said}");
    assert_eq!(call(&mut served, "gets").unwrap().body, b"nil\n");
}

#[test]
fn a_module_does_not_wait_while_it_is_loaded() {
    let mut served = runtime(&[
        ("waits", "ngx.sleep(0.001) return {}"),
        ("m", "-- route: /a\nngx.say(pcall(require, 'waits'))"),
    ]);
    let (waits, said) = call_waiting(&mut served, "m");
    let said = said.unwrap();
    assert!(waits == 0 && said.contains("is not for a module that is being loaded"), "{said}");
}

#[test]
fn a_request_within_one_waits_if_a_light_thread_has_made_it() {
    let mut served = runtime(&[
        ("inner", "-- route: /inner\nngx.sleep(0.001) ngx.say('slept')"),
        (
            "m",
            "-- route: /a
             local thread = ngx.thread.spawn(ngx.location.capture, '/inner')
             ngx.status = 201 ngx.say('mine')
             local ok, captured = ngx.thread.wait(thread)
             ngx.say(ok, ' ', captured.status)
             ngx.say(ngx.location.capture('/inner').body)",
        ),
    ]);
    let (_, said) = call_waiting(&mut served, "m");
    assert_eq!(said.unwrap(), "mine\ntrue 200\nslept\n\n");
}

#[test]
fn a_request_within_a_read_does_not_wait() {
    let mut served = runtime(&[
        ("inner", "-- route: /inner\nngx.say((pcall(ngx.sleep, 0.001)))"),
        (
            "m",
            "-- route: /a
             local tokaido = require 'tokaido'
             local read = function() return ngx.location.capture('/inner').body end
             ngx.print(tokaido.read(read), read())
             ngx.thread.wait(ngx.thread.spawn(function() ngx.print(tokaido.read(read)) end))",
        ),
    ]);
    let (_, said) = call_waiting(&mut served, "m");
    assert_eq!(said.unwrap(), "false\ntrue\nfalse\n");
}

#[test]
fn a_read_that_was_left_keeps_nothing_from_waiting() {
    let mut served = runtime(&[(
        "m",
        "-- route: /a
         local tokaido = require 'tokaido'
         local left = coroutine.create(function()
           tokaido.read(function() coroutine.yield() ngx.say(pcall(ngx.sleep, 0)) end)
         end)
         coroutine.resume(left)
         ngx.sleep(0)
         ngx.say('slept')
         coroutine.resume(left)",
    )]);
    let (_, said) = call_waiting(&mut served, "m");
    let said = said.unwrap();
    assert!(said.starts_with("slept\nfalse") && said.contains("of one moment"), "{said}");
}

#[test]
fn the_time_limit_holds_beside_buffers() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut served = limited(
        &[(
            "m",
            "-- route: /\nlocal b = require('string.buffer').new() while true do b:reset() end",
        )],
        limits,
    );
    let (error, _) = *call(&mut served, "m").unwrap_err();
    assert!(matches!(error, CallError::TimeLimit { .. }), "{error}");
}

#[test]
fn nothing_is_lost_with_what_no_longer_waits_for_a_semaphore() {
    let mut served = runtime(&[(
        "m",
        "-- route: /a
         local sem = require('ngx.semaphore').new()
         local thread = ngx.thread.spawn(function() sem:wait(10) end)
         sem:post()
         ngx.say(sem:count())
         ngx.thread.kill(thread)
         ngx.say(sem:count(), ' ', sem:wait(0), ' ', sem:wait(0))
         ngx.say(pcall(sem.wait, sem, 0/0))",
    )]);
    let (_, said) = call_waiting(&mut served, "m");
    let said = said.unwrap();
    assert!(said.starts_with("0\n1 true niltimeout\nfalse"), "{said}");
}

#[test]
fn a_module_that_was_cut_off_while_it_loaded_is_nothing_to_those_that_wait() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut served = limited(
        &[
            ("endless", "while true do end"),
            ("loads", "-- route: /a\nrequire 'endless'"),
            ("waits", "-- route: /b\nngx.sleep(0.001) ngx.sleep(0) ngx.say('slept')"),
        ],
        limits,
    );
    let mut response = begin(&mut served, "waits").unwrap();
    let (error, _) = *call(&mut served, "loads").unwrap_err();
    assert!(matches!(error, CallError::TimeLimit { .. }), "{error}");
    while let Some(waiting) = response.waiting.take() {
        std::thread::sleep(waiting.time);
        go_on(&mut served, "waits", waiting.slot, &mut response).unwrap();
    }
    assert_eq!(response.body, b"slept\n");
}
