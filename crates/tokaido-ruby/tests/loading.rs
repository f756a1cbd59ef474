//! Loading files as procedures, and reporting their errors.

mod support;

use support::{Bed, json};
use tokaido_script::{Mode, Runtime as _, Value};

#[test]
fn procedures_are_named_after_their_file_and_their_method() {
    let bed = Bed::of(&[
        (
            "hits",
            "class Hits < Tokaido::Procedures
           write def count(tx, page) = tx[:hits].increment(page)
           def top(tx) = 1
           def helper = 2
           read :top
           get('/hits/:page') { |tx, req, res| 1 }
           post('/hits', :top)
         end",
        ),
        ("shop.cart", "class Cart < Tokaido::Procedures\n read def show(tx) = 1\nend"),
    ]);
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    let procedures: Vec<_> = bed
        .vm
        .procedures()
        .iter()
        .map(|p| (p.name.as_str(), p.mode, p.path.display().to_string(), p.line, p.route.is_some()))
        .collect();
    let hits = || "hits.rb".to_owned();
    assert_eq!(
        procedures,
        [
            ("hits.count", Mode::Write, hits(), 2, false),
            ("hits.top", Mode::Read, hits(), 3, false),
            ("hits.GET /hits/:page", Mode::Read, hits(), 6, true),
            ("hits.POST /hits", Mode::Write, hits(), 3, true),
            ("shop.cart.show", Mode::Read, "shop/cart.rb".to_owned(), 2, false),
        ]
    );
}

#[test]
fn files_require_each_other_once() {
    let mut bed = Bed::of(&[
        (
            "a",
            "require 'lib/prices'\nrequire 'tokaido'\nrequire_relative 'lib.prices'\nclass A < Tokaido::Procedures\n read def f(tx) = [Prices::RICE, $loads]\nend",
        ),
        ("lib.prices", "$loads = ($loads || 0) + 1\nmodule Prices\n RICE = 500\nend"),
    ]);
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    assert_eq!(json(&bed.call("a.f", &[]).unwrap()), "[500,1]");
}

#[test]
fn what_is_wrong_with_a_file_names_the_line_and_the_others_serve() {
    let good = "class G < Tokaido::Procedures\n read def f(tx) = 1\nend";
    let cases = [
        ("class X\n def\nend", "bad.rb:3: "),
        ("x = 1\nraise 'no'", "bad.rb:2: no"),
        ("require 'none'", "bad.rb:1: no file none.rb among the procedures"),
        ("require 'bad'", "bad.rb:1: files require each other in a loop: bad -> bad"),
        ("class X < Tokaido::Procedures\n read :none\nend", "bad.rb:2: undefined method 'none'"),
        ("class X < Tokaido::Procedures\n get('hits') { }\nend", "is no path"),
        ("class X < Tokaido::Procedures\n get('/:') { }\nend", "needs one"),
        ("class X < Tokaido::Procedures\n get('/*a/b') { }\nend", "takes the rest"),
        ("class X < Tokaido::Procedures\n get('/a')\nend", "needs a block"),
        ("undefined_thing", "bad.rb:1: undefined method 'undefined_thing'"),
        ("loop {}", "longer than the time limit"),
        ("begin; loop {}; rescue Exception; retry; end", "longer than the time limit"),
        ("a = []; loop { a << 'x' * 100000 }", "more than the memory limit"),
    ];
    for (text, expected) in cases {
        let mut bed = Bed::with_limits(&[("bad", text), ("good", good)], support::limits());
        let errors: Vec<_> = bed.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].contains(expected), "{text}: {errors:?}");
        assert_eq!(bed.call("good.f", &[]).unwrap(), Value::Integer(1), "{text}");
    }
}

#[test]
fn a_file_that_fails_half_way_leaves_no_procedure_and_a_name_belongs_to_the_first() {
    let class = |body: &str| format!("class X < Tokaido::Procedures\n{body}\nend\n");
    let half = class("read def f(tx) = 1") + "raise 'no'";
    let one = class("read def f(tx) = 1\nread def f(tx) = 2\nget('/a/:b') { 1 }");
    let two = class("get('/a/:c') { 2 }\nread def g(tx) = 3");
    let mut bed = Bed::of(&[("half", &half), ("one", &one), ("two", &two)]);
    let names: Vec<_> = bed.vm.procedures().iter().map(|p| p.name.clone()).collect();
    assert_eq!(names, ["one.f", "one.GET /a/:b", "two.g"]);
    let errors: Vec<_> = bed.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(bed.call("two.g", &[]).unwrap(), Value::Integer(3));
}

#[test]
fn without_ruby_files_there_is_nothing() {
    let bed = Bed::of(&[]);
    assert!(bed.vm.procedures().is_empty() && bed.errors.is_empty());
}
