//! Handlers in the dialect of Apache's mod_lua: what the VM makes of their files. Their responses are compared with
//! Apache's in `tests/apache/`.

use std::{sync::Arc, time::Duration};

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Limits, LoadError, Mode, Runtime, Settings, Transaction,
};
use tokaido_store::Store;

use support::handlers;

mod support;

struct Bed {
    runtime: Box<dyn Runtime>,
    store: Arc<dyn Store>,
    errors: Vec<LoadError>,
}

impl Bed {
    fn with(files: &[(&str, &str)], limits: Limits, settings: Settings) -> Self {
        let (runtime, store, errors) = handlers::start("mod_lua", files, limits, settings);
        Self { runtime, store, errors }
    }

    fn of(files: &[(&str, &str)]) -> Self {
        let bed = Self::with(files, Limits::default(), Settings::default());
        assert!(bed.errors.is_empty(), "{:?}", bed.errors);
        bed
    }

    /// One file `m`.
    fn one(text: &str) -> Self {
        Self::of(&[("m", text)])
    }

    fn send(
        &mut self,
        handler: &str,
        request: &HttpRequest<'_>,
    ) -> Result<HttpResponse, CallError> {
        let id = self.runtime.find(handler.as_bytes()).unwrap();
        let mut response = HttpResponse::default();
        if self.runtime.procedures()[id.index()].mode == Mode::Read {
            let mut snapshot = self.store.snapshot().unwrap();
            let transaction = Transaction::Read(&mut *snapshot);
            self.runtime.call_http(id, transaction.into(), request, &mut response)?;
            return Ok(response);
        }
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let called = self.runtime.call_http(id, transaction.into(), request, &mut response);
        if called.is_ok() {
            writer.commit().unwrap();
        } else {
            writer.rollback().unwrap();
        }
        called.map(|()| response)
    }

    /// What `m.handle` answers to a GET request.
    fn get(&mut self) -> Result<HttpResponse, CallError> {
        self.send("m.handle", &get("/"))
    }

    fn body(&mut self) -> String {
        String::from_utf8(self.get().unwrap().body).unwrap()
    }
}

fn get(target: &str) -> HttpRequest<'_> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    HttpRequest { method: "GET", path, query, target, is_1_1: true, ..HttpRequest::default() }
}

