//! Handles of hashes, lists, sets, sorted sets and streams in Ruby procedures, over a store on
//! disk: small, large and missing ones.

mod streams;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use support::{json, sources, write_body};
use tempfile::TempDir;
use tokaido_ruby::RubyVm;
use tokaido_script::{CallError, Limits, Mode, Runtime as _, Transaction, Value};
use tokaido_store::{Store, tree};

/// A store on disk, and one file of procedures.
struct Bed {
    store: Arc<dyn Store>,
    vm: RubyVm,
    _directory: TempDir,
}

impl Bed {
    fn with_limits(ruby: &str, limits: Limits) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let options = tree::Options { size_max: 1 << 30, ..tree::Options::default() };
        let store: Arc<dyn Store> = Arc::new(tree::open(directory.path(), options).unwrap());
        let (vm, errors) = RubyVm::new(&store, &sources(&[("m", ruby)]), limits).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { store, vm, _directory: directory }
    }

    /// Calls a procedure in its mode, and commits if it succeeds.
    fn call(&mut self, name: &str) -> Result<Value, CallError> {
        let id = self.vm.find(name.as_bytes()).unwrap();
        if self.vm.procedures().iter().find(|p| p.name == name).unwrap().mode == Mode::Read {
            let mut snapshot = self.store.snapshot().unwrap();
            return self.vm.call(id, Transaction::Read(&mut *snapshot).into(), &[]);
        }
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let result = self.vm.call(id, transaction.into(), &[]);
        match &result {
            Ok(_) => drop(writer.commit().unwrap()),
            Err(_) => writer.rollback().unwrap(),
        }
        writer.flush().unwrap();
        result
    }
}

/// The start of every body: the collections of each kind under keys of `main`.
const HANDLES: &str = "main = tx[:main]
hash, list, set, sorted = main.hash_at('h'), main.list_at('l'), main.set_at('s'), main.sorted_set_at('z')
";

fn eval(body: &str) -> Result<Value, CallError> {
    let text = write_body(&format!("{HANDLES}{body}"));
    Bed::with_limits(&text, Limits::default()).call("m.f")
}

/// Asserts that a body returns this JSON.
#[track_caller]
fn gives(body: &str, expected: &str) {
    match eval(body) {
        Ok(value) => assert_eq!(json(&value), expected, "{body}"),
        Err(error) => panic!("{body}: {error}"),
    }
}

#[track_caller]
fn raises(body: &str, expected: &str) {
    let error = eval(body).expect_err(body).to_string();
    assert!(error.contains(expected), "{body}: {error}");
}

