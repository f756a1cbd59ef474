//! Regular expressions in OpenResty handlers: what stops them, and what happens to those that are not used for long.

use std::time::{Duration, Instant};

use tokaido_script::{CallError, Limits};

use support::handlers::{Served, call, limited};

mod support;

/// The output of a handler with this text.
fn say(text: &str) -> String {
    run(text, Duration::from_secs(60)).0.unwrap()
}

/// The output of a handler with this text, or why it failed, and how long that took.
fn run(text: &str, time: Duration) -> (Result<String, CallError>, Duration) {
    let it = format!("-- route: /it\n{text}");
    let next = "-- route: /next\nngx.print(ngx.re.match('abc', '(b)', 'jo')[1])";
    let limits = Limits { time, ..Limits::default() };
    let mut served = limited(&[("it", &it), ("next", next)], limits);
    let begin = Instant::now();
    let result = get(&mut served, "it");
    let took = begin.elapsed();
    // Whatever happened, the next request is answered.
    assert_eq!(get(&mut served, "next").unwrap(), "b");
    (result, took)
}

fn get(served: &mut Served, handler: &str) -> Result<String, CallError> {
    let response = call(served, handler).map_err(|failed| failed.0)?;
    Ok(String::from_utf8(response.body).unwrap())
}

const SHORT: Duration = Duration::from_millis(200);

/// Each step of these scans all that follows, which PCRE2 counts as one.
const ENDLESS: &str = r#"ngx.re.find(("a"):rep(200000), [==[(?:a(?=[^x]*+y)|a)*[bc]]==], OPTIONS)"#;

#[test]
fn the_time_limit_ends_a_match() {
    for options in ["\"\"", "\"jo\"", "\"u\"", "\"i\""] {
        let text = ENDLESS.replace("OPTIONS", options);
        let (result, took) = run(&text, SHORT);
        assert!(matches!(result, Err(CallError::TimeLimit { .. })), "{options}: {result:?}");
        assert!(took < Duration::from_secs(10), "{options}: {took:?}");
    }
}

#[test]
fn whoever_catches_the_error_meets_it_again() {
    let text = ENDLESS.replace("OPTIONS", "\"jo\"");
    let (result, _) = run(&format!("while true do pcall(function() {text} end) end"), SHORT);
    assert!(matches!(result, Err(CallError::TimeLimit { .. })), "{result:?}");
}

#[test]
fn the_time_limit_ends_a_match_by_a_dfa() {
    // At each position it scans all that follows.
    let text = "ngx.re.find(('a'):rep(1000000), '^(?:(?!.*[xyz])a)*', 'd')";
    let (result, _) = run(text, SHORT);
    assert!(matches!(result, Err(CallError::TimeLimit { .. })), "{result:?}");
}

#[test]
fn what_tries_too_often_is_an_error() {
    let text = "local m, why = ngx.re.match(('a'):rep(40) .. 'b', '(a+)+$', 'jo') ngx.print(tostring(m), ' ', why)";
    assert_eq!(say(text), "nil pcre_exec() failed: -8");
}

/// An iterator and a replacement by a function continue while a thousand other expressions come between.
#[test]
fn an_expression_in_use_may_be_forgotten() {
    let text = r#"
        local function crowd(tag)
          for i = 1, 1500 do assert(ngx.re.find("x" .. i .. tag, "x" .. i .. tag, "jo") == 1) end
        end
        local following = ngx.re.gmatch("a1b2", "[a-z]([0-9])", "jo")
        local first = following()[1]
        crowd("y")
        local second = following()[1]
        local made = ngx.re.gsub("a b", "[a-z]", function(m) crowd(m[0]) return m[0] .. "!" end, "jo")
        ngx.print(first, second, " ", made, " ", tostring(following()))
    "#;
    assert_eq!(say(text), "12 a! b! nil");
}

#[test]
fn what_is_not_utf_8_is_never_matched_blindly() {
    let text = r#"
        local broken = ("\xf0"):rep(100) .. "\xe3\x81"
        for _, pattern in ipairs { ".", "\\w+", "[^a]*$", "(?i)ä", "\\X", "(*UTF).", "(*UTF)[^a]+" } do
          for _, options in ipairs { "u", "U", "uU", "jo", "iu", "iU" } do
            ngx.re.gsub(broken, pattern, "-", options)
            ngx.re.find(broken, pattern, options)
          end
        end
        local _, _, why = ngx.re.find(broken, ".", "u")
        ngx.print(why, " ", tostring(ngx.re.find(broken, ".", "U")))
    "#;
    assert_eq!(say(text), "pcre_exec() failed: -10 nil");
}
