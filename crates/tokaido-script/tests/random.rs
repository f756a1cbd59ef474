//! Random numbers: different ones in every VM, and ones that nobody can guess.

mod support;

use std::collections::HashSet;

use support::Bed;
use tokaido_script::{CallError, Value};

fn text_of(body: &str) -> String {
    let Value::String(text) = Bed::body(body).run().unwrap() else { panic!() };
    String::from_utf8(text).unwrap()
}

#[test]
fn every_vm_has_random_numbers_of_its_own() {
    let draw = || text_of("return string.format('%.17g %.17g', math.random(), math.random())");
    let drawn: HashSet<_> = (0..5).map(|_| draw()).collect();
    assert_eq!(drawn.len(), 5, "{drawn:?}");
}

#[test]
fn a_file_that_is_loaded_draws_numbers_of_its_own_too() {
    let text = "local tokaido = require 'tokaido' local n = math.random(2 ^ 50)
        return { f = tokaido.read(function() return n end) }";
    assert_ne!(Bed::one(text).run().unwrap(), Bed::one(text).run().unwrap());
}

#[test]
fn a_seed_holds_for_the_call_that_sets_it_and_for_nobody_else() {
    let mut bed = Bed::of(&[(
        "m",
        "local tokaido = require 'tokaido'
        math.randomseed(7)
        return {
          draw = tokaido.read(function() return tostring(math.random()) end),
          f = tokaido.read(function()
            math.randomseed(7)
            return math.random() .. ' ' .. math.random()
          end),
        }",
    )]);
    let first = bed.call("m.draw", &[]).unwrap();
    let (seeded, after) = (bed.run().unwrap(), bed.call("m.draw", &[]).unwrap());
    assert_eq!(bed.run().unwrap(), seeded);
    let mut other = Bed::body("math.randomseed(7) return math.random() .. ' ' .. math.random()");
    assert_eq!(other.run().unwrap(), seeded);
    let Value::String(seeded) = seeded else { panic!() };
    for drawn in [first, after, bed.call("m.draw", &[]).unwrap()] {
        let Value::String(drawn) = drawn else { panic!() };
        assert!(!seeded.starts_with(&drawn), "{}", String::from_utf8_lossy(&drawn));
    }
}

#[test]
fn random_bytes_are_as_many_as_asked_for() {
    let mut bed = Bed::body("return #tokaido.random_bytes(...)");
    for len in [0, 1, 255, 256, 257, 1 << 20] {
        assert_eq!(bed.call("m.f", &[Value::Integer(len)]).unwrap(), Value::Integer(len));
    }
    for (argument, message) in [
        (Value::Integer(-1), "from 0 to 1048576, this is -1"),
        (Value::Integer(1 + (1 << 20)), "from 0 to 1048576, this is 1048577"),
        (Value::Number(1.5), "from 0 to 1048576, this is 1.5"),
        (Value::Nil, "the number of bytes is a number, this is nil"),
    ] {
        let Err(CallError::Raised { message: raised, .. }) = bed.call("m.f", &[argument]) else {
            panic!()
        };
        assert!(raised.starts_with("m.lua:2: ") && raised.ends_with(message), "{raised}");
    }
}

#[test]
fn random_bytes_are_others_each_time() {
    let mut bed = Bed::body("return tokaido.random_bytes(32) ~= tokaido.random_bytes(32)");
    assert_eq!(bed.run().unwrap(), Value::Boolean(true));
}

#[test]
fn a_uuid_is_one_of_version_4() {
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let uuid = text_of("return tokaido.uuid()");
        let parts: Vec<_> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(uuid.bytes().all(|b| b"0123456789abcdef-".contains(&b)), "{uuid}");
        assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{uuid}");
        assert!(seen.insert(uuid));
    }
}
