//! Arguments and results: what goes in comes out.

mod support;

use proptest::prelude::*;
use support::{Bed, text, write_body};
use tokaido_script::{
    CallError, Value,
    json::{self, Rules},
};

const EXACT_MAX: i64 = 1 << 53;

fn key() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        (-1000..1000i64).prop_map(Value::Integer),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(Value::String),
    ]
}

/// Values in the form in which Lua gives them back: a map is sorted, has no duplicate keys and is
/// not an array, and a number that is an integer is one.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Boolean),
        any::<i64>().prop_map(Value::Integer),
        (-EXACT_MAX..=EXACT_MAX).prop_map(Value::Integer),
        any::<f64>()
            .prop_filter("integers have a form of their own", |n| {
                !(n.is_nan() || n.fract() == 0.0 && n.abs() <= EXACT_MAX as f64)
            })
            .prop_map(Value::Number),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..6).prop_map(map_of),
        ]
    })
}

fn map_of(mut entries: Vec<(Value, Value)>) -> Value {
    fn order(key: &Value) -> (u8, i64, Vec<u8>) {
        match key {
            Value::Boolean(b) => (0, i64::from(*b), Vec::new()),
            Value::Integer(i) => (1, *i, Vec::new()),
            Value::String(s) => (2, 0, s.clone()),
            _ => unreachable!(),
        }
    }
    entries.sort_by_key(|(key, _)| order(key));
    entries.dedup_by(|(a, _), (b, _)| a == b);
    let is_array =
        !entries.is_empty() && (1..).zip(&entries).all(|(i, (key, _))| *key == Value::Integer(i));
    if is_array {
        return Value::Array(entries.into_iter().map(|(_, value)| value).collect());
    }
    Value::Map(entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_come_back_as_they_went(values in prop::collection::vec(value(), 1..4)) {
        thread_local! {
            static BED: std::cell::RefCell<Bed> =
                std::cell::RefCell::new(Bed::one(&write_body("return {n = select('#', ...), ...}")));
        }
        BED.with_borrow_mut(|bed| {
            // One by one, and each inside a table.
            for value in &values {
                let Value::Map(result) = bed.call("m.f", std::slice::from_ref(value)).unwrap()
                else { panic!() };
                let mut expected = vec![(text("n"), Value::Integer(1))];
                if *value != Value::Nil {
                    expected.insert(0, (Value::Integer(1), value.clone()));
                }
                prop_assert_eq!(&result, &expected);
            }
            Ok(())
        })?;
    }

    #[test]
    fn json_comes_back_as_it_went(text in json_text()) {
        let value = json::decode(text.as_bytes(), Rules::Lua).unwrap();
        let mut encoded = Vec::new();
        json::encode(&value, Rules::Lua, &mut encoded).unwrap();
        prop_assert_eq!(json::decode(&encoded, Rules::Lua).unwrap(), value.clone());

        thread_local! {
            static BED: std::cell::RefCell<Bed> = std::cell::RefCell::new(Bed::one(&write_body(
                "return tokaido.json.encode(tokaido.json.decode((...)))",
            )));
        }
        let by_lua = BED
            .with_borrow_mut(|bed| bed.call("m.f", &[Value::String(text.clone().into_bytes())]))
            .unwrap();
        let Value::String(by_lua) = by_lua else { panic!() };
        prop_assert_eq!(json::decode(&by_lua, Rules::Lua).unwrap(), value);
    }

    #[test]
    fn no_bytes_break_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = json::decode(&bytes, Rules::Lua);
    }
}

fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        (-1e15..1e15).prop_map(|n: f64| (n + 0.5).to_string()),
        "[a-zé日 ]{0,8}".prop_map(|text| format!("{text:?}")),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..5).prop_map(|entries| {
                let entries: Vec<_> =
                    entries.iter().map(|(key, item)| format!("{key:?}:{item}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

#[test]
fn integers_arrive_as_numbers_or_as_int64() {
    let mut bed = Bed::one(&write_body(
        "local n = ... return type(n) .. ' ' .. tostring(n + 1):gsub('e%+.*', '')",
    ));
    for (n, expected) in [
        (7, "number 8"),
        (EXACT_MAX, "number 9.007199254741"),
        (EXACT_MAX + 1, "cdata 9007199254740994LL"),
        (i64::MIN, "cdata -9223372036854775807LL"),
    ] {
        let Value::String(result) = bed.call("m.f", &[Value::Integer(n)]).unwrap() else {
            panic!()
        };
        assert_eq!(String::from_utf8(result).unwrap(), expected);
    }
}

#[test]
fn what_has_no_form_outside_is_named_with_its_place() {
    for (result, expected) in [
        ("print", "the result of m.f has a function, which cannot be passed on"),
        (
            "{a = {1, {b = print}}}",
            "the result of m.f has a function at .a[2].b, which cannot be passed on",
        ),
        ("coroutine.create(print)", "the result of m.f has a coroutine, which cannot be passed on"),
        ("{[{}] = 1}", "the result of m.f has a table as a key, which cannot be passed on"),
        ("1i", "the result of m.f has a cdata, which cannot be passed on"),
        ("18446744073709551615ULL", "the result of m.f has a cdata, which cannot be passed on"),
    ] {
        let mut bed = Bed::body(&format!("local x = {result} return x"));
        let Err(CallError::Value { message }) = bed.run() else { panic!("{result}") };
        assert_eq!(message, expected);
    }
}

#[test]
fn arguments_that_no_table_can_have_are_refused() {
    let mut bed = Bed::body("return 1");
    let mut deep = Value::Nil;
    for _ in 0..200 {
        deep = Value::Array(vec![deep]);
    }
    let nan_key = Value::Map(vec![(Value::Number(f64::NAN), Value::Nil)]);
    for argument in [deep, nan_key] {
        let Err(CallError::Value { message }) = bed.call("m.f", &[Value::Nil, argument]) else {
            panic!()
        };
        assert!(message.starts_with("argument 2 is nested too deeply"), "{message}");
    }
    let many = vec![Value::Nil; 1000];
    assert!(matches!(bed.call("m.f", &many), Err(CallError::Value { .. })));
    assert_eq!(bed.run().unwrap(), Value::Integer(1));
}

#[test]
fn json_of_lua() {
    let mut bed = Bed::one(&write_body(
        "return tokaido.json.encode(load('local json = ... return ' .. (...))(tokaido.json))",
    ));
    for (lua, expected) in [
        ("{1, 2, {a = 'x'}}", r#"[1,2,{"a":"x"}]"#),
        ("{}", "[]"),
        ("json.object()", "{}"),
        ("json.object{}", "{}"),
        ("json.decode('{}')", "{}"),
        ("json.null", "null"),
        ("{1, json.null, 3}", "[1,null,3]"),
        ("nil", "null"),
        ("9007199254740993LL", "9007199254740993"),
        ("json.decode('[9223372036854775807,1.5,1e300]')", "[9223372036854775807,1.5,1e+300]"),
        ("{b = 1, a = 2}", r#"{"a":2,"b":1}"#),
        ("{[1] = 1, [3] = 3}", r#"{"1":1,"3":3}"#),
        ("{1, 2, x = 3}", r#"{"1":1,"2":2,"x":3}"#),
        (r"'\n\0\'\34'", r#""\n\u0000'\"""#),
        ("1e15", "1000000000000000"),
        ("0.1", "0.1"),
    ] {
        let result = bed.call("m.f", &[text(lua)]).unwrap();
        assert_eq!(result, text(expected), "{lua}");
    }
    for (lua, expected) in [
        ("0/0", "JSON has no number NaN"),
        (r"'\255'", "JSON takes UTF-8, and a string is not, at byte 0"),
        ("{[true] = 1}", "a key of a JSON object is a string or a number"),
    ] {
        let error = bed.call("m.f", &[text(lua)]).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{lua}: {error}");
    }
}
