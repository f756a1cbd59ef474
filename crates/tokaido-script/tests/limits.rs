//! Each limit of a call, set low: it holds, and what is told says what it is.

mod support;

use support::{Bed, request, write_body};
use tokaido_script::{CallError, HttpRequest, HttpResponse, Limits, Value};

/// What a call of a procedure with this body raises.
fn raised(limits: Limits, body: &str) -> String {
    let mut bed = Bed::with_limits(&[("m", &write_body(body))], limits);
    match bed.run() {
        Err(CallError::Raised { message, .. }) => message,
        other => panic!("{body}: {other:?}"),
    }
}

/// What a handler with this body answers.
fn answered(limits: Limits, query: &str, body: &str) -> Result<HttpResponse, CallError> {
    let text = format!(
        "local tokaido = require 'tokaido'
        return {{ f = tokaido.http('GET /', function(tx, req, res) {body} end) }}"
    );
    let mut bed = Bed::with_limits(&[("m", &text)], limits);
    bed.http("m.f", &HttpRequest { query, ..request("GET", "/") })
}

#[test]
fn get_many_brings_as_much_as_it_may() {
    let limits = Limits { many_keys_max: 2, many_bytes_max: 10, ..Limits::default() };
    let keys = raised(limits, "tx.main:get_many{'a', 'b', 'c'}");
    assert!(keys.contains("at most 2 keys or arguments"), "{keys}");
    let set = "local db = tx.main db:put('a', '12345') db:put('b', '123456')";
    let bytes = raised(limits, &format!("{set} db:get_many{{'a', 'b'}}"));
    assert!(bytes.contains("get_many brings at most 10 bytes"), "{bytes}");
    let body = format!("{set} return db:get_many{{'a', 'x'}}.a");
    let mut bed = Bed::with_limits(&[("m", &write_body(&body))], limits);
    assert_eq!(bed.run().unwrap(), Value::String(b"12345".to_vec()));
}

#[test]
fn a_pattern_takes_as_many_steps_as_it_may() {
    // Many enough for our own matcher, and few enough for its default.
    let body = "return ('a'):rep(2000):find('^.-.-b$')";
    let limits = Limits { pattern_steps_max: 1000, ..Limits::default() };
    let message = raised(limits, body);
    assert!(message.contains("the pattern backtracks too much"), "{message}");
    let mut bed = Bed::with_limits(&[("m", &write_body(body))], Limits::default());
    assert_eq!(bed.run().unwrap(), Value::Nil);
}

#[test]
fn a_response_is_as_long_as_it_may() {
    let limits = Limits { response_len_max: 5, response_headers_max: 2, ..Limits::default() };
    let response = answered(limits, "", "res:write('12') return '345'").unwrap();
    assert_eq!(response.body, b"12345");
    let long = answered(limits, "", "res:write('123') return '456'").unwrap_err().to_string();
    assert!(long.contains("a response has at most 5 bytes"), "{long}");
    let body = "res.headers.a = '1' res.headers.b = '2' res.headers.c = '3'";
    let headers = answered(limits, "", body).unwrap_err().to_string();
    assert!(headers.contains("a response has at most 2 headers"), "{headers}");
}

#[test]
fn a_query_is_taken_apart_as_far_as_it_may() {
    let limits = Limits { query_pairs_max: 2, ..Limits::default() };
    let body = "return tostring(req.query.a) .. tostring(req.query.b) .. tostring(req.query.c)";
    let response = answered(limits, "a=1&b=2&c=3", body).unwrap();
    assert_eq!(response.body, b"12nil");
}
