//! Handlers in OpenResty's dialect: what the VM makes of their files. Their responses are compared with nginx's in
//! `tests/openresty/`.

use std::time::Duration;

use tokaido_script::{CallError, HttpRequest, Limits, Settings, Waiting};

use support::handlers::{
    answer, begin, body, call, call_waiting, call_with, go_on, limited, runtime, start,
};

mod support;

#[test]
fn a_file_answers_the_route_that_it_names() {
    let text = "-- route: GET /hello\nngx.say(\"hello\")";
    let mut served = runtime(&[("hello", text)]);
    let route = served.0.procedures()[0].route.clone().unwrap();
    assert_eq!((&*route.method, &*route.pattern), ("GET", "/hello"));
    for _ in 0..3 {
        let response = call(&mut served, "hello").unwrap();
        assert_eq!((response.status, &*response.body), (200, &b"hello\n"[..]));
        assert_eq!(response.headers, [("content-type".to_owned(), b"text/plain".to_vec())]);
    }
}

#[test]
fn files_have_their_globals_in_common() {
    let mut served = runtime(&[
        ("init", "-- phase: init\nconfig = { greeting = 'hi' }"),
        ("hello", "-- route: /hello\nngx.say(config.greeting, ' ', nothing)"),
    ]);
    assert_eq!(body(&mut served, "hello"), "hi nil\n");
}

#[test]
fn limits_hold_in_every_phase() {
    let endless = "while true do pcall(function() while true do end end) end";
    let greedy = "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end";
    for phase in ["rewrite", "access", "content", "header_filter", "body_filter", "log"] {
        for (text, is_time) in [(endless, true), (greedy, false)] {
            let own = match phase {
                "content" => format!("-- route: /\n{text}"),
                _ => format!("-- route: /\n-- {phase}: part\nngx.say('a')"),
            };
            let files = [
                ("m", &*own),
                ("part", text),
                ("other", "-- route: /other\nngx.say('still here')"),
            ];
            let time = Duration::from_millis(if is_time { 300 } else { 30_000 });
            let limits = Limits { time, memory_bytes: 16 << 20, ..Limits::default() };
            let mut served = limited(&files, limits);
            let (error, _) = *call(&mut served, "m").unwrap_err();
            let is_as_expected = match error {
                CallError::TimeLimit { .. } => is_time,
                CallError::MemoryLimit { .. } => !is_time,
                _ => false,
            };
            assert!(is_as_expected, "{phase}: {error}");
            assert_eq!(body(&mut served, "other"), "still here\n", "{phase}");
        }
    }
}

#[test]
fn what_was_sent_before_a_failure_is_told_apart_from_an_answer() {
    let mut served = runtime(&[
        ("before", "-- route: /a\nngx.header.x = 'y' error('broken')"),
        ("after", "-- route: /b\nngx.status = 202 ngx.print('so far') error('broken')"),
        ("well", "-- route: /c\nngx.print('well')"),
    ]);
    for _ in 0..2 {
        let (error, response) = *call(&mut served, "before").unwrap_err();
        assert_eq!(error.to_string(), "before.lua:2: broken");
        assert!(!response.is_sent && response.headers.is_empty());
        let (_, response) = *call(&mut served, "after").unwrap_err();
        assert!(response.is_sent);
        assert_eq!((response.status, &*response.body), (202, &b"so far"[..]));
        assert_eq!(body(&mut served, "well"), "well");
    }
}

#[test]
fn a_request_knows_nothing_of_the_one_before() {
    let mut served = runtime(&[
        (
            "set",
            "-- route: /a\nngx.status = 201 ngx.ctx.a = 1 ngx.var.x = 'y'
            ngx.header.content_type = 'text/html' ngx.print('set')",
        ),
        ("left", "-- route: /b\nngx.status = 201 ngx.say('a') ngx.exit(403)"),
        ("failed", "-- route: /c\nngx.status = 201 ngx.say('a') error('broken')"),
        ("yielded", "-- route: /d\nngx.ctx.a = 1 coroutine.yield() ngx.print('went on')"),
        (
            "look",
            "-- route: /e\nlocal seen = { ngx.status, ngx.ctx.a, ngx.var.x, ngx.headers_sent }
            for i = 1, 4 do seen[i] = tostring(seen[i]) end
            ngx.print(table.concat(seen, ' '))",
        ),
    ]);
    for before in ["look", "set", "look", "left", "failed", "yielded", "set", "set"] {
        let called = call(&mut served, before);
        assert_eq!(called.is_err(), before == "failed");
        let response = call(&mut served, "look").unwrap();
        assert_eq!(String::from_utf8_lossy(&response.body), "0 nil nil false", "after {before}");
        assert_eq!(response.status, 200);
        assert_eq!(response.headers, [("content-type".to_owned(), b"text/plain".to_vec())]);
    }
    assert_eq!(body(&mut served, "yielded"), "went on");
}

