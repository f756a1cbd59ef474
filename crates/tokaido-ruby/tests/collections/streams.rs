//! Streams and their groups.

use super::{gives, raises};

#[test]
fn a_stream_has_entries() {
    let three = "stream = main.stream_at('q'); stream.add({ 'a' => 1, b: 'x' }, id: '5-1'); stream.add({ a: 2 }, id: 6); stream.add({ a: 3 }, id: '6-7')\n";
    let of_three = |body: &str, expected: &str| gives(&format!("{three}{body}"), expected);
    of_three(
        "[stream.size, stream.last_id, stream.get('5-1'), stream['6'], stream['9']]",
        r#"[3,"6-7",{"a":"1","b":"x"},{"a":"2"},null]"#,
    );
    of_three("stream.to_a", r#"[["5-1",{"a":"1","b":"x"}],["6-0",{"a":"2"}],["6-7",{"a":"3"}]]"#);
    of_three("stream.reverse_each.map(&:first)", r#"["6-7","6-0","5-1"]"#);
    for (range, ids) in [
        ("from: 6", r#"["6-0","6-7"]"#),
        ("to: 6", r#"["5-1","6-0","6-7"]"#),
        ("after: '5-1', before: '6-7'", r#"["6-0"]"#),
        ("to: '6-0', reverse: true", r#"["6-0","5-1"]"#),
        ("after: 9", "[]"),
        ("after: '18446744073709551615-18446744073709551615'", "[]"),
    ] {
        of_three(&format!("stream.scan({range}).map(&:first)"), ids);
    }
    of_three(
        "range = stream.scan(from: 6)\n[range.size, range.empty?, range.clear, stream.size, stream.last_id]",
        r#"[2,false,2,1,"6-7"]"#,
    );
    of_three(
        "[stream.delete('6-0'), stream.delete('6-0'), stream.map(&:first)]",
        r#"[true,false,["5-1","6-7"]]"#,
    );
    of_three(
        "[stream.trim(max_count: 1), stream.size, stream.trim(min_id: 9), main.key?('q'), stream.clear, main.key?('q')]",
        "[2,1,1,true,true,false]",
    );
    of_three(
        "id = stream.add({ now: 1 }, max_count: 2); [id.split('-').first.to_i == tx.now_ms, stream.size]",
        "[true,2]",
    );
    raises(
        &format!("{three}stream.add({{ a: 1 }}, id: '6-7')"),
        "larger than that of all before it, here than 6-7",
    );
    raises(&format!("{three}stream.add({{}})"), "one field or more");
    raises("main.stream_at('q').add({ a: [] })", "a field or a value");
    raises("main.stream_at('q').get('x')", "is no id");
    raises("main.stream_at('q').trim(max_count: -1)", "max_count is an integer from 0 up");
    raises("main.stream_at('q').scan(from: 1, after: 2)", "a range begins");
    gives(
        "q = main.stream_at('q'); [q.size, q.last_id, q.get(1), q.to_a, q.empty?, q.trim(max_count: 0)]",
        "[0,null,null,[],true,0]",
    );
    gives("q = main.stream_at('q'); 700.times { |i| q.add({ n: i }, id: \"7-#{i}\") }
         [q.map { |_, fields| fields['n'].to_i } == (0...700).to_a, q.reverse_each.first[0], q.each_slice(300).map(&:size), q.trim(max_count: 3)]",
        r#"[true,"7-699",[300,300,100],697]"#);
    gives("q = main.stream_at('q'); q.add({ n: 0 }, id: 1); seen = 0
         q.each { |id, _| seen += 1; q.delete(id); q.add({ n: seen }) if seen < 500 }\n[seen, q.size]", "[500,0]");
}

#[test]
fn a_group_shares_entries_out() {
    let begun = "q = main.stream_at('q'); g = q.group('workers'); 5.times { |i| q.add({ n: i }, id: i + 1) }\n";
    let of_begun = |body: &str, expected: &str| gives(&format!("{begun}{body}"), expected);
    of_begun(
        "[g.exists?, g.create(after: 0), g.create, g.exists?, g.destroy, g.destroy, g.name, g.key]",
        r#"[false,true,false,true,true,false,"workers","q"]"#,
    );
    of_begun("g.create; q.add({ n: 'new' }, id: 9); g.read('ann', 10)", r#"[["9-0",{"n":"new"}]]"#);
    of_begun(
        "g.create(after: '0'); [g.read('ann', 2).map(&:first), g.read('bob').map(&:first), g.acknowledge('1-0'), g.acknowledge('1-0')]",
        r#"[["1-0","2-0"],["3-0"],true,false]"#,
    );
    let read = "g.create(after: '0'); g.read('ann', 2); g.read('bob', 1)\n";
    of_begun(
        &format!(
            "{read}g.pending.map {{ |entry| [entry.id, entry.consumer, entry.idle_ms, entry.deliveries] }}"
        ),
        r#"[["1-0","ann",0,1],["2-0","ann",0,1],["3-0","bob",0,1]]"#,
    );
    of_begun(
        &format!(
            "{read}[g.pending(consumer: 'ann', limit: 1).map(&:id), g.pending(after: 1).size, g.pending(idle_ms: 5), g.pending(consumer: 'eve')]"
        ),
        r#"[["1-0"],2,[],[]]"#,
    );
    of_begun(
        &format!(
            "{read}[g.claim('bob', '1-0'), g.pending(consumer: 'bob').map(&:deliveries), g.claim('bob', '2-0', idle_ms: 99), g.claim('bob', '4-0')]"
        ),
        r#"[{"n":"0"},[2,1],null,null]"#,
    );
    of_begun(
        &format!("{read}q.delete('1-0'); [g.claim('bob', '1-0'), g.pending.map(&:id)]"),
        r#"[null,["2-0","3-0"]]"#,
    );
    of_begun(
        &format!("{read}s = g.summary; [s.pending, s.last_id, s.consumers]"),
        r#"[3,"3-0",{"ann":2,"bob":1}]"#,
    );
    for call in ["read('ann')", "summary", "pending", "acknowledge(1)", "claim('ann', 1)"] {
        raises(&format!("{begun}g.{call}"), "the stream has no group \"workers\"");
    }
    raises(&format!("{begun}g.create; g.read('ann', 0.5)"), "a count is an integer");
    raises("main['q'] = 1; main.stream_at('q').size", "another kind");
}
