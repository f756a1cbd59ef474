//! Calls of procedures: arguments, results, errors, and what they do to databases.

mod support;

use support::{Bed, error_of, eval, json, text};
use tokaido_script::{CallError, Value};

#[test]
fn a_method_of_one_expression_yields() {
    let text = "class M < Tokaido::Procedures
 def twice = [yield(1), yield(2)]
 def self.maybe = block_given? ? yield : 'none'
 def local = (a = 5; [a, yield(a)])
 write def f(tx) = [twice { |x| x * 10 }, M.maybe, M.maybe { 'some' }, local { |x| x + 1 }]
end";
    let answer = json(&Bed::one(text).run().unwrap());
    assert_eq!(answer, r#"[[10,20],"none","some",[5,6]]"#);
}

#[test]
fn values_survive_the_way_there_and_back() {
    let mut bed = Bed::one("class M < Tokaido::Procedures\n write def f(tx, *args) = args\nend");
    let values = [
        Value::Nil,
        Value::Boolean(true),
        Value::Boolean(false),
        Value::Integer(0),
        Value::Integer(i64::MIN),
        Value::Integer(i64::MAX),
        Value::Integer((1 << 62) + 1),
        Value::Number(1.5),
        Value::Number(-0.1),
        Value::Number(f64::INFINITY),
        text(""),
        text("日本"),
        Value::String((0..=255).collect()),
        Value::Array(vec![]),
        Value::Map(vec![]),
        Value::Array(vec![Value::Nil, Value::Array(vec![Value::Integer(1)]), text("a")]),
        Value::Map(vec![
            (text("a"), Value::Map(vec![(text("b"), Value::Array(vec![]))])),
            (text("c"), Value::Nil),
            (Value::Integer(7), Value::Array(vec![Value::Map(vec![])])),
            (Value::Boolean(true), Value::Boolean(false)),
        ]),
    ];
    let result = bed.call("m.f", &values).unwrap();
    assert_eq!(result, Value::Array(values.to_vec()));
}

#[test]
fn results_may_be_symbols_structs_ranges_and_scans() {
    let result = eval(
        "tx[:main].put('k', 'v')
         pair = Struct.new(:a, :b)
         { sym: :bol, struct: pair.new(1, 2), range: 1..3, set: Set.new([1]), scan: tx[:main].scan,
           keys: tx[:main].keys, each: [1, 2].each, 'n' => nil }",
    );
    assert_eq!(
        json(&result.unwrap()),
        r#"{"sym":"bol","struct":{"a":1,"b":2},"range":[1,2,3],"set":[1],"scan":[["k","v"]],"keys":["k"],"each":[1,2],"n":null}"#
    );
}

#[test]
fn what_has_no_form_outside_is_refused() {
    for body in [
        "Object.new",
        "[1, { a: -> {} }]",
        "{ [1] => 2 }",
        "{ nil => 1 }",
        "tx",
        "tx[:main]",
        "M",
        "Fiber.new {}",
    ] {
        let message = error_of(body);
        assert!(message.contains("passed on"), "{body}: {message}");
    }
    let circle = error_of("a = []; a << a; a");
    assert!(circle.contains("nested too deeply"), "{circle}");
}

#[test]
fn errors_name_file_line_and_class() {
    let error = |body: &str| match eval(body).unwrap_err() {
        CallError::Raised { message, traceback } => (message, traceback),
        other => panic!("{other:?}"),
    };
    let (message, traceback) = error("g = -> { raise 'no' }\ng.call");
    assert_eq!(message, "m.rb:3: no");
    assert!(traceback.contains("m.rb:3") && traceback.contains("m.rb:4"), "{traceback}");
    assert!(!traceback.contains("(tokaido)"), "{traceback}");
    assert_eq!(error("nil.foo").0, "m.rb:3: undefined method 'foo' for NilClass (NoMethodError)");
    assert_eq!(
        error("tx[:main].get(nil)").0,
        "m.rb:3: a key is a string, a symbol or a number, this one is nil"
    );
    assert_eq!(error("1 / 0").0, "m.rb:3: divided by 0 (ZeroDivisionError)");
    let silent = error("raise Class.new(StandardError) { def message = raise('again') }").0;
    assert_eq!(silent, "an error that cannot be told: its message, or its class, raises one");
}

#[test]
fn a_refusal_has_a_message_a_code_and_a_status() {
    let error = eval("refuse 'sold out', code: 'SOLD_OUT', status: 409").unwrap_err();
    let CallError::Refused { message, code, status, is_kept } = error else { panic!("{error:?}") };
    assert_eq!((&*message, code.as_deref(), status), ("sold out", Some("SOLD_OUT"), Some(409)));
    assert!(!is_kept);
}

#[test]
fn what_a_failed_call_has_written_is_gone_and_a_good_one_s_stays() {
    let mut bed = Bed::body("tx[:main].put(:a, 1)\nraise 'no' if args[0]\ntx[:main].get('a')");
    assert!(bed.call("m.f", &[Value::Boolean(true)]).is_err());
    assert_eq!(bed.stored("a"), None);
    assert_eq!(bed.run().unwrap(), text("1"));
    assert_eq!(bed.stored("a").as_deref(), Some("1"));
}

#[test]
fn a_read_procedure_cannot_write_and_reads_as_empty_what_is_not_there() {
    let mut bed = Bed::one(
        "class M < Tokaido::Procedures
           read def w(tx) = tx[:main].put('a', 1)
           read def r(tx) = [tx[:main].get('a'), tx[:main].key?('a'), tx[:main].scan.to_a, tx[:main].count,
                             tx[:main].get_many(['a']), tx[:main].record('a'), tx.writable?]
           write def c(tx) = tx[:main].put('a', 1)
         end",
    );
    assert_eq!(json(&bed.call("m.r", &[]).unwrap()), "[null,false,[],0,{},null,false]");
    let message = bed.call("m.w", &[]).unwrap_err().to_string();
    assert!(message.contains("m.w is a read procedure"), "{message}");
    bed.call("m.c", &[]).unwrap();
    let message = bed.call("m.w", &[]).unwrap_err().to_string();
    assert!(message.contains("m.w is a read procedure"), "{message}");
}

#[test]
fn each_method_of_a_database_does_what_it_says() {
    let cases = [
        ("db['a'] = 1; db[:a]", r#""1""#),
        ("db.put('a', 1.5); db.get('a')", r#""1.5""#),
        ("db.put(1, 2); db[1]", r#""2""#),
        ("db.get('none')", "null"),
        ("db.put('a', 'x'); [db.key?('a'), db.exists?('b'), db.include?(:a)]", "[true,false,true]"),
        ("[db.add('a', 1), db.add('a', 2), db['a']]", r#"[true,false,"1"]"#),
        (
            "[db.replace('a', 1), db.put('a', 2), db.replace('a', 3), db['a']]",
            r#"[false,2,true,"3"]"#,
        ),
        (
            "[db.compare_and_set('a', nil, 1), db.compare_and_set('a', 2, 3), db.compare_and_set('a', 1, 3), db['a']]",
            r#"[true,false,true,"3"]"#,
        ),
        (
            "db['a'] = 1; [db.compare_and_set('a', 2, nil), db.compare_and_set('a', 1, nil), db['a']]",
            "[false,true,null]",
        ),
        ("db['a'] = 1; [db.delete('a'), db.delete('a')]", "[true,false]"),
        (
            "[db.increment('a'), db.increment('a', 9223372036854775805), db.increment('a', -1)]",
            "[1,9223372036854775806,9223372036854775805]",
        ),
        ("[db.increment_float('a', 0.5), db.increment_float('a', 1)]", "[0.5,1.5]"),
        ("[db.append('a', 'xy'), db.append('a', :z), db['a']]", r#"[2,3,"xyz"]"#),
        (
            "db.put('a', 'x', ttl_ms: 1000, flags: 7); [db.ttl('a'), db.record('a').flags, db.record('a').value]",
            r#"[1000,7,"x"]"#,
        ),
        (
            "db.put('a', 1); [db.expire('a', 50), db.ttl('a'), db.persist('a'), db.ttl('a') == Float::INFINITY, db.expire('b', 1), db.ttl('b')]",
            "[true,50,true,true,false,null]",
        ),
        (
            "db.put('a', 1, expires_at_ms: tx.now_ms + 5); db.record('a').expires_at_ms - tx.now_ms",
            "5",
        ),
        (
            "db.put('a', 1); db.put('b', 2); [db.get_many(%w[a b c]), db.fetch('a'), db.fetch('x', 0), db.fetch('x') { |k| k * 2 }]",
            r#"[{"a":"1","b":"2"},"1",0,"xx"]"#,
        ),
        ("db.put('a', 1); db.get_all('a')", r#"["1"]"#),
        ("db.put('a', 1); db.clear; db.scan.to_a", "[]"),
        ("db.put('a', 1); tx.drop_database(:main)", "true"),
        ("db.name + db.inspect + tx.inspect", r##""main#<database main>#<transaction>""##),
        ("db[\"\\x00\\xff\"] = \"\\xfe\\x00\"; db[\"\\x00\\xff\"].bytes", "[254,0]"),
        (
            "JSON.parse(JSON.generate({ 'a' => [1, 2.5, nil, true, 'x'] }))",
            r#"{"a":[1,2.5,null,true,"x"]}"#,
        ),
        ("[{ a: 1 }.to_json, [1].to_json, 'x'.to_json]", r#"["{\"a\":1}","[1]","\"x\""]"#),
        ("begin; JSON.parse('{'); rescue JSON::ParserError; 'caught'; end", r#""caught""#),
        ("begin; JSON.generate(-> {}); rescue JSON::GeneratorError; 'caught'; end", r#""caught""#),
        (
            "begin; db.get(nil); rescue Tokaido::Error => e; e.message; end",
            r#""a key is a string, a symbol or a number, this one is nil""#,
        ),
        ("begin; db.increment('a', 1.5); rescue => e; e.class.name; end", r#""Tokaido::Error""#),
    ];
    for (body, expected) in cases {
        let result = eval(&format!("db = tx[:main]\n{body}"));
        let result = result.unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(json(&result), expected, "{body}");
    }
}

#[test]
fn scans_are_enumerable_and_may_be_written_under() {
    let fill = "db = tx[:main]\n('a'..'j').each_with_index { |k, i| db[k] = i }\n";
    let cases = [
        ("db.scan.map { |k, v| k + v }.join", r#""a0b1c2d3e4f5g6h7i8j9""#),
        ("db.keys.to_a.size", "10"),
        ("db.scan('b').to_a", r#"[["b","1"]]"#),
        ("db.keys(from: 'h').to_a", r#"["h","i","j"]"#),
        ("db.keys(after: 'h').to_a", r#"["i","j"]"#),
        ("db.keys(to: 'b').to_a", r#"["a","b"]"#),
        ("db.keys(before: 'b').to_a", r#"["a"]"#),
        ("db.keys(from: 'c', to: 'f', reverse: true).to_a", r#"["f","e","d","c"]"#),
        ("db.keys(limit: 3).to_a", r#"["a","b","c"]"#),
        ("db.keys.first(2)", r#"["a","b"]"#),
        ("db.keys.reverse_each.first(2)", r#"["j","i"]"#),
        ("db.scan.max_by(2) { |k, v| v.to_i }", r#"[["j","9"],["i","8"]]"#),
        ("db.scan.lazy.select { |k, v| v.to_i.odd? }.first(2)", r#"[["b","1"],["d","3"]]"#),
        ("e = db.keys.each; [e.next, e.next, e.next]", r#"["a","b","c"]"#),
        ("db.scan.to_h.size", "10"),
        ("db.each { |k, v| db.delete(k) }; db.scan.to_a", "[]"),
        ("seen = []; db.scan.each { |k, v| seen << v; db['j'] = 'new' }; seen.last", r#""new""#),
        ("seen = 0; db.keys.each { |k| seen += 1; db[\"#{k}x\"] = 1 if k.size < 3 }; seen", "30"),
        ("db.keys.each { |k| break k if k > 'c' }", r#""d""#),
        (
            "500.times { |i| db[format('n%03d', i)] = i }; db.scan('n').sum { |k, v| v.to_i }",
            "124750",
        ),
    ];
    for (body, expected) in cases {
        let result = eval(&format!("{fill}{body}"));
        let result = result.unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(json(&result), expected, "{body}");
    }
    let message = error_of("tx[:main].scan('a', from: 'b')");
    assert!(message.contains("a prefix or a range"), "{message}");
}

#[test]
fn objects_of_an_ended_call_are_refused() {
    let mut bed = Bed::one(
        "class M < Tokaido::Procedures
           KEPT = []
           write def f(tx) = (KEPT << tx[:main]; nil)
           write def g(tx) = KEPT.first.get('a')
           DB = (begin; Tokaido::TRANSACTION[:main]; rescue => e; e.message; end)
           read def h(tx) = DB
         end",
    );
    bed.run().unwrap();
    // In the next call, it is still the same database.
    assert_eq!(bed.call("m.g", &[]).unwrap(), Value::Nil);
    let Value::String(message) = bed.call("m.h", &[]).unwrap() else { panic!() };
    assert!(String::from_utf8_lossy(&message).contains("this transaction has ended"));
}

#[test]
fn each_call_has_an_object_that_was_initialized() {
    let text = "class M < Tokaido::Procedures
 def initialize = (@made = (@made || 0) + 1)
 write def f(tx) = [@made, (@seen = (@seen || 0) + 1)]
end
class Plain < Tokaido::Procedures
 write def g(tx) = (@seen = (@seen || 0) + 1)
end
module Mixed
 def initialize = @mixed = 'yes'
end
class WithModule < Tokaido::Procedures
 include Mixed
 write def h(tx) = @mixed
end
class Heir < M
 write def i(tx) = @made
end";
    let mut bed = Bed::one(text);
    for _ in 0..2 {
        assert_eq!(json(&bed.run().unwrap()), "[1,1]");
        assert_eq!(json(&bed.call("m.g", &[]).unwrap()), "1");
        assert_eq!(json(&bed.call("m.h", &[]).unwrap()), r#""yes""#);
        assert_eq!(json(&bed.call("m.i", &[]).unwrap()), "1");
    }
}