#[test]
fn a_handler_that_writes_says_so_and_is_a_transaction() {
    let count = "local t = require 'tokaido'
        ngx.say(t.write(function(tx, by) return tx.main:increment('n', by) end, 2))";
    let mut served = runtime(&[
        ("write", &format!("-- route: POST /a\n-- writes: true\n{count}")),
        ("fail", &format!("-- route: POST /b\n-- writes: true\n{count} error('broken')")),
        ("left", &format!("-- route: POST /c\n-- writes: true\n{count} ngx.exit(403)")),
        ("read", &format!("-- route: POST /d\n{count}")),
        (
            "look",
            "-- route: /e\nlocal t = require 'tokaido'
            ngx.say(t.read(function(tx) return tx.main:get('n') end))",
        ),
    ]);
    assert_eq!(body(&mut served, "write"), "2\n");
    call(&mut served, "fail").unwrap_err();
    assert_eq!(body(&mut served, "look"), "2\n");
    assert_eq!(body(&mut served, "left"), "4\n");
    assert_eq!(body(&mut served, "look"), "4\n");
    let (error, _) = *call(&mut served, "read").unwrap_err();
    assert!(error.to_string().contains("-- writes: true"), "{error}");
}

#[test]
fn a_cookie_of_many_spaces_is_read_in_one_go() {
    let mut served =
        runtime(&[("m", "-- route: /\nngx.print(#ngx.var.cookie_a, ngx.var.cookie_b)")]);
    let cookies = format!("a=x{0}x; {0}b{0}={0}y", " ".repeat(1 << 18));
    let headers = [("cookie", cookies.as_bytes())];
    let request = HttpRequest { method: "GET", headers: &headers, ..HttpRequest::default() };
    let response = call_with((&mut served.0, &served.1), "m", &request).unwrap();
    assert_eq!(response.body, format!("{}y", (1 << 18) + 2).as_bytes());
}

#[test]
fn a_request_within_a_request_finds_the_route_that_the_server_would() {
    let mut served = runtime(&[
        ("any", "-- route: /a\nngx.header.x = 'any'"),
        ("get", "-- route: GET /a\nngx.header.x = 'get'"),
        ("name", "-- route: /user/:userId\nngx.print(ngx.var.userId)"),
        (
            "outer",
            "-- route: /outer\nlocal capture = ngx.location.capture
            ngx.print(capture('/a', { method = ngx.HTTP_HEAD }).header.x, capture('/a').header.x,
              capture('/a', { method = ngx.HTTP_PUT }).header.x, capture('/user/7').body)",
        ),
    ]);
    assert_eq!(body(&mut served, "outer"), "getgetany7");
}

#[test]
fn what_a_handler_raises_is_no_refusal() {
    let error = "error({ message = 'secret', code = 'x', status = 404 })";
    for text in [error.to_owned(), format!("ngx.say('a') {error}")] {
        let mut served = runtime(&[("m", &format!("-- route: /\n{text}"))]);
        let (error, _) = *call(&mut served, "m").unwrap_err();
        assert!(matches!(error, CallError::Raised { .. }), "{error:?}");
        assert_eq!(error.to_string(), "secret");
    }
    let text = "-- route: /\nlocal function inner() error('broken') end inner()";
    let (error, _) = *call(&mut runtime(&[("m", text)]), "m").unwrap_err();
    let CallError::Raised { message, traceback } = error else { panic!("{error:?}") };
    assert_eq!(message, "m.lua:2: broken");
    assert!(traceback.contains("in function 'inner'"), "{traceback}");
}

