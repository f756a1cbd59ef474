//! Procedure files: what they export, how they find each other, how broken ones are reported.

mod support;

use support::{Bed, write_body};
use tokaido_script::{Mode, Runtime as _, Value};

fn messages(bed: &Bed) -> Vec<String> {
    bed.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn exports_are_listed_by_module_and_name_with_their_lines() {
    let bed = Bed::of(&[
        (
            "shop.cart",
            "local tokaido = require 'tokaido'
            local cart = { version = 1 }
            cart.total = tokaido.read(function(tx) end)
            cart.add = tokaido.write(
              function(tx) end)
            function cart.helper() end
            return cart",
        ),
        ("hits", "return { count = require('tokaido').write(function() end) }"),
    ]);
    assert_eq!(messages(&bed), [""; 0]);
    let listed: Vec<_> = bed
        .vm
        .procedures()
        .iter()
        .map(|procedure| {
            (&*procedure.name, procedure.mode, procedure.path.to_str().unwrap(), procedure.line)
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("hits.count", Mode::Write, "hits.lua", 1),
            ("shop.cart.add", Mode::Write, "shop/cart.lua", 5),
            ("shop.cart.total", Mode::Read, "shop/cart.lua", 3),
        ]
    );
}

#[test]
fn a_broken_file_is_reported_and_the_others_serve() {
    let good = write_body("return require('lib').one");
    let mut bed = Bed::of(&[
        ("lib", "return { one = 1 }"),
        ("m", &good),
        ("bytecode", "\x1bLJ\x02\x08"),
        ("global", "function f() end\nreturn {}"),
        ("number", "return 7"),
        ("nothing", "local x = 1"),
        ("raises", "\n\nerror('not today')"),
        ("raises_table", "error{message = 'no table today'}"),
        ("syntax", "local x = = 1"),
        ("user", "\nlocal syntax = require 'syntax'\nreturn {}"),
        ("bad_write", "return { f = require('tokaido').write(7) }"),
        ("bit", "return {}"),
        ("tokaido.x", "return {}"),
    ]);
    let expected = [
        "bad_write.lua:1: tokaido.write takes a function, this is a number",
        "bit.lua: the name bit is tokaido's own; give the file another one",
        "bytecode.lua: attempt to load a binary chunk (mode is 't')",
        "global.lua:1: assignment to undeclared variable 'f'; declare it with 'local'",
        "nothing.lua: a procedure file returns a table of its procedures; this one returns nil",
        "number.lua: a procedure file returns a table of its procedures; this one returns a number",
        "raises.lua:3: not today",
        "raises_table.lua: no table today",
        "syntax.lua:1: unexpected symbol near '='",
        "tokaido/x.lua: the name tokaido is tokaido's own; give the file another one",
        "user.lua:2: module 'syntax' did not load: syntax.lua:1: unexpected symbol near '='",
    ];
    assert_eq!(messages(&bed), expected);
    assert_eq!(bed.run().unwrap(), Value::Integer(1));
}

#[test]
fn modules_that_require_each_other_in_a_loop_are_told_so() {
    let bed = Bed::of(&[
        ("a", "local b = require 'b'\nreturn {}"),
        ("b", "local c = require 'c'\nreturn {}"),
        ("c", "local a = require 'a'\nreturn {}"),
    ]);
    let first = "a.lua:1: module 'b' did not load: b.lua:1: module 'c' did not load: c.lua:1: modules require each other in a loop: a -> b -> c -> a";
    assert_eq!(messages(&bed)[0], first);
    assert_eq!(bed.errors.len(), 3);
}

#[test]
fn a_module_runs_once() {
    let mut bed = Bed::of(&[
        ("counter", "local n = {0} n[1] = n[1] + 1 return { n = n }"),
        ("m", &write_body("local n = require('counter').n n[1] = n[1] + 1 return n[1]")),
    ]);
    assert_eq!(bed.run().unwrap(), Value::Integer(2));
    assert_eq!(bed.run().unwrap(), Value::Integer(3));
}

#[test]
fn what_editors_and_shells_put_first_is_no_error() {
    let mut bed = Bed::of(&[
        ("m", &format!("\u{feff}{}", write_body("return 1"))),
        ("script", "#!/usr/bin/env -S tokaido run\nreturn {}"),
    ]);
    assert_eq!(messages(&bed), [""; 0]);
    assert_eq!(bed.run().unwrap(), Value::Integer(1));
}

#[test]
fn what_is_declared_twice_is_told_with_both_places_and_both_files_serve() {
    let mut shop = "local tokaido = require 'tokaido'\nlocal shop = {}\n".to_owned();
    for n in 0..44 {
        shop += &format!("shop.f{n} = tokaido.read(function() return {n} end)\n");
    }
    shop += "shop.page = tokaido.http('GET /x/:b', function() end)\nreturn shop";
    let bed = Bed::of(&[
        (
            "first",
            "local tokaido = require 'tokaido'
            return {
              page = tokaido.http('GET /x/:a', function() end),
              ['old.f'] = tokaido.read(function() return 'first' end),
            }",
        ),
        (
            "first.old",
            "local tokaido = require 'tokaido'
            return { f = tokaido.read(function() end), g = tokaido.read(function() end) }",
        ),
        ("shop", &shop),
    ]);
    assert_eq!(
        messages(&bed),
        [
            "first/old.lua:2: first.old.f declares first.old.f, which first.old.f at first.lua:4 \
             has declared before and keeps; change one of them",
            "shop.lua:47: shop.page declares GET /x/:b, which first.page at first.lua:3 has \
             declared before and keeps; change one of them",
        ]
    );
    let places: Vec<_> = bed.errors.iter().map(|e| (&*e.module, e.procedure.as_deref())).collect();
    let expected = [("first.old", Some("first.old.f")), ("shop", Some("shop.page"))];
    assert_eq!(places, expected);
    let names: Vec<_> = bed.vm.procedures().iter().map(|p| &*p.name).collect();
    assert_eq!(names.len(), 2 + 1 + 44, "{names:?}");
    assert!(names.contains(&"first.old.g") && names.contains(&"shop.f43"), "{names:?}");
}
