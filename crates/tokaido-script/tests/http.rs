//! Handlers: what they get, and what happens to what they return.

mod support;

use support::{Bed, request};
use tokaido_script::{CallError, HttpRequest, HttpResponse, Mode, Runtime as _};

/// A handler `m.f` on `GET /` with this body.
fn bed(body: &str) -> Bed {
    Bed::one(&format!(
        "local tokaido = require 'tokaido'
        return {{ f = tokaido.http('GET /', function(tx, req, res) {body} end) }}"
    ))
}

fn get(body: &str) -> HttpResponse {
    bed(body).http("m.f", &request("GET", "/")).unwrap()
}

fn shown(response: &HttpResponse) -> (u16, Option<&str>, &str) {
    let content_type = response.headers.iter().find(|(name, _)| name == "content-type");
    (
        response.status,
        content_type.map(|(_, value)| std::str::from_utf8(value).unwrap()),
        std::str::from_utf8(&response.body).unwrap(),
    )
}

const TEXT: Option<&str> = Some("text/plain; charset=utf-8");
const JSON: Option<&str> = Some("application/json");

#[test]
fn what_a_handler_returns_is_the_body() {
    for (body, expected) in [
        ("return 'hello'", (200, TEXT, "hello")),
        ("return {1, 2}", (200, JSON, "[1,2]")),
        ("return {a = 1}", (200, JSON, r#"{"a":1}"#)),
        ("return tokaido.json.null", (200, JSON, "null")),
        ("return 404, 'not here'", (404, TEXT, "not here")),
        ("return 201, {id = 7}", (201, JSON, r#"{"id":7}"#)),
        ("return 204", (204, None, "")),
        ("return", (200, None, "")),
        ("res.status = 503 return 'later'", (503, TEXT, "later")),
        ("res:write('a') res:write('b')", (200, TEXT, "ab")),
        ("res:write(1) return 'b'", (200, TEXT, "1b")),
        ("res:json({1}) res.status = 202", (202, JSON, "[1]")),
        ("res.headers['Content-Type'] = 'text/html' return '<p>'", (200, Some("text/html"), "<p>")),
        ("return res.headers['x-y'] or 'none'", (200, TEXT, "none")),
        ("res.headers['X-Y'] = 5 return res.headers['x-y']", (200, TEXT, "5")),
        ("return tostring(res.status)", (200, TEXT, "200")),
    ] {
        assert_eq!(shown(&get(body)), expected, "{body}");
    }
}

#[test]
fn headers_keep_their_order_and_may_repeat() {
    let response =
        get("res.headers.b = '1' res.headers.a = '2' res.headers['set-cookie'] = {'x=1', 'y=2'}
         res.headers.b = '3' return ''");
    let headers: Vec<_> = response
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
        .collect();
    assert_eq!(headers, ["a: 2", "set-cookie: x=1", "set-cookie: y=2", "b: 3"]);
}

#[test]
fn a_handler_reads_the_request() {
    let text = "local tokaido = require 'tokaido'
        return { f = tokaido.http('POST /shop/:item/*rest', function(tx, req, res)
          return {
            method = req.method, path = req.path, params = req.params, query = req.query,
            raw = req.query_string, headers = req.headers, body = req.body, json = req:json(),
          }
        end) }";
    let mut bed = Bed::one(text);
    let request = HttpRequest {
        method: "POST",
        path: "/shop/tea%20pot/a/b",
        query: "q=green+tea&n=1&n=2&flag&x=%E8%8C%B6",
        parameters: &[("item", "tea pot"), ("rest", "a/b")],
        headers: &[("host", b"localhost"), ("accept", b"a"), ("accept", b"b")],
        body: b"{\"n\":9007199254740993}",
        ..HttpRequest::default()
    };
    let response = bed.http("m.f", &request).unwrap();
    assert_eq!(
        shown(&response),
        (
            200,
            JSON,
            concat!(
                r#"{"body":"{\"n\":9007199254740993}","headers":{"accept":"a, b","host":"localhost"},"#,
                r#""json":{"n":9007199254740993},"method":"POST","params":{"item":"tea pot","rest":"a/b"},"#,
                r#""path":"/shop/tea%20pot/a/b","query":{"flag":"","n":"2","q":"green tea","x":"茶"},"#,
                r#""raw":"q=green+tea&n=1&n=2&flag&x=%E8%8C%B6"}"#,
            )
        )
    );
}

#[test]
fn nothing_of_one_request_is_seen_by_the_next() {
    let mut bed =
        bed("local seen = tostring(req.query.a) .. tostring(res.headers['x-a']) .. res.status
         if req.query.a then res.headers['x-a'] = 'left' res.status = 500 res:write('left ') end
         return seen");
    let first = HttpRequest { query: "a=1", ..request("GET", "/") };
    assert_eq!(shown(&bed.http("m.f", &first).unwrap()).2, "left 1nil200");
    assert_eq!(shown(&bed.http("m.f", &request("GET", "/")).unwrap()), (200, TEXT, "nilnil200"));
}

#[test]
fn the_method_tells_the_mode_unless_the_handler_does() {
    let bed = Bed::one(
        "local tokaido = require 'tokaido'
        local f = function(tx) return tx.main:increment('n') end
        return {
          a = tokaido.http('GET /a', f), b = tokaido.http('HEAD /a', f),
          c = tokaido.http('OPTIONS /a', f), d = tokaido.http('POST /a', f),
          e = tokaido.http('PUT /a', f), f = tokaido.http('DELETE /a', f),
          g = tokaido.http('PATCH /a', f), h = tokaido.http('GET /h', tokaido.write(f)),
          i = tokaido.http('POST /i', tokaido.read(f)),
        }",
    );
    let modes: String = bed
        .vm
        .procedures()
        .iter()
        .map(|procedure| if procedure.mode == Mode::Read { 'r' } else { 'w' })
        .collect();
    assert_eq!(modes, "rrrwwwwwr");
    let route = bed.vm.procedures()[7].route.as_ref().unwrap();
    assert_eq!((route.method.as_str(), route.pattern.as_str()), ("GET", "/h"));
}

#[test]
fn a_handler_writes_in_a_transaction() {
    let mut bed = Bed::one(
        "local tokaido = require 'tokaido'
        return { f = tokaido.http('GET /', tokaido.write(function(tx, req)
          local n = tx.main:increment('n')
          if req.query.fail then error('no') end
          return tokaido.text(n)
        end)) }",
    );
    assert_eq!(shown(&bed.http("m.f", &request("GET", "/")).unwrap()).2, "1");
    let failing = HttpRequest { query: "fail=1", ..request("GET", "/") };
    let Err(CallError::Raised { message, .. }) = bed.http("m.f", &failing) else { panic!() };
    assert_eq!(message, "m.lua:4: no");
    assert_eq!(bed.stored("n").as_deref(), Some("1"));
}

#[test]
fn mistakes_of_a_handler_have_a_place() {
    for (body, expected) in [
        (
            "return true",
            "a handler returns a string, a table, or a status and one of them; this is a boolean",
        ),
        ("return 103, ''", "a status is an integer from 200 to 599, this is 103"),
        ("return 42", "a status is an integer from 200 to 599, this is 42"),
        ("res.status = 'ok' return ''", "a status is an integer from 200 to 599, this is ok"),
        ("return req.bodi", "m.lua:2: a request has no field 'bodi'"),
        ("req.body = 1", "m.lua:2: a request cannot be changed"),
        (
            "res.body = 1",
            "m.lua:2: a response has no field 'body'; there are status and headers, and what the handler returns is the body",
        ),
        ("res.headers['a b'] = '1'", "m.lua:2: \"a b\" is no name of a header"),
        (
            "res.headers.a = 'x\\r\\ny: z'",
            "m.lua:2: the value of the header a has a control character",
        ),
        ("res.headers.a = true", "m.lua:2: a header's value is a string, this is a boolean"),
        ("res:write()", "m.lua:2: a value is a string or a number, this one is nil"),
        ("return {print}", "the value has a function at [1], which cannot be passed on"),
    ] {
        let Err(CallError::Raised { message, .. }) = bed(body).http("m.f", &request("GET", "/"))
        else {
            panic!("{body}")
        };
        assert_eq!(message, expected, "{body}");
    }
}

#[test]
fn a_body_that_is_no_json_is_the_clients_mistake() {
    let request = HttpRequest { body: b"{", ..request("GET", "/") };
    let Err(CallError::Refused { message, status, .. }) =
        bed("local x = req:json() return x").http("m.f", &request)
    else {
        panic!()
    };
    assert_eq!(status, Some(400));
    assert!(message.starts_with("the body of the request is not JSON: EOF"), "{message}");
}

#[test]
fn routes_are_checked_when_they_are_made() {
    for (route, expected) in [
        ("'/x'", "a route is a method and a path, as \"GET /hits/:page\""),
        ("'get /x'", "a route is a method and a path, as \"GET /hits/:page\""),
        ("nil", "a route is a method and a path, as \"GET /hits/:page\""),
        ("'BREW /x'", "no method BREW is served"),
        ("'GET /:'", "a parameter of a route needs a name, as in /hits/:page"),
        ("'GET /*rest/x'", "*rest takes the rest of the path, so it comes last"),
    ] {
        let text = format!("local t = require 'tokaido'\nreturn {{ f = t.http({route}, print) }}");
        let bed = Bed::of(&[("m", &text)]);
        assert_eq!(bed.errors[0].to_string(), format!("m.lua:2: {expected}"));
    }
}

#[test]
fn a_route_is_taken_once() {
    let file = |pattern: &str| {
        format!("return {{ f = require('tokaido').http('GET {pattern}', function() end) }}")
    };
    let bed = Bed::of(&[("a", &file("/x/:one")), ("b", &file("/x/:two")), ("c", &file("/x"))]);
    assert_eq!(bed.errors.len(), 1);
    assert_eq!(
        bed.errors[0].to_string(),
        "b.lua:1: b.f declares GET /x/:two, which a.f at a.lua:1 has declared before and keeps; change one of them"
    );
    let names: Vec<_> = bed.vm.procedures().iter().map(|procedure| &*procedure.name).collect();
    assert_eq!(names, ["a.f", "c.f"]);
}

#[test]
fn a_dot_where_a_colon_belongs_is_said_so() {
    for (body, expected) in [
        ("local body = req.json()", "call a request's method with a colon, as in req:json()"),
        ("res.write('x')", "call a response's methods with a colon, as in res:write(text)"),
        ("res.json({ a = 1 })", "call a response's methods with a colon, as in res:write(text)"),
    ] {
        let error = bed(body).http("m.f", &request("GET", "/")).unwrap_err();
        let CallError::Raised { message, .. } = error else { panic!("{body}: {error:?}") };
        assert_eq!(message, format!("m.lua:2: {expected}"), "{body}");
    }
}

#[test]
fn headers_without_end_are_refused() {
    let mut bed = bed("for i = 1, 99 do res.headers['x' .. i] = ('a'):rep(1000) end");
    let error = bed.http("m.f", &request("GET", "/")).unwrap_err().to_string();
    assert!(error.contains("the headers of a response have at most 65536 bytes"), "{error}");
}

#[test]
fn a_header_whose_new_value_is_refused_keeps_the_old_one() {
    let response =
        get("res.headers.a = 'old' pcall(function() res.headers.a = ('b'):rep(70000) end)");
    assert_eq!(response.headers, [("a".to_owned(), b"old".to_vec())]);
}