#[test]
fn a_hash_has_fields() {
    gives(
        "[hash.set('a', 1), hash.set(:a, 2), hash['a'], hash[:b], hash.size]",
        r#"[true,false,"2",null,1]"#,
    );
    gives(
        "hash['a'] = 1\n[hash.fetch('a'), hash.fetch('b', 0), hash.fetch('b') { |f| f * 2 }]",
        r#"["1",0,"bb"]"#,
    );
    gives("hash.update(a: 1, 'b' => 2)\nhash.get_many(%w[b c a])", r#"{"b":"2","a":"1"}"#);
    gives("[hash.add('a', 1), hash.add('a', 2), hash['a']]", r#"[true,false,"1"]"#);
    gives(
        "hash['a'] = 1\n[hash.delete('a'), hash.delete('a'), main.key?('h'), hash.empty?]",
        "[true,false,false,true]",
    );
    gives(
        "hash['a'] = 1\n[hash.key?('a'), hash.include?('b'), hash.has_key?('a'), hash.member?('b')]",
        "[true,false,true,false]",
    );
    gives("[hash.increment('n'), hash.increment('n', -3), hash['n']]", r#"[1,-2,"-2"]"#);
    gives(
        "[hash.increment_float('n', 1.5), hash.increment_float('n', 1), hash['n']]",
        r#"[1.5,2.5,"2.5"]"#,
    );
    gives("hash['a'] = 1\n[hash.sample, main.hash_at('none').sample]", r#"[["a","1"],null]"#);
    gives(
        "hash.update(b: 1, a: 2)\n[hash.keys.sort, hash.values.sort, hash.to_h.size, hash.to_a.size]",
        r#"[["a","b"],["1","2"],2,2]"#,
    );
    gives("hash.update(a: 1, b: 2)\nhash.to_h { |k, v| [v, k] }", r#"{"1":"a","2":"b"}"#);
    gives("hash.update(a: 1, b: 2)\nhash.map { |field, value| field + value }", r#"["a1","b2"]"#);
    gives(
        "hash['a'] = 1\n[hash.clear, hash.clear, hash.key, hash.to_s]",
        r##"[true,false,"h","#<StoredHash \"h\" of main>"]"##,
    );
}

#[test]
fn a_list_has_positions_as_an_array_has() {
    for (what, is_like) in [
        ("list[0]", true),
        ("list[-1]", true),
        ("list[9]", true),
        ("list[-9]", true),
        ("list[1, 2]", true),
        ("list[-2, 9]", true),
        ("list[1..]", true),
        ("list[..1]", true),
        ("list[1...-1]", true),
        ("list[-3..-2]", true),
        ("list[3..1]", true),
        ("list.slice(1..2)", true),
        ("list.first", true),
        ("list.first(2)", true),
        ("list.last", true),
        ("list.last(2)", true),
        ("list.last(9)", true),
        ("list.pop", true),
        ("list.shift", true),
        ("list.index('c')", true),
        ("list.index('z')", true),
        ("list.index { |item| item > 'b' }", true),
        ("list.delete_at(1)", true),
        ("list.delete_at(-1)", true),
        ("list.delete_at(9)", true),
        ("list.push('x', 'y').to_a", true),
        ("(list << 'x').to_a", true),
        ("list.append('x').size", true),
        ("list.unshift('x', 'y').to_a", true),
        ("list.prepend('x').to_a", true),
        ("list.insert(1, 'x').to_a", true),
        ("list.insert(4, 'x').to_a", true),
        ("list.insert(-1, 'x').to_a", true),
        ("list.insert(-2, 'x').to_a", true),
        ("list[1] = 'x'; list.to_a", true),
        ("list[-1] = 'x'; list.to_a", true),
        ("list.each_slice(3).to_a", true),
        ("list.reverse_each.to_a", true),
        ("list.include?('b')", true),
        ("[list.size, list.length, list.count, list.count('b'), list.empty?]", true),
        ("list.map(&:upcase)", true),
        ("list.each_with_index.to_a", true),
        ("list.inject(:+)", true),
        // Like an Array, it returns nil for a missing position.
        ("list[9, 2]", false),
        ("list[9..]", false),
    ] {
        let of_list = format!("list.push('a', 'b', 'c', 'd')\n{what}");
        let expected = eval(&format!("list = %w[a b c d]\n{what}")).unwrap();
        gives(&of_list, if is_like { json(&expected) } else { "[]".to_owned() }.as_str());
    }
    gives(
        "list.push('a', 'b', 'c', 'd')\n[list.trim(1..2).to_a, list.trim(5..).size, main.key?('l')]",
        r#"[["b","c"],0,false]"#,
    );
    gives(
        "[list.pop, list.shift, list.to_a, list.reverse_each.to_a, list[0], list.index('a')]",
        "[null,null,[],[],null,null]",
    );
    raises("list[0] = 'x'", "the list has no item 0");
    raises("list.insert(1, 'x')", "the list ends before that position");
    raises("list.insert(-3, 'x')", "the list has no place -3");
    raises("list['a']", "a position is an integer, this is String");
}

#[test]
fn a_set_has_members() {
    gives(
        "[set.add('a'), set.add(:a), (set << 'b').size, set.include?('a'), set.member?('c')]",
        "[true,false,2,true,false]",
    );
    gives(
        "set << 'a' << 'b'\n[set.delete('a'), set.delete('a'), set.to_a]",
        r#"[true,false,["b"]]"#,
    );
    gives(
        "set << 'a'\n[set.sample, set.pop, set.pop, set.sample, main.key?('s')]",
        r#"["a","a",null,null,false]"#,
    );
    gives(
        "other = main.set_at('o').replace(%w[b c])
         set.replace(%w[a b])
         [(set | other).sort, set & other, set - other, set - %w[a], set === 'a']",
        r#"[["a","b","c"],["b"],["a"],["b"],true]"#,
    );
    gives("case 'a' when set.replace(['a']) then 1 else 2 end", "1");
    gives("set.replace(%w[x y]).replace([]).size", "0");
}

#[test]
fn a_sorted_set_has_ranks_and_scores() {
    let four = "sorted.add('a', 1); sorted['b'] = 2; sorted.add('c', 2.5); sorted.add('d', 9)\n";
    let of_four = |body: &str, expected: &str| gives(&format!("{four}{body}"), expected);
    of_four(
        "[sorted.add('a', 3), sorted.add('e', 3), sorted['a'], sorted.score('z')]",
        "[false,true,3.0,null]",
    );
    of_four("[sorted.rank('b'), sorted.rank('b', reverse: true), sorted.rank('z')]", "[1,2,null]");
    of_four("[sorted.increment('a', 4.5), sorted.increment('n'), sorted.size]", "[5.5,1.0,5]");
    of_four(
        "[sorted.delete('a'), sorted.delete('a'), sorted.include?('b'), sorted.member?('a')]",
        "[true,false,true,false]",
    );
    of_four(
        "[sorted.pop_min, sorted.pop_max, sorted.members]",
        r#"[["a",1.0],["d",9.0],["b","c"]]"#,
    );
    of_four("sorted.to_a", r#"[["a",1.0],["b",2.0],["c",2.5],["d",9.0]]"#);
    of_four("sorted.reverse_each.map { |member, score| member }", r#"["d","c","b","a"]"#);
    of_four("sorted.top(2)", r#"[["d",9.0],["c",2.5]]"#);
    of_four("sorted.to_h", r#"{"a":1.0,"b":2.0,"c":2.5,"d":9.0}"#);
    for (range, members) in [
        ("from: 2", r#"["b","c","d"]"#),
        ("after: 2", r#"["c","d"]"#),
        ("from: 2, to: 2.5", r#"["b","c"]"#),
        ("after: 1, before: 9", r#"["b","c"]"#),
        ("to: 2, reverse: true", r#"["b","a"]"#),
        ("from: -Float::INFINITY, to: Float::INFINITY", r#"["a","b","c","d"]"#),
        ("from: 10", "[]"),
    ] {
        of_four(&format!("sorted.scan({range}).map(&:first)"), members);
        let mut words: Vec<&str> = members.trim_matches(['[', ']']).split(',').collect();
        words.retain(|word| !word.is_empty());
        let left = 4 - words.len();
        of_four(
            &format!(
                "range = sorted.scan({range})\n[range.size, range.count, range.clear, sorted.size]"
            ),
            &format!("[{0},{0},{0},{left}]", words.len()),
        );
    }
    of_four("sorted.sample.size", "2");
    gives(
        "[sorted.pop_min, sorted.pop_max, sorted.sample, sorted.to_a, sorted.scan.size, sorted.rank('a')]",
        "[null,null,null,[],0,null]",
    );
    raises("sorted.add('a', 0.0 / 0.0)", "a score");
    raises("sorted.add('a', 'x')", "a score");
    raises("sorted.add('a', Float::INFINITY); sorted.increment('a', -Float::INFINITY)", "no score");
    raises("sorted.scan(from: 1, after: 2)", "a range begins");
    raises("sorted.scan(to: 1, before: 2)", "a range ends");
}

/// Several pages of elements of every kind: forwards and backwards, whole, and up to where a block leaves.
#[test]
fn large_collections_are_gone_through_in_pages() {
    let fill = "names = (0...1000).map { |n| format('%04d', n) }
         names.each { |name| hash[name] = name; list << name; set << name; sorted[name] = name.to_i / 10 }\n";
    let of_full = |body: &str, expected: &str| gives(&format!("{fill}{body}"), expected);
    of_full(
        "[hash.size, hash.to_a.sort == names.zip(names), list.to_a == names, set.to_a.sort == names, sorted.members == names]",
        "[1000,true,true,true,true]",
    );
    of_full(
        "back = names.reverse
         [list.reverse_each.to_a == back, sorted.reverse_each.map(&:first) == back, list[10...990] == names[10...990]]",
        "[true,true,true]",
    );
    of_full(
        "[sorted.scan(from: 10, before: 20).map(&:first) == names[100...200], sorted.scan(from: 10, before: 20).size,
          sorted.scan(to: 50, reverse: true).map(&:first) == names[0..509].reverse]",
        "[true,100,true]",
    );
    of_full(
        "[hash.first(3).size, list.each_slice(300).map(&:size), set.each.next.size, sorted.lazy.map(&:first).first(2)]",
        r#"[3,[300,300,300,100],4,["0000","0001"]]"#,
    );
}

#[test]
fn a_block_may_write_to_what_it_goes_through() {
    let fill = "names = (0...300).map { |n| format('%03d', n) }
         names.each { |name| hash[name] = name; list << name; set << name; sorted[name] = name.to_i }\n";
    let of_full = |body: &str, expected: &str| gives(&format!("{fill}{body}"), expected);
    of_full(
        "seen = 0\nhash.each { |field, _| seen += 1; hash.delete(field) }\n[seen, hash.size]",
        "[300,0]",
    );
    of_full(
        "seen = 0\nset.each { |member| seen += 1; set.delete(member) }\n[seen, set.size]",
        "[300,0]",
    );
    of_full(
        "seen = 0\nsorted.each { |member, _| seen += 1; sorted.delete(member) }\n[seen, sorted.size]",
        "[300,0]",
    );
    of_full("hash.each { |field, value| hash[field] = value + '!' }\nhash.values.uniq.size", "300");
    of_full(
        "list.each.with_index { |item, i| list[i] = item * 2 }\n[list.size, list[299]]",
        r#"[300,"299299"]"#,
    );
    of_full(
        "seen = 0\nlist.reverse_each { |_| seen += 1; list.pop }\n[seen, list.size]",
        "[300,0]",
    );
    // Removing an item before the current position moves the rest, so every other item is visited.
    of_full("seen = 0\nlist.each { |_| seen += 1; list.shift }\n[seen, list.size]", "[150,150]");
    of_full("list.each { |item| break list.push('end') if item == '007' }\nlist.last", r#""end""#);
    // An exception in the block ends the iteration, even one that loops rescue elsewhere.
    of_full(
        "begin; set.each { raise StopIteration }; rescue StopIteration; 'stopped'; end",
        r#""stopped""#,
    );
}

#[test]
fn a_key_of_another_kind_is_refused_with_a_code() {
    for body in [
        "main['h'] = 'text'; hash['a']",
        "main['h'] = 'text'; hash['a'] = 1",
        "main['l'] = 'text'; list << 'a'",
        "list << 'a'; main.set_at('l').to_a",
        "set << 'a'; main.sorted_set_at('s').size",
        "sorted['a'] = 1; main.list_at('z').to_a",
        "set << 'a'; main.stream_at('s').add({ a: 1 })",
        "main.stream_at('q').add({ a: 1 }); main['q']",
    ] {
        match eval(body).expect_err(body) {
            CallError::Refused { code, .. } => {
                assert_eq!(code.as_deref(), Some("WRONGTYPE"), "{body}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
    // An error may be rescued if it was raised before anything was written.
    gives(
        "main['h'] = 'text'\nbegin; hash['a'] = 1; rescue Tokaido::Error; end\nmain['h']",
        r#""text""#,
    );
    raises("hash['a'] = 'x'; hash.increment('a')", "not a number that can be incremented");
    raises("hash['a'] = 9_223_372_036_854_775_807; hash.increment('a')", "overflow");
    raises("hash['a' * 70_000] = 1", "at most 4096 bytes");
    raises("hash[[]]", "a string, symbol or number is expected");
    raises("set.add(nil)", "a member");
}

#[test]
fn a_read_procedure_reads_and_does_not_write() {
    let mut bed = Bed::with_limits(
        "class M < Tokaido::Procedures
 write def fill(tx) = tx[:main].list_at('l').push('a', 'b').size
 read def all(tx) = [tx[:main].list_at('l').to_a, tx[:none].hash_at('h').to_h, tx[:none].sorted_set_at('z').to_a,
                     tx[:none].set_at('s').include?('a'), tx[:none].list_at('l').first]
 read def push(tx) = tx[:main].list_at('l').push('c')
end",
        Limits::default(),
    );
    assert_eq!(json(&bed.call("m.fill").unwrap()), "2");
    assert_eq!(json(&bed.call("m.all").unwrap()), r#"[["a","b"],{},[],false,null]"#);
    let refused = bed.call("m.push").unwrap_err().to_string();
    assert!(refused.contains("read"), "{refused}");
}

#[test]
fn one_call_goes_through_a_limited_number_of_elements() {
    let limits = Limits { many_keys_max: 100, ..Limits::default() };
    let refused = |body: &str| {
        let text = write_body(&format!(
            "{HANDLES}300.times {{ |n| list << n.to_s; sorted[n.to_s] = n }}\n{body}"
        ));
        Bed::with_limits(&text, limits)
            .call("m.f")
            .map(|value| json(&value))
            .map_err(|e| e.to_string())
    };
    for body in [
        "list.index('200')",
        "list.delete_at(150)",
        "list.insert(150, 'x')",
        "list.trim(150..)",
        "sorted.scan(from: 150).clear",
    ] {
        let error = refused(body).expect_err(body);
        assert!(error.contains("at most 100 elements"), "{body}: {error}");
    }
    for (body, expected) in [
        ("list.index('20')", "20"),
        ("list.delete_at(299)", r#""299""#),
        ("list.to_a.size", "300"),
        ("list.trim(300..).size", "0"),
        ("sorted.scan.clear", "300"),
    ] {
        assert_eq!(refused(body).as_deref(), Ok(expected), "{body}");
    }
}

#[test]
fn runaways_over_handles_are_stopped() {
    for body in [
        "list << 'a'\nlist.each { |item| list << item }",
        "while true do hash['a'] = 1; hash.delete('a') end",
        "while true do begin; main['h'] = 'x'; hash['a']; rescue Tokaido::Error; end end",
    ] {
        let error = Bed::with_limits(&write_body(&format!("{HANDLES}{body}")), support::limits())
            .call("m.f")
            .expect_err(body)
            .to_string();
        assert!(error.contains("ms"), "{body}: {error}");
    }
}

#[test]
fn a_handle_outlives_no_transaction() {
    let mut bed = Bed::with_limits(
        "class M < Tokaido::Procedures
 write def keep(tx) = ($kept = tx[:main].hash_at('h')).set('a', 1)
 write def use(tx) = $kept['a']
end",
        Limits::default(),
    );
    bed.call("m.keep").unwrap();
    // Either the machine's global is gone, or the handle finds the same record, never another one.
    match bed.call("m.use") {
        Ok(value) => assert_eq!(json(&value), r#""1""#),
        Err(error) => assert!(error.to_string().contains("nil"), "{error}"),
    }
}