#[test]
fn a_failing_file_of_the_phase_log_changes_nothing() {
    let count = "local t = require 'tokaido'
        ngx.print(t.write(function(tx) return tx.main:increment('n', 1) end))";
    for broken in ["error('broken')", "error({})", "error(nil)", "ngx.say(1)"] {
        let head = "-- writes: true\n-- log: broken\n";
        let mut served = runtime(&[
            ("broken", broken),
            ("well", &format!("-- route: /a\n{head}{count}")),
            ("ill", &format!("-- route: /b\n{head}error('of its own')")),
        ]);
        assert_eq!(body(&mut served, "well"), "1", "{broken}");
        assert_eq!(body(&mut served, "well"), "2", "{broken}");
        let (error, _) = *call(&mut served, "ill").unwrap_err();
        assert_eq!(error.to_string(), "ill.lua:4: of its own", "{broken}");
    }
}

#[test]
fn a_module_that_was_cut_off_while_it_loaded_is_loaded_anew() {
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let files = [
        ("slow", "tries = (tries or 0) + 1 while tries < 2 do end return 'slow ' .. tries"),
        (
            "leaves",
            "left = (left or 0) + 1 if left < 2 then ngx.exit(404) end return 'left ' .. left",
        ),
        ("a", "-- route: /a\nngx.print(require 'slow')"),
        ("b", "-- route: /b\nngx.print(require 'leaves')"),
    ];
    let mut served = limited(&files, limits);
    call(&mut served, "a").unwrap_err();
    assert_eq!(body(&mut served, "a"), "slow 2");
    assert_eq!(call(&mut served, "b").unwrap().status, 404);
    assert_eq!(body(&mut served, "b"), "left 2");
}

#[test]
fn headers_cannot_be_broken_open() {
    for text in [
        "ngx.header['X-A'] = 'a\\r\\nX-B: b'",
        "ngx.header['X-A\\n'] = 'a'",
        "ngx.header['X-A'] = { 'a', 'b\\n' }",
        "ngx.redirect('/a\\r\\nx: y')",
        "ngx.req.set_header('x-a', 'b\\n')",
        "ngx.req.set_header('x-a\\n', 'b')",
        "ngx.resp.add_header('x-a', 'b\\0')",
    ] {
        assert_eq!(
            answer(&format!("ngx.say((pcall(function() {text} end)))")),
            "false\n",
            "{text}"
        );
    }
}

#[test]
fn a_status_that_is_none_is_refused() {
    for status in ["99", "100", "600", "1e300", "-1", "0/0"] {
        let mut served =
            runtime(&[("m", &format!("-- route: /\nngx.status = {status} ngx.say(1)"))]);
        let (error, response) = *call(&mut served, "m").unwrap_err();
        assert!(error.to_string().contains("a status is a number"), "{error}");
        assert!(!response.is_sent);
    }
}

#[test]
fn requests_within_a_request_have_a_depth_and_leave_nothing_open() {
    let deep = "-- route: /deep\nlocal got = ngx.location.capture('/deep') ngx.print(got.status)";
    let mut served = runtime(&[
        ("deep", deep),
        ("loop", "-- route: /loop\nngx.exec('/loop')"),
        ("broken", "-- route: /broken\n-- header_filter: filter\nngx.say('inner')"),
        ("filter", "error('broken')"),
        (
            "outer",
            "-- route: /outer\nlocal got = ngx.location.capture('/broken')
            ngx.say(got.status, got.body, ngx.var.uri)",
        ),
    ]);
    assert_eq!(body(&mut served, "deep"), "200");
    let (error, _) = *call(&mut served, "loop").unwrap_err();
    assert!(error.to_string().contains("more than 10 times"), "{error}");
    assert_eq!(body(&mut served, "outer"), "500/\n");
}

