//! `tokaido dump`, and that `load` undoes it.

use proptest::{prelude::*, test_runner::TestRunner};

use crate::support::{Directory, Server, tokaido, tokaido_with};

/// A database in JSON lines, with arbitrary bytes.
fn dumped_rows() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(b"\t\n\r\\\",{}#\xef\xbb\xbf\xff\0a".to_vec());
    let bytes =
        |len| prop::collection::vec(prop_oneof![2 => special.clone(), 1 => any::<u8>()], len);
    let rows = prop::collection::btree_map(bytes(1..9), bytes(0..15), 1..20);
    rows.prop_map(|rows| {
        let escape = |bytes: &[u8]| bytes.iter().map(|b| format!("\\x{b:02x}")).collect::<String>();
        let lines = rows.iter().map(|(k, v)| format!("{}\t{}\n", escape(k), escape(v)));
        lines.collect::<String>().into_bytes()
    })
}

#[test]
fn what_is_dumped_is_loaded_the_same_whatever_the_bytes() {
    let mut runner = TestRunner::new(ProptestConfig { cases: 12, ..ProptestConfig::default() });
    runner
        .run(&dumped_rows(), |rows| {
            let first = Directory::new();
            tokaido_with(["load", &first.store(), "--format=pairs", "-"], rows).ok();
            let dump = |directory: &Directory, format: &str| {
                tokaido(["dump", &directory.store(), &format!("--format={format}")])
            };
            let content = dump(&first, "jsonl");
            for format in ["jsonl", "pairs", "csv"] {
                let second = Directory::new();
                let args =
                    ["load", &second.store(), &format!("--format={format}"), "--strict", "-"];
                let load = tokaido_with(args, dump(&first, format).stdout);
                prop_assert_eq!(load.code, Some(0), "{:?}", load);
                prop_assert_eq!(&dump(&second, "jsonl").stdout, &content.stdout, "{}", format);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn json_lines_carry_flags_and_expiry() {
    let line = "{\"key\":\"k\",\"value\":\"v\",\"flags\":7,\"expires_at_ms\":4102444800000}\n";
    let directory = Directory::new();
    tokaido_with(["load", &directory.store(), "-"], line).ok();
    assert_eq!(tokaido(["dump", &directory.store()]).ok(), line);
}

#[test]
fn a_server_is_dumped_like_its_directory() {
    let directory = Directory::new();
    let rows: String = (0..3_000).map(|i| format!("a*{i:04}\t値 {i}\n")).collect();
    tokaido_with(["load", &directory.store(), "--db=many", "-"], format!("{rows}ab\tother\n")).ok();
    let expiring = r#"{"key":"soon","value":"v","expires_at_ms":4102444800000}"#;
    tokaido_with(["load", &directory.store(), "--db=many", "-"], expiring).ok();
    let embedded = tokaido(["dump", &directory.store(), "--db=many", "--prefix=a*"]);
    assert_eq!(embedded.ok().lines().count(), 3_000);

    let server = Server::start(&directory, &[]);
    let connect = server.connect();
    let connected = tokaido(["dump", &connect, "--db=many", "--prefix=a*"]);
    assert_eq!(connected.ok(), embedded.ok());
    let all = tokaido(["dump", &connect, "--db=many"]);
    let soon = all.ok().lines().find(|line| line.contains("soon")).unwrap();
    assert!(soon.contains("\"expires_at_ms\":41024"), "{soon}");
}

#[test]
fn a_file_is_replaced_only_by_a_whole_dump() {
    let directory = Directory::new();
    tokaido_with(["load", &directory.store(), "--format=pairs", "-"], "a\t1\nb\tone\\ntwo\n").ok();
    let file = directory.write("out.tsv", "what was there");
    let ran = tokaido(["dump", &directory.store(), "-o", &file]);
    assert_eq!(
        ran.fails(1),
        "tokaido: the record \"b\" has a newline, which TSV cannot hold; use --format pairs or jsonl"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "what was there");
    tokaido(["dump", &directory.store(), "-o", &file, "--format=pairs"]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\t1\nb\tone\\ntwo\n");
    assert_eq!(std::fs::read_dir(directory.path("")).unwrap().count(), 2, "a file was left over");
}

#[test]
fn whoever_has_read_enough_may_leave() {
    let directory = Directory::new();
    let rows: String = (0..20_000).map(|i| format!("{i:05}\t{}\n", "x".repeat(100))).collect();
    tokaido_with(["load", &directory.store(), "-"], rows).ok();
    let mut command = crate::support::command();
    command.args(["dump", &directory.store()]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{output:?}");
}
