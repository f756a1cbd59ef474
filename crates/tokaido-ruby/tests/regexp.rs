//! Regular expressions match as in Ruby, within limits.

mod support;

use std::process::Command;

use support::{Bed, error_of, eval, json, limits, text, write_body};
use tokaido_script::{CallError, Value};

/// Expressions, and Ruby's `inspect` of their values.
const CASES: &[(&str, &str)] = &[
    (r#""tea 12" =~ /\d+/"#, "4"),
    (r#""tea" =~ /\d/"#, "nil"),
    (r#""tea" !~ /\d/"#, "true"),
    (r#"nil =~ /a/"#, "nil"),
    (r#""日本語" =~ /語/"#, "2"),
    (r#""日本語".match(/./).to_s"#, r#""日""#),
    (r#"/(\w)(\d)?/.match("a").to_a"#, r#"["a", "a", nil]"#),
    (r#""k=v".match(/(?<key>\w)=(?<value>\w)/)[:value]"#, r#""v""#),
    (r#""k=v".match(/(?<key>\w)=(?<value>\w)/).named_captures"#, r#"{"key"=>"k", "value"=>"v"}"#),
    (r#"/(?<y>\d)(-)/.match("1-").captures"#, r#"["1"]"#),
    (r#""k=v".match(/=/).pre_match + "k=v".match(/=/).post_match"#, r#""kv""#),
    (r#"m = "あxい".match(/(x)/); [m.begin(0), m.end(1), m.offset(1)]"#, "[1, 2, [1, 2]]"),
    (r#""a1".match(/(?<l>[a-z])(?<d>\d)/).values_at(1, -1)"#, r#"["a", "1"]"#),
    (
        r#""a1" =~ /([a-z])(\d)/; [$~[0], $1, $2, $3, $&, $`, $']"#,
        r#"["a1", "a", "1", nil, "a1", "", ""]"#,
    ),
    (r#""x" =~ /(x)/; "y" =~ /(x)/; [$~, $1]"#, "[nil, nil]"),
    (r#""abc".match?(/B/i)"#, "true"),
    (r#""a\nb".scan(/^./)"#, r#"["a", "b"]"#),
    (r#""a\nb" =~ /a.b/"#, "nil"),
    (r#""a\nb" =~ /a.b/m"#, "0"),
    (r#""ab" =~ /a b/x"#, "0"),
    (r#""a\nb" =~ /\Ab/"#, "nil"),
    (r#""k1v2".scan(/([a-z])(\d)/)"#, r#"[["k", "1"], ["v", "2"]]"#),
    (r#""日本".scan(/./)"#, r#"["日", "本"]"#),
    (r#""a.b.c".scan(".")"#, r#"[".", "."]"#),
    (r#"s = []; "abc".scan(/./) { |c| s << c << $~.begin(0) }; s"#, r#"["a", 0, "b", 1, "c", 2]"#),
    (r#""hello".sub(/l/, "L")"#, r#""heLlo""#),
    (r#""hello".gsub(/l/, "L")"#, r#""heLLo""#),
    (r#""hello".gsub(/l*/, "-")"#, r#""-h-e--o-""#),
    (r#""日本".gsub(//, "-")"#, r#""-日-本-""#),
    (r#""hello".gsub(/[el]/) { |c| c.upcase }"#, r#""hELLo""#),
    (r#""a1b2".gsub(/\d/) { ($&.to_i + 1).to_s }"#, r#""a2b3""#),
    (r#""cat".gsub(/[aeiou]/, "a" => "4")"#, r#""c4t""#),
    (r#""cat".gsub("a", "a" => "4")"#, r#""c4t""#),
    (r#""John Smith".sub(/(\w+) (\w+)/, '\2, \1')"#, r#""Smith, John""#),
    (r#""ab".sub(/(?<x>b)/, '[\k<x>\0\\\\]')"#, r#""a[bb\\]""#),
    (r#""abc".sub(/b/, "<\\`|\\'>")"#, r#""a<a|c>c""#),
    (r#"s = "abc"; [s.gsub!(/x/, ""), s.sub!(/b/, ""), s]"#, r#"[nil, "ac", "ac"]"#),
    (r#""a, b;c".split(/[,;]\s*/)"#, r#"["a", "b", "c"]"#),
    (r#""a,b,,".split(/,/)"#, r#"["a", "b"]"#),
    (r#""a,b,,".split(/,/, -1)"#, r#"["a", "b", "", ""]"#),
    (r#""a,b,c".split(/,/, 2)"#, r#"["a", "b,c"]"#),
    (r#""a1b2c".split(/(\d)/)"#, r#"["a", "1", "b", "2", "c"]"#),
    (r#""abc".split(//)"#, r#"["a", "b", "c"]"#),
    (r#"" abc".split(/ /)"#, r#"["", "abc"]"#),
    (r#""".split(/,/)"#, "[]"),
    (r#""hello world"[/o (w)/, 1]"#, r#""w""#),
    (r#""hello"[/l+/]"#, r#""ll""#),
    (r#"s = "hello"; s[/l+/] = "L"; s"#, r#""heLo""#),
    (r#""hello".index(/l/, 3)"#, "3"),
    (r#""hello".rindex(/l/)"#, "3"),
    (r#""hello".start_with?(/he/)"#, "true"),
    (r#""k=v=w".partition(/=/)"#, r#"["k", "=", "v=w"]"#),
    (r#"case "v12" when /^v(\d+)$/ then $1 end"#, r#""12""#),
    (r#"%w[a1 b c2].grep(/\d/)"#, r#"["a1", "c2"]"#),
    (r#"x = "b+"; "ab+c" =~ /a#{Regexp.escape(x)}c/"#, "0"),
    (r#"x = /b/i; "aB" =~ /a#{x}/"#, "0"),
    (r#"/a/mi.to_s + /a/.to_s"#, r#""(?mi-x:a)(?-mix:a)""#),
    (r#"/a\d/i.inspect"#, r#""/a\\d/i""#),
    (r#"/a/.match("xa").inspect"#, r##""#<MatchData \"a\">""##),
    (r#"/(?<x>a)/.match("xa").inspect"#, r##""#<MatchData \"a\" x:\"a\">""##),
    (r#"Regexp.union("a.b", /c/).match?("a.b")"#, "true"),
    (r#"Regexp.escape("a.b*c d")"#, r#""a\\.b\\*c\\ d""#),
    (r#"Regexp.new("a", Regexp::IGNORECASE) == /a/i"#, "true"),
    (r#""ff" =~ /\A\h+\z/"#, "0"),
    (r#""é1" =~ /\A[[:alpha:]]\p{Digit}\z/"#, "0"),
    (r#""あ" =~ /\u3042/"#, "0"),
    (r#""2026-11-23".match(/(\d+)-(\d+)-(\d+)/).captures.map(&:to_i)"#, "[2026, 11, 23]"),
    (r#""aaa".sub(/a{2}/, "b")"#, r#""ba""#),
    (r#""foobar" =~ /(?<=foo)bar/"#, "3"),
    (r#":sym =~ /y/"#, "1"),
    (r#"/x/.names + /(?<n>x)/.names"#, r#"["n"]"#),
    (r#""price 3".gsub(/\d/, '0' => 'a', '3' => 'b')"#, r#""price b""#),
];

/// The result of `inspect`; Ruby 3.4 writes hashes differently than earlier versions.
fn plain(inspected: &str) -> String {
    inspected.replace("\" => ", "\"=>")
}

#[test]
fn expressions_find_what_ruby_s_do() {
    for (code, expected) in CASES {
        let found =
            eval(&format!("({code}).inspect")).unwrap_or_else(|error| panic!("{code}: {error}"));
        let Value::String(found) = found else { panic!("{code}") };
        assert_eq!(plain(&String::from_utf8_lossy(&found)), *expected, "{code}");
    }
}

/// Checks the expectations above against Ruby itself, where it is installed.
#[test]
fn what_is_expected_is_what_ruby_says() {
    let script: String =
        CASES.iter().map(|(code, _)| format!("puts(begin; ({code}).inspect; end)\n")).collect();
    let Ok(ran) = Command::new("ruby").args(["-W0", "-Ku", "-e", &script]).output() else {
        eprintln!("skipped: ruby is missing (apt-get install ruby)");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for ((code, expected), said) in CASES.iter().zip(said.lines()) {
        assert_eq!(plain(said), *expected, "{code}");
    }
}

#[test]
fn what_is_no_expression_raises() {
    for body in ["Regexp.new('(')", "/[a&&b]/", "Regexp.new('(*NO_JIT)a')", "Regexp.new('a\\\\')"] {
        let message = error_of(body);
        assert!(message.contains("(RegexpError)"), "{body}: {message}");
    }
    assert!(error_of("'a'.match(/(?<x>a)/)[:y]").contains("undefined group name reference: y"));
    assert!(error_of("Regexp.new('a', 'q')").contains("unknown regexp option"));
}

#[test]
fn a_search_without_end_is_stopped() {
    let body = "begin; ('a' * 40) =~ /\\A(a|a)*\\z?b/; ('a' * 40 + 'c') =~ /\\A(a+)+b/; rescue; retry; end; loop {}";
    let mut bed = Bed::one_with_limits(&write_body(body), limits());
    let error = bed.run().unwrap_err();
    assert!(matches!(error, CallError::TimeLimit { .. }), "{error:?}");
    assert!(bed.run().is_err());
    let body = "('a' * 1_000_000 =~ /(?:a|b|(c))*$/)";
    let error = Bed::body(body).run();
    assert!(error.is_ok() || error.unwrap_err().to_string().contains("stack"));
}

#[test]
fn very_many_expressions_are_made_again_when_they_are_needed() {
    let body = "first = Regexp.new('a')
        3000.times { |i| Regexp.new(\"x#{i}\").match?('y') }
        'xa' =~ first";
    assert_eq!(eval(body).unwrap(), Value::Integer(1));
}

#[test]
fn a_match_of_one_call_is_not_seen_by_the_next() {
    let mut bed = Bed::body("seen = [$~, $1]; args[0] =~ /(.)/; seen");
    for _ in 0..2 {
        assert_eq!(json(&bed.call("m.f", &[text("secret")]).unwrap()), "[null,null]");
    }
}