#[test]
fn the_coroutines_of_phases_are_out_of_reach() {
    let mut served = runtime(&[
        ("keep", "-- route: /a\nkept = coroutine.running() ngx.say('kept')"),
        (
            "use",
            "-- route: /b\nlocal ok, message = coroutine.resume(kept, function() end)
            ngx.say(ok, ' ', message)
            ngx.say(pcall(coroutine.wrap(function() return coroutine.resume(kept) end)))",
        ),
        ("yield", "-- route: /c\ncoroutine.yield(1)"),
    ]);
    assert_eq!(body(&mut served, "keep"), "kept\n");
    let refused = "the coroutine of a phase is not for a handler to resume";
    assert_eq!(body(&mut served, "use"), format!("false {refused}\ntruefalse{refused}\n"));
    assert_eq!(body(&mut served, "yield"), "");
    assert_eq!(body(&mut served, "keep"), "kept\n");
}

#[test]
fn what_reaches_out_of_the_sandbox_is_refused() {
    for name in ["io", "debug", "package", "ffi", "jit", "dofile", "getfenv", "newproxy"] {
        let message = answer(&format!(
            "local ok, message = pcall(function() return {name}.x end) ngx.say(message)"
        ));
        assert!(message.contains(&format!("{name} is not offered: ")), "{message}");
        assert!(message.contains("docs/openresty.md"), "{message}");
    }
    assert_eq!(
        answer("ngx.say(os.execute, getmetatable(''), getmetatable(_G))"),
        "nilfalsefalse\n"
    );
}

