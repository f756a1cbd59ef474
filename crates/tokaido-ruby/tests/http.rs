//! Handlers of HTTP routes.

mod support;

use support::{Bed, request};
use tokaido_script::{CallError, HttpRequest, HttpResponse};

fn handle(block: &str, request: &HttpRequest<'_>) -> Result<HttpResponse, CallError> {
    let text =
        format!("class M < Tokaido::Procedures\n get('/a/:b') {{ |tx, req, res| {block} }}\nend");
    Bed::one(&text).http("m.GET /a/:b", request)
}

fn ok(block: &str, request: &HttpRequest<'_>) -> HttpResponse {
    handle(block, request).unwrap_or_else(|error| panic!("{block}: {error}"))
}

fn body(response: &HttpResponse) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

#[test]
fn what_a_handler_returns_is_the_body() {
    let get = request("GET", "/a/x");
    let cases: [(&str, u16, &str, Option<&str>); 9] = [
        ("'hello'", 200, "hello", Some("text/plain; charset=utf-8")),
        ("nil", 200, "", None),
        ("{ a: [1, nil] }", 200, r#"{"a":[1,null]}"#, Some("application/json")),
        ("[1, 2]", 200, "[1,2]", Some("application/json")),
        ("res.status = 404; 'no'", 404, "no", Some("text/plain; charset=utf-8")),
        (
            "res.write('a').write(1); res << 'b'; 'c'",
            200,
            "a1bc",
            Some("text/plain; charset=utf-8"),
        ),
        ("res.headers['Content-Type'] = 'text/html'; '<p>'", 200, "<p>", Some("text/html")),
        ("res.json({ 'x' => 1 })", 200, r#"{"x":1}"#, Some("application/json")),
        (
            "res.headers['a'] = %w[1 2]; res.headers['A']",
            200,
            "1",
            Some("text/plain; charset=utf-8"),
        ),
    ];
    for (block, status, expected, content_type) in cases {
        let response = ok(block, &get);
        assert_eq!((response.status, body(&response)), (status, expected), "{block}");
        let found = response.headers.iter().find(|(name, _)| name == "content-type");
        let found = found.map(|(_, value)| std::str::from_utf8(value).unwrap());
        assert_eq!(found, content_type, "{block}");
    }
}

#[test]
fn a_handler_sees_the_request() {
    let request = HttpRequest {
        method: "GET",
        path: "/a/x",
        query: "q=1&q=2&r=a%20b",
        parameters: &[("b", "x y")],
        headers: &[("host", b"h"), ("x", b"1"), ("x", b"2")],
        body: br#"{"k": [1]}"#,
        ..HttpRequest::default()
    };
    let cases = [
        ("req.method + req.path + req.query_string", "GET/a/xq=1&q=2&r=a%20b"),
        ("req.params[:b] + req.params['b'] + req[:b] + req[:r]", "x yx yx ya b"),
        ("req.query['q'] + req.query[:r]", "2a b"),
        ("req.headers['host'] + req.headers['x']", "h1, 2"),
        ("req.json['k'].first.to_s + req.body.size.to_s", "110"),
        ("req.params.inspect", r#"{"b" => "x y"}"#),
    ];
    for (block, expected) in cases {
        assert_eq!(body(&ok(block, &request)), expected, "{block}");
    }
}

#[test]
fn mistakes_are_errors_and_leave_nothing() {
    let get = request("GET", "/a/x");
    let cases = [
        ("res.status = 99", "a status is an integer from 200 to 599"),
        ("1", "a handler returns a string, a hash, an array or nil; this is Integer"),
        ("res.headers['a b'] = '1'", "is no name of a header"),
        ("res.headers['a'] = \"1\\n2\"", "control character"),
        ("req.json", "the body of the request is not JSON"),
        ("raise 'no'", "m.rb:2: no"),
        ("return 'early'", "no"),
    ];
    for (block, expected) in cases {
        match handle(block, &get) {
            Err(error) => assert!(error.to_string().contains(expected), "{block}: {error}"),
            // `return` in the block of a route ends the handler.
            Ok(response) => assert_eq!((block, body(&response)), ("return 'early'", "early")),
        }
    }
    let CallError::Refused { status, .. } = handle("req.json", &get).unwrap_err() else { panic!() };
    assert_eq!(status, Some(400));
}

#[test]
fn a_request_that_is_over_is_refused() {
    let mut bed = Bed::one(
        "class M < Tokaido::Procedures\n get('/a') { |tx, req, res| OLD = req; 'x' }\n read def f(tx) = OLD.path\nend",
    );
    bed.http("m.GET /a", &request("GET", "/a")).unwrap();
    let message = bed.run().unwrap_err().to_string();
    assert!(message.contains("this request is over"), "{message}");
}

#[test]
fn each_call_has_an_object_of_its_own() {
    let mut bed =
        Bed::one("class M < Tokaido::Procedures\n read def f(tx) = (@n = (@n || 0) + 1)\nend");
    for _ in 0..3 {
        assert_eq!(bed.run().unwrap(), tokaido_script::Value::Integer(1));
    }
}
