//! Scans against a model: the same range over a `BTreeMap`.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::{Bed, DISTURBED, text, write_body};
use tokaido_script::Value;

const SCANNER: &str = "
    local tokaido = require 'tokaido'
    local m = {}
    m.fill = tokaido.write(function(tx, keys)
      tx.main:clear()
      for i = 1, #keys do tx.main:put(keys[i], 'v' .. keys[i]) end
    end)
    m.scan = tokaido.read(function(tx, range)
      local found, keys = {}, {}
      for key, value in tx.main:scan(range) do
        assert(value == 'v' .. key)
        found[#found + 1] = key
      end
      for key in tx.main:keys(range) do keys[#keys + 1] = key end
      assert(table.concat(found, '|') == table.concat(keys, '|'))
      return found
    end)
    return m";

/// Few letters, so that bounds meet keys; also the largest byte, since prefixes end after it.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 255]), 1..4)
}

#[derive(Clone, Debug, Default)]
struct Range {
    bounds: BTreeMap<&'static str, Vec<u8>>,
    reverse: bool,
    limit: Option<usize>,
}

impl Range {
    fn value(&self) -> Value {
        let mut entries: Vec<_> = self
            .bounds
            .iter()
            .map(|(name, key)| (text(name), Value::String(key.clone())))
            .collect();
        entries.push((text("reverse"), Value::Boolean(self.reverse)));
        if let Some(limit) = self.limit {
            entries.push((text("limit"), Value::Integer(limit as i64)));
        }
        Value::Map(entries)
    }

    fn holds(&self, key: &[u8]) -> bool {
        self.bounds.iter().all(|(name, bound)| match *name {
            "prefix" => key.starts_with(bound),
            "from" => key >= &bound[..],
            "after" => key > &bound[..],
            "to" => key <= &bound[..],
            _ => key < &bound[..],
        })
    }
}

fn range() -> impl Strategy<Value = Range> {
    let bound = || prop::option::weighted(0.3, key());
    (bound(), bound(), bound(), bound(), bound(), any::<bool>(), prop::option::of(0..5usize))
        .prop_map(|(prefix, from, after, to, before, reverse, limit)| {
            let bounds = [
                ("prefix", prefix),
                ("from", from),
                ("after", after),
                ("to", to),
                ("before", before),
            ];
            let bounds = bounds.into_iter().filter_map(|(name, key)| Some((name, key?))).collect();
            Range { bounds, reverse, limit }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_scan_visits_what_the_model_has(
        keys in prop::collection::btree_set(key(), 0..12),
        ranges in prop::collection::vec(range(), 1..8),
    ) {
        thread_local! {
            static BED: std::cell::RefCell<Bed> = std::cell::RefCell::new(Bed::one(SCANNER));
        }
        BED.with_borrow_mut(|bed| {
            let list = keys.iter().cloned().map(Value::String).collect();
            bed.call("m.fill", &[Value::Array(list)]).unwrap();
            for range in &ranges {
                let mut expected: Vec<_> =
                    keys.iter().filter(|key| range.holds(key)).cloned().collect();
                if range.reverse {
                    expected.reverse();
                }
                expected.truncate(range.limit.unwrap_or(usize::MAX));
                let expected = Value::Array(expected.into_iter().map(Value::String).collect());
                let found = bed.call("m.scan", &[range.value()]).unwrap();
                prop_assert_eq!(found, expected, "{:?}", range);
            }
            Ok(())
        })?;
    }
}

fn scanned(body: &str) -> Value {
    let mut bed = Bed::one(&write_body(&format!(
        "local db = tx.main
        for _, key in ipairs{{'a', 'b1', 'b2', 'b3', 'c', '7'}} do db:put(key, key) end
        local found = {{}}
        {body}
        return table.concat(found, ' ')"
    )));
    bed.run().unwrap()
}

#[test]
fn shorthands_and_numbers() {
    for (range, expected) in [
        ("", "7 a b1 b2 b3 c"),
        ("'b'", "b1 b2 b3"),
        ("''", "7 a b1 b2 b3 c"),
        ("7", "7"),
        ("{from = 8}", "a b1 b2 b3 c"),
        ("{prefix = 'b', from = 'b2'}", "b2 b3"),
        ("{prefix = 'b', reverse = true, limit = 2}", "b3 b2"),
        ("{before = ''}", ""),
        ("{from = ''}", "7 a b1 b2 b3 c"),
        ("{to = 'b2', reverse = true, after = 'a'}", "b2 b1"),
        ("{from = 'c', to = 'a'}", ""),
    ] {
        let body = format!("for key in db:scan({range}) do found[#found + 1] = key end");
        assert_eq!(scanned(&body), text(expected), "{range}");
    }
}

#[test]
fn a_scan_may_write_and_be_left() {
    let delete = "for key in db:scan('b') do db:delete(key) end
        for key in db:scan() do found[#found + 1] = key end";
    assert_eq!(scanned(delete), text("7 a c"));
    let grow = "for key in db:scan{from = 'b1', limit = 5} do
          found[#found + 1] = key
          db:put(key .. 'x', '')
        end";
    assert_eq!(scanned(grow), text("b1 b1x b1xx b1xxx b1xxxx"));
    let leave = "for key in db:scan() do found[#found + 1] = key if key == 'a' then break end end";
    assert_eq!(scanned(leave), text("7 a"));
    let within = "for a in db:scan{limit = 2} do for b in db:scan{reverse = true, limit = 2} do
          found[#found + 1] = a .. b end end";
    assert_eq!(scanned(within), text("7c 7b3 ac ab3"));
}

#[test]
fn a_scan_goes_on_where_another_ended() {
    let pages = "local last
        repeat
          local page = {}
          for key in db:scan{after = last, limit = 4} do page[#page + 1] = key last = key end
          found[#found + 1] = #page
        until #page == 0";
    assert_eq!(scanned(pages), text("4 2 0"));
}

/// What was read ahead for a loop is gone when another scan begins, even if that scan fails.
#[test]
fn a_scan_that_fails_within_a_loop_leaves_the_loop_as_it_was() {
    let mut bed = Bed::one(&write_body(
        "local db = tx.main
        local long = ('y'):rep(2^21)
        db:put('a', 'first') db:put('b', long) db:put('c', 'last')
        local found = {}
        for key, value in db:scan() do
          local failed = not pcall(function()
            for _ in db:scan{from = ('x'):rep(5000)} do end
          end)
          assert(failed)
          found[#found + 1] = key .. (value == long and 'long' or value)
        end
        return table.concat(found, ' ')",
    ));
    assert_eq!(bed.run().unwrap(), text("afirst blong clast"));
}

#[test]
fn a_state_that_was_changed_leads_to_no_other_memory() {
    let body = "for i = 1, 9 do tx.main:put(i, 'v') end
        for _, scan in ipairs {tx.main.scan, tx.main.keys} do
          for _, at in ipairs {-1, -8, -1e9, 1e9, 2 ^ 31, 2 ^ 60, 0 / 0, 1 / 0, 0x7fffffffffffffffLL} do
            local step, state = scan(tx.main)
            local key = step(state, step(state))
            state.at, state.unread = at, 5
            local ok, why = pcall(step, state, key)
            assert(not ok and why:find('the state of a scan'), why)
          end
        end";
    Bed::body(body).run().unwrap();
}

/// Access to a field of a state with a metatable may run another scan, which frees what was read ahead.
#[test]
fn a_state_with_a_metatable_leads_to_no_other_memory() {
    let body = format!(
        "{DISTURBED}
        local long = ('y'):rep(2^21)
        tx.main:put('first', long) tx.main:put('second', 'short')
        local function disturb() for _ in tx.main:scan{{from = 'second'}} do end end
        for _, kind in ipairs {{'scan', 'keys'}} do
          for _, when in ipairs {{'read', 'write', 'moved'}} do
            local step, state = tx.main[kind](tx.main)
            local ok, key, value = pcall(step, disturbed(state, when, disturb))
            if ok then
              assert(key == 'first' and (kind == 'keys' or value == long), kind .. ' ' .. when)
            else
              assert(when ~= 'moved' and key:find('the state of a scan'), key)
            end
          end
        end"
    );
    Bed::body(&body).run().unwrap();
}

#[test]
fn a_database_of_a_high_number_is_scanned_itself() {
    let mut bed = Bed::one(&write_body(
        "local db
         for i = 1, 600 do db = tx:database('d' .. i) db:put(i, i) end
         local found = {}
         for key in db:scan{from = '5', to = '7', reverse = true} do found[#found + 1] = key end
         for key in db:keys() do found[#found + 1] = key end
         return table.concat(found, ' ')",
    ));
    assert_eq!(bed.run().unwrap(), text("600 600"));
}