#[test]
fn a_route_that_is_none_is_an_error_of_its_file() {
    let errors = |text: &str| {
        let (_, _, errors) = start("ngx", &[("m", text)], Limits::default(), Settings::default());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert!(errors("-- route: hello").contains("neither a path nor a method"));
    assert!(errors("-- route: /a\n-- access: nobody").contains("'nobody', is not there"));
    assert!(errors("-- phase: late").contains("no phase 'late'"));
    assert!(errors("-- phase: init\nngx.say(1)").contains("no request found"));
    assert!(errors("-- phase: init\nerror('broken')").contains("broken"));
}

#[test]
fn a_handler_waits_and_others_are_answered_meanwhile() {
    let mut served = runtime(&[
        (
            "slow",
            "-- route: /a\nngx.ctx.x = 'mine' ngx.print('1') ngx.sleep(0.001) ngx.print(ngx.ctx.x)",
        ),
        ("quick", "-- route: /b\nngx.ctx.x = 'other' ngx.print(ngx.ctx.x)"),
    ]);
    let mut response = begin(&mut served, "slow").unwrap();
    let Waiting { slot, time } = response.waiting.take().unwrap();
    std::thread::sleep(time);
    assert_eq!(body(&mut served, "quick"), "other");
    go_on(&mut served, "slow", slot, &mut response).unwrap();
    assert_eq!((response.waiting.is_none(), &*response.body), (true, &b"1mine"[..]));
    // It has finished, and cannot be resumed again.
    go_on(&mut served, "slow", slot, &mut response).unwrap_err();
    let id = served.0.find(b"slow").unwrap();
    served.0.abandon_http(id, slot);
}

#[test]
fn limits_hold_after_a_wait() {
    let short = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let small = Limits { memory_bytes: 16 << 20, time: Duration::from_secs(60), ..short };
    let endless = "-- route: /a\nngx.sleep(0.001) while true do end";
    let greedy = "-- route: /b\nngx.sleep(0.001) local t = string.rep('x', 2 ^ 25)";
    for (limits, text, is_time) in [(short, endless, true), (small, greedy, false)] {
        let files = [("m", text), ("well", "-- route: /c\nngx.sleep(0)")];
        let mut served = limited(&files, limits);
        for _ in 0..2 {
            let (waits, called) = call_waiting(&mut served, "m");
            let is_as_expected = match &called {
                Err(CallError::TimeLimit { .. }) => is_time,
                Err(CallError::MemoryLimit { .. }) => !is_time,
                _ => false,
            };
            assert!(waits == 1 && is_as_expected, "{called:?}");
            assert!(call_waiting(&mut served, "well").1.is_ok());
        }
    }
}

#[test]
fn what_waits_when_its_virtual_machine_is_replaced_is_an_error() {
    let limits = Limits { memory_bytes: 16 << 20, ..Limits::default() };
    let mut served = limited(
        &[
            ("slow", "-- route: /a\nngx.sleep(0.001) ngx.print('awake')"),
            ("greedy", "-- route: /b\nlocal t = string.rep('x', 2 ^ 25)"),
        ],
        limits,
    );
    let mut response = begin(&mut served, "slow").unwrap();
    let slot = response.waiting.take().unwrap().slot;
    call(&mut served, "greedy").unwrap_err();
    let error = go_on(&mut served, "slow", slot, &mut response).unwrap_err();
    assert!(error.to_string().contains("is another one by now"), "{error}");
    assert_eq!(call_waiting(&mut served, "slow").1.unwrap(), "awake");
}

#[test]
fn nothing_waits_in_a_transaction() {
    let read = "-- route: /a\nlocal t = require 'tokaido'
        ngx.say(pcall(t.read, function() ngx.sleep(0) end)) ngx.sleep(0) ngx.say('after')";
    let mut served = runtime(&[("read", read), ("any", "-- route: /b\nngx.sleep(0)")]);
    let (waits, called) = call_waiting(&mut served, "read");
    let said = called.unwrap();
    assert!(said.contains("is not for a function of tokaido.read"), "{said}");
    assert!(said.ends_with("after\n") && waits == 1, "{said}");
    // Without a caller that resumes it.
    let (error, _) = *call(&mut served, "any").unwrap_err();
    assert!(error.to_string().contains("is not for a handler that writes"), "{error}");
}

#[test]
fn light_threads_that_wait_for_each_other_are_an_error() {
    let mut served = runtime(&[(
        "m",
        "-- route: /a\nlocal a, b
        a = ngx.thread.spawn(function() ngx.sleep(0.001) return ngx.thread.wait(b) end)
        b = ngx.thread.spawn(function() ngx.sleep(0.001) return ngx.thread.wait(a) end)
        ngx.say(pcall(ngx.thread.wait, a, b))",
    )]);
    let (_, called) = call_waiting(&mut served, "m");
    let said = called.unwrap();
    assert!(said.contains("light threads wait for each other"), "{said}");
}

#[test]
fn json_has_arrays_that_are_marked_as_such() {
    let text = r#"-- route: /json
        local cjson = require "cjson"
        local function marked(list, meta) return setmetatable(list, meta) end
        ngx.say(cjson.encode { cjson.empty_array, marked({}, cjson.empty_array_mt), marked({}, {}) })
        ngx.say(cjson.encode(marked({ a = 1 }, cjson.empty_array_mt)), cjson.encode(marked({ a = 1 }, cjson.array_mt)))
        ngx.say(cjson.encode(marked({ 1, cjson.null, 3 }, cjson.array_mt)), cjson.encode(marked({}, cjson.array_mt)))
        cjson.encode_empty_table_as_object(false)
        cjson.encode_escape_forward_slash(false)
        cjson.encode_number_precision(16)
        ngx.say(cjson.encode { {}, "a/b", 1234567890123456, 0.1 })"#;
    let mut served = runtime(&[("json", text)]);
    let expected = "[[],[],{}]\n{\"a\":1}[]\n[1,null,3][]\n[[],\"a/b\",1234567890123456,0.1]\n";
    assert_eq!(body(&mut served, "json"), expected);
}

#[test]
fn json_of_any_length_is_read_in_time() {
    // Numbers were once read with a look at all of the rest of the text.
    let text = r#"-- route: /json
        local cjson = require "cjson"
        local text = "[" .. ("1.5,"):rep(300000) .. "7]"
        local list = cjson.decode(text)
        ngx.say(#list, list[300000], list[300001], cjson.encode(list) == text)"#;
    assert_eq!(body(&mut runtime(&[("json", text)]), "json"), "3000011.57true\n");
}

#[test]
fn json_has_no_more_values_than_anything_else() {
    let text = r#"-- route: /json
        local cjson = require "cjson"
        local part = {}
        for i = 1, 2001 do part[i] = 1 end
        local whole = {}
        for i = 1, 2000 do whole[i] = part end
        ngx.say(select(2, pcall(cjson.encode, whole)))"#;
    let limits = Limits { time: Duration::from_secs(30), ..Limits::default() };
    let mut served = limited(&[("json", text)], limits);
    assert_eq!(body(&mut served, "json"), "more than 4000000 values\n");
}
