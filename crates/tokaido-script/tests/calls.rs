//! Calls of procedures: values in and out, the database methods, transactions.

mod support;

use support::{Bed, text};
use tokaido_script::{CallError, Value};

#[test]
fn a_procedure_counts_in_its_transaction() {
    let mut bed = Bed::one(
        r#"
        local tokaido = require "tokaido"
        local hits = {}
        hits.count = tokaido.write(function(tx, page) return tx.main:increment(page, 1) end)
        hits.get = tokaido.read(function(tx, page) return tx.main:get(page) end)
        return hits
        "#,
    );
    assert_eq!(bed.call("m.get", &[text("/")]).unwrap(), Value::Nil);
    assert_eq!(bed.call("m.count", &[text("/")]).unwrap(), Value::Integer(1));
    assert_eq!(bed.call("m.count", &[text("/")]).unwrap(), Value::Integer(2));
    assert_eq!(bed.call("m.get", &[text("/")]).unwrap(), text("2"));
}

#[test]
fn an_error_names_file_and_line_and_leaves_nothing() {
    let mut bed = Bed::one(
        r#"
        local tokaido = require "tokaido"
        local function inner(tx)
            tx.main:put("a", 1)
            error("no more tea")
        end
        return { f = tokaido.write(function(tx) inner(tx) return 1 end) }
        "#,
    );
    let Err(CallError::Raised { message, traceback }) = bed.run() else { panic!() };
    assert_eq!(message, "m.lua:5: no more tea");
    assert_eq!(traceback, "m.lua:5: in function 'inner'\nm.lua:7: in function <m.lua:7>");
    assert_eq!(bed.stored("a"), None);
}