fn message(result: Result<HttpResponse, CallError>) -> String {
    match result {
        Err(CallError::Raised { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_answers_the_route_that_it_names_or_its_own_name() {
    let bed = Bed::of(&[
        ("shop.cart", "function handle(r) end"),
        ("a", "-- route: /a/:name\n-- writes: true\n-- function: answer\nfunction answer(r) end"),
        ("b", "-- route: GET /b\nhandle = function(r) end"),
        ("util", "function help() end"),
    ]);
    let routes: Vec<_> = bed
        .runtime
        .procedures()
        .iter()
        .map(|p| {
            let route = p.route.as_ref().unwrap();
            format!("{} {} {} {:?}", p.name, route.method, route.pattern, p.mode)
        })
        .collect();
    assert_eq!(
        routes,
        [
            "a.answer * /a/:name Write",
            "b.handle GET /b Read",
            "shop.cart.handle * /shop/cart.lua Read"
        ]
    );
}

#[test]
fn a_file_that_cannot_answer_says_why() {
    for (text, expected) in [
        ("-- route: hello\nfunction handle(r) end", "its route 'hello' is neither"),
        ("-- route: /hello\nx = 1", "it has a route, and no function 'handle'"),
        ("-- function: answer\nx = 1", "it names 'answer' as function, and has no"),
        ("-- log: say\nsay = 1", "it names 'say' as log"),
        ("error('broken')", "broken"),
        ("require 'none'", "no module 'none'"),
        ("require 'm'", "modules require each other in a loop: m -> m"),
        ("local f = io.open('x')", "io is not offered; see docs/mod_lua.md"),
    ] {
        let bed = Bed::with(&[("m", text)], Limits::default(), Settings::default());
        assert!(bed.errors[0].message.contains(expected), "{text}: {:?}", bed.errors);
        assert!(bed.runtime.procedures().is_empty());
    }
}

#[test]
fn a_module_that_has_failed_is_tried_again() {
    let mut bed = Bed::of(&[
        ("m", "ready = false
            function handle(r) local _, why = pcall(require, 'late') ready = true r:puts(tostring(why), require 'late') end"),
        ("late", "if ready == false then error('too early', 0) end return ' in time'"),
    ]);
    assert_eq!(bed.body(), "too early in time");
}

#[test]
fn a_status_that_is_no_number_is_an_error_of_the_server() {
    for status in ["0 / 0", "1 / 0", "-1 / 0"] {
        let mut bed = Bed::one(&format!("function handle(r) r.status = {status} r:puts('x') end"));
        assert_eq!(bed.get().unwrap().status, 500, "{status}");
    }
}

#[test]
fn globals_stay_and_are_those_of_the_file_with_what_it_requires() {
    let mut bed = Bed::of(&[
        ("m", "require 'count' function handle(r) r:puts(count(), ' ', tostring(other)) end"),
        ("n", "other = 1 require 'count' function handle(r) r:puts(count()) end"),
        ("count", "local n = 0 function count() n = n + 1 return n end"),
    ]);
    assert_eq!(bed.body(), "1 nil");
    assert_eq!(bed.body(), "2 nil");
    assert_eq!(bed.send("n.handle", &get("/")).unwrap().body, b"1");
}

#[test]
fn data_is_written_where_the_file_says_so_and_an_error_leaves_nothing() {
    let text = "-- writes: true\nlocal tx = require('tokaido').tx
        function handle(r)
          tx.main:increment('n', 1)
          if r.args == 'fail' then r:puts('before') error('no') end
          r:puts(tx.main:get('n'))
          if r.args == 'refuse' then return 403 end
        end";
    let mut bed = Bed::one(text);
    assert_eq!(bed.body(), "1");
    assert_eq!(message(bed.send("m.handle", &get("/?fail"))), "m.lua:5: no");
    let refused = bed.send("m.handle", &get("/?refuse")).unwrap();
    assert_eq!((refused.status, refused.headers.len()), (403, 1));
    assert_eq!(bed.body(), "3");
    let mut bed = Bed::one("function handle(r) require('tokaido').tx.main:put('a', 1) end");
    assert!(message(bed.get()).contains("writes: true"));
}

#[test]
fn a_request_that_is_over_is_refused() {
    let mut bed = Bed::one(
        "function handle(r)
          if old then
            for _, use in ipairs {
              function() return old.method end, function() old:puts('x') end, function() old.status = 5 end,
              function() return old:parseargs() end,
            } do
              local ok, message = pcall(use)
              assert(not ok and message:find('this request is over', 1, true), message)
            end
            r:puts(old.puts and 'checked')
          end
          old = r
        end",
    );
    assert_eq!(bed.body(), "");
    assert_eq!(bed.body(), "checked");
}

#[test]
fn what_a_script_may_not_do_is_an_error_with_its_line() {
    for (body, expected) in [
        ("r.method = 'x'", "m.lua:1: Property [method] may not be set on a request_rec"),
        ("return r.nothing", "m.lua:1: a request has no 'nothing'; docs/mod_lua.md has all names"),
        ("r.puts('x')", "m.lua:1: call puts with a colon, as in r:puts(…)"),
        ("r:puts({})", "m.lua:1: bad argument #1 to 'puts' (string expected, got table)"),
        ("local x = r:md5()", "m.lua:1: bad argument #1 to 'md5' (string expected, got nil)"),
        (
            "r.status = 'abc'",
            "m.lua:1: bad argument #3 to '__newindex' (number expected, got string)",
        ),
        (
            "r.content_type = nil",
            "m.lua:1: bad argument #3 to '__newindex' (string expected, got nil)",
        ),
        (
            "r.notes.a = true",
            "m.lua:1: bad argument #3 to '__newindex' (string expected, got boolean)",
        ),
        ("rawset(r, 'method', 1)", "rawset is not for what tokaido has made"),
        ("rawset(r.headers_out, 'a', 1)", "rawset is not for what tokaido has made"),
        (
            "r.headers_out['X-A'] = 'a\\nB: c'",
            "the value of the header x-a has a control character",
        ),
        ("r.headers_out['X A'] = 'a'", "\"X A\" is no name of a header"),
        ("r.content_type = 'a\\r\\n\\r\\nb'", "the value of the header content-type has a control"),
        ("r:setcookie('a;b', 'c')", "m.lua:1: the name of a cookie has none of"),
        ("r:setcookie{key='a', value='c', path='/;x'}", "the Path of a cookie has no ';'"),
        ("r:ivm_set('a', {})", "m.lua:1: ivm_set takes a string, a number, a boolean or nil"),
        ("r:ivm_set('a', ('x'):rep(17 * 2^20))", "m.lua:1: ivm_set keeps at most 10000 values"),
        ("local x = r:sendfile('/etc/passwd')", "m.lua:1: this server has no document root"),
        ("local x = r.document_root", "m.lua:1: this server has no document root"),
        (
            "r:requestbody('/tmp/x')",
            "m.lua:1: r:requestbody with the name of a file is not offered",
        ),
        ("r:custom_response(404, '/x')", "m.lua:1: custom_response takes a text or a whole URL"),
        ("r:add_output_filter('none')", "m.lua:1: no output filter 'none'"),
        ("r:puts(('x'):rep(2^26 + 1))", "string.rep would make"),
        (
            "local s = ('x'):rep(2^25) for i = 1, 3 do r:puts(s) end",
            "a response has at most 67108864",
        ),
        ("local x = require('tokaido').read", "tokaido has no field 'read'"),
    ] {
        let mut bed = Bed::one(&format!("function handle(r) {body} end"));
        let told = message(bed.get());
        assert!(told.contains(expected), "{body}: {told}");
        assert!(message(bed.get()).contains(expected), "a second time: {body}");
    }
}

#[test]
fn limits_hold_and_the_vm_goes_on() {
    let text = "function filter(r) coroutine.yield() while bucket do while true do end end end
        function handle(r)
          if r.args == 'time' then while true do end end
          if r.args == 'memory' then local t = {} while true do t[#t + 1] = ('x'):rep(2^20) .. #t end end
          if r.args == 'pattern' then for _ = 1, 1000 do r:regex(('a'):rep(2^12) .. '!', '(a+)+$') end end
          if r.args == 'filter' then r:add_output_filter('filter') end
          r:puts('well')
        end";
    let short = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let small = Limits { memory_bytes: 32 << 20, time: Duration::from_secs(60), ..short };
    for (limits, expected, queries) in [
        (short, "time limit", &["/?time", "/?filter", "/?pattern"][..]),
        (small, "memory", &["/?memory"]),
    ] {
        let mut bed = Bed::with(&[("m", text)], limits, Settings::default());
        for query in queries.repeat(2) {
            let error = bed.send("m.handle", &get(query)).unwrap_err().to_string();
            assert!(error.contains(expected), "{query}: {error}");
            assert_eq!(bed.body(), "well");
        }
    }
}

#[test]
fn values_are_left_for_other_requests_and_other_vms() {
    let settings = Settings::default();
    let text = "function handle(r)
        local n, b, s = r:ivm_get('n'), r:ivm_get('b'), r:ivm_get('s')
        r:puts(tostring(n), ' ', tostring(b), ' ', tostring(s and #s))
        r:ivm_set('n', (n or 0) + 0.5) r:ivm_set('b', not b) r:ivm_set('s', not s and 'a\\0b' or nil)
      end";
    let make = || Bed::with(&[("m", text)], Limits::default(), settings.clone());
    let (mut first, mut second) = (make(), make());
    assert_eq!(first.body(), "nil nil nil");
    assert_eq!(second.body(), "0.5 true 3");
    assert_eq!(first.body(), "1 false nil");
}

#[test]
fn files_are_read_below_the_document_root() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "hello").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
    let text = "function handle(r)
        local s = r:stat('a.txt')
        r:puts(r:sendfile(r.document_root .. '/a.txt'), ' ', s.size, ' ', s.filetype, ' ')
        r:puts(tostring(r:stat('none')), tostring(r:sendfile('none')), tostring(r:sendfile('link')))
        r:puts(tostring(pcall(r.sendfile, r, '../x')), tostring(pcall(r.stat, r, '/etc/passwd')))
      end";
    let settings =
        Settings { document_root: Some(directory.path().to_owned()), ..Settings::default() };
    let mut bed = Bed::with(&[("m", text)], Limits::default(), settings);
    assert_eq!(bed.body(), "hello5 5 1 nilfalsefalsefalsefalse");
}

#[test]
fn hooks_are_called_in_the_order_of_phases() {
    let mut bed = Bed::of(&[
        (
            "guard",
            "-- quick_handler: quick\n-- translate_name: translate\n-- access_checker: check\n-- type_checker: kind\n\
             -- fixups: fix\n-- insert_filter: insert\n-- log: note\n-- output_filter: upper\n
             local function note_phase(r, name) r.notes.phases = (r.notes.phases or '') .. name .. ' ' end
             function quick(r)
               note_phase(r, 'quick')
               if r.args == 'quick' then r:puts('quick') return apache2.OK end
               return apache2.DECLINED
             end
             function translate(r)
               note_phase(r, 'translate')
               if r.args == 'other' then r.filename = 'other.lua' return apache2.OK end
               if r.args == 'uri' then r.uri = '/other.lua' end
               if r.args == 'lost' then r.uri = '/lost' end
               return apache2.DECLINED
             end
             function check(r) note_phase(r, 'access') if r.args == 'no' then return 403 end return apache2.OK end
             function kind(r) note_phase(r, 'type') r.content_type = 'text/x' return apache2.OK end
             function fix(r) note_phase(r, 'fixups') return apache2.DECLINED end
             function insert(r) note_phase(r, 'insert') if r.args == 'upper' then r:add_output_filter('upper') end end
             function upper(r)
               coroutine.yield('<')
               while bucket do coroutine.yield(bucket:upper()) end
               coroutine.yield('>')
             end
             function note(r)
               assert(not pcall(r.puts, r, 'late'), 'nothing is written any more')
               r:ivm_set('logged', r.uri .. ' ' .. r.status) error('in the log')
             end",
        ),
        ("m", "function handle(r) r:puts(r.notes.phases) end"),
        ("other", "function handle(r) r:puts('other ', r:ivm_get('logged')) end"),
    ]);
    let mut send = |query| {
        let response = bed.send("m.handle", &get(query)).unwrap();
        (response.status, String::from_utf8(response.body).unwrap())
    };
    let phases = "quick translate access type fixups insert ";
    assert_eq!(send("/a"), (200, phases.to_owned()));
    assert_eq!(send("/b?quick"), (200, "quick".to_owned()));
    assert_eq!(send("/?upper"), (200, format!("<{}>", phases.to_uppercase())));
    assert_eq!(send("/c?no").0, 403);
    assert_eq!(send("/?other"), (200, "other /c 403".to_owned()));
    assert_eq!(send("/?uri"), (200, "other / 200".to_owned()));
    assert_eq!(send("/?lost").0, 404);
}

#[test]
fn filters_see_the_bodies_as_a_whole() {
    let text = "-- input_filter: input\n-- output_filter: output\n
        function input(r)
          coroutine.yield()
          while bucket do coroutine.yield((bucket:gsub('a', 'b'))) end
          coroutine.yield('&end=1')
        end
        function output(r)
          if r.args == 'none' then return end
          coroutine.yield('head ')
          while bucket do coroutine.yield(bucket:reverse()) end
          if r.args == 'fail' then error('in the filter') end
          coroutine.yield(7)
        end
        function handle(r)
          local body, len = r:requestbody()
          r:puts(body, ' ') r:puts(len)
          if r.args == 'refuse' then return 400 end
        end";
    let mut bed = Bed::one(text);
    let post = |target| HttpRequest { method: "POST", body: b"banana", ..get(target) };
    let sent = bed.send("m.handle", &post("/")).unwrap();
    assert_eq!(String::from_utf8(sent.body).unwrap(), "head 21 1=dne&bnbnbb7");
    assert_eq!(bed.send("m.handle", &post("/?none")).unwrap().body, b"bbnbnb&end=1 12");
    assert_eq!(bed.send("m.handle", &post("/?refuse")).unwrap().status, 400);
    assert!(message(bed.send("m.handle", &post("/?fail"))).contains("in the filter"));
    assert_eq!(bed.send("m.handle", &post("/?none")).unwrap().status, 200);
}

#[test]
fn what_the_route_has_matched_is_in_the_environment() {
    let text = "-- route: /shop/:item/*rest\nfunction handle(r)
        r:puts(r.subprocess_env.MATCH_ITEM, ' ', r.subprocess_env.match_rest, ' ', r.path_info) end";
    let mut bed = Bed::one(text);
    let parameters = &[("item", "tea pot"), ("rest", "a/b")];
    let request = HttpRequest { parameters, ..get("/shop/tea%20pot/a/b") };
    assert_eq!(bed.send("m.handle", &request).unwrap().body, b"tea pot a/b /a/b");
}

#[test]
fn a_cookie_of_many_spaces_is_read_in_one_go() {
    let mut bed = Bed::one(
        "function handle(r) r:puts(#r:getcookie('a'), r:getcookie('b') or '-', r:getcookie('c') or '-') end",
    );
    let cookies = format!("a=x{0}x;{0}b=y{0};{0}c", " ".repeat(1 << 18));
    let headers = [("cookie", cookies.as_bytes())];
    let request = HttpRequest { headers: &headers, ..get("/") };
    let response = bed.send("m.handle", &request).unwrap();
    assert_eq!(response.body, format!("{}y-", (1 << 18) + 2).as_bytes());
}

#[test]
fn a_guard_that_is_misspelt_or_named_twice_is_an_error() {
    for (comments, expected) in [
        ("-- acces_checker: check", "says nothing that is known"),
        ("-- access_checker: check\n-- access_checker: check", "it says `access_checker` twice"),
    ] {
        let text = format!("{comments}\nfunction check(r) return 403 end");
        let bed = Bed::with(&[("guard", &text)], Limits::default(), Settings::default());
        let messages: Vec<_> = bed.errors.iter().map(ToString::to_string).collect();
        assert!(messages.iter().any(|message| message.contains(expected)), "{messages:?}");
    }
}

#[test]
fn a_filter_sees_what_comes_with_a_status_of_success() {
    for (result, status) in [("", 200), ("return 200", 200), ("return 201", 201)] {
        let text = format!(
            "-- output_filter: up\nfunction up(r) coroutine.yield() while bucket do coroutine.yield(bucket:upper()) end end\n\
             function handle(r) r:puts('hello') {result} end"
        );
        let response = Bed::one(&text).get().unwrap();
        assert_eq!((response.status, &response.body[..]), (status, &b"HELLO"[..]), "{result}");
    }
}

#[test]
fn what_is_kept_of_a_request_is_out_of_reach() {
    let mut bed = Bed::one(
        "function handle(r) for _, n in ipairs { 'script', 'pieces', 'filters', 'run' } do \
         r:puts(tostring(pcall(function() return r[n] end)), ' ') end end",
    );
    assert_eq!(bed.body(), "false false false false ");
}

#[test]
fn a_translation_goes_to_the_handler_of_the_method() {
    let mut bed = Bed::of(&[
        ("a", "-- route: GET /inner\nfunction handle(r) r:puts('got') end"),
        ("b", "-- route: DELETE /inner\nfunction handle(r) r:puts('deleted') end"),
        (
            "m",
            "-- translate_name: go\nfunction go(r) r.uri = '/inner' return apache2.OK end\nfunction handle(r) end",
        ),
    ]);
    assert_eq!(bed.body(), "got");
}

#[test]
fn output_filters_of_one_name_are_told_apart_or_refused() {
    let filter = |mark: &str| {
        format!(
            "-- output_filter: mark
             function mark(r) coroutine.yield('{mark}') while bucket do coroutine.yield(bucket) end end
             function handle(r) if r.args == '404' then return 404 end r:puts('said') end"
        )
    };
    let other = "function handle(r) r:add_output_filter('mark') r:puts('never') end";
    let files = [("a", &*filter("A")), ("b", &*filter("B")), ("c", other)];
    let mut bed = Bed::with(&files, Limits::default(), Settings::default());
    let mut body = |name: &str, target| bed.send(name, &get(target)).unwrap().body;
    assert_eq!((body("a.handle", "/"), body("b.handle", "/")), (b"Asaid".into(), b"Bsaid".into()));
    // A page of the server's own passes no filter, as in Apache.
    assert!(body("a.handle", "/?404").starts_with(b"{\"error\""));
    let error = bed.send("c.handle", &get("/")).unwrap_err().to_string();
    assert!(error.contains("several files have an output filter 'mark': a.lua, b.lua"), "{error}");
}

/// Each such call would recurse deeper, until the C stack is used up.
#[test]
fn an_input_filter_that_asks_for_the_body_is_an_error() {
    let text = "-- route: /\n-- input_filter: filter
        function filter(r) coroutine.yield() coroutine.yield(r:requestbody()) end
        function handle(r) r:puts(r:requestbody()) end";
    let mut bed = Bed::one(text);
    let request = HttpRequest { method: "POST", body: b"abc", ..get("/") };
    let error = bed.send("m.handle", &request).unwrap_err();
    assert!(error.to_string().contains("gets the body in pieces"), "{error}");
}
