//! Interoperability with TinyCDB's `cdb` tool, both ways: the same bytes, and the same answers.
//!
//! Without the tool, these tests report on standard error that they were skipped; in CI they fail.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

use proptest::{prelude::*, test_runner::TestRunner};
use tokaido_cdb::{Duplicates, Reader};

use crate::{
    cdb_text::{TextFormat, TextReader, TextWriter},
    support::{Pair, make, options, pair},
};

const POLICIES: [(Duplicates, &str); 5] = [
    (Duplicates::Keep, ""),
    (Duplicates::Report, "-w"),
    (Duplicates::Replace, "-r"),
    (Duplicates::ZeroFill, "-0"),
    (Duplicates::KeepFirst, "-u"),
];

/// Whether the tool is installed.
fn is_tool_here(test: &str) -> bool {
    if Command::new("cdb").arg("-h").stdout(Stdio::null()).status().is_ok() {
        return true;
    }
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "cdb is missing: apt-get install tinycdb");
    // Bypasses the test harness, which would hide it.
    let _ = writeln!(io::stderr(), "SKIPPED {test}: cdb is missing (apt-get install tinycdb)");
    false
}

fn tool(arguments: &[&str], path: &Path, more: &[&[u8]], input: &[u8]) -> Output {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let mut child = Command::new("cdb")
        .args(arguments)
        .arg(path)
        .args(more.iter().map(|bytes| OsStr::from_bytes(bytes)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // If the tool gives up, it closes its end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn printed(arguments: &[&str], path: &Path, more: &[&[u8]]) -> Vec<u8> {
    let output = tool(arguments, path, more, b"");
    assert!(output.status.success(), "cdb {arguments:?}: {output:?}");
    output.stdout
}

fn text<'r>(pairs: impl IntoIterator<Item = (&'r [u8], &'r [u8])>, format: TextFormat) -> Vec<u8> {
    let mut writer = TextWriter::new(Vec::new(), format);
    for (key, value) in pairs {
        writer.write(key, value).unwrap();
    }
    writer.finish().unwrap()
}

fn text_of_pairs(pairs: &[Pair], format: TextFormat) -> Vec<u8> {
    text(pairs.iter().map(|(key, value)| (&key[..], &value[..])), format)
}

fn text_of_file(path: &Path, format: TextFormat) -> Vec<u8> {
    let reader = Reader::open(path).unwrap();
    text(reader.iter().map(Result::unwrap).map(|record| (record.key, record.value)), format)
}

/// Records that both sides can handle: a program's argument cannot have a zero byte.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let key = prop_oneof![
        prop::collection::vec(b'a'..b'c', 1..3),
        prop::collection::vec(1..=255u8, 0..8),
    ];
    let value = prop_oneof![
        16 => prop::collection::vec(any::<u8>(), 0..12),
        1 => (any::<u8>(), 4000..9000usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    prop::collection::vec((key, value), 0..30)
}

#[test]
fn the_same_records_give_the_same_bytes() {
    if !is_tool_here("the_same_records_give_the_same_bytes") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let result = runner.run(&pairs(), |pairs| {
        let input = text_of_pairs(&pairs, TextFormat::Native);
        for (duplicates, option) in POLICIES {
            make(&ours, &pairs, &options(duplicates));
            let arguments = ["-c", option];
            let arguments = if option.is_empty() { &arguments[..1] } else { &arguments };
            let output = tool(arguments, &theirs, &[], &input);
            prop_assert!(output.status.success(), "cdb -c {option}: {output:?}");
            let mut expected = fs::read(&theirs).unwrap();
            let found = fs::read(&ours).unwrap();
            // The tool leaves bytes of removed records after the end of a file that got shorter.
            if matches!(duplicates, Duplicates::Replace | Duplicates::ZeroFill) {
                expected.truncate(found.len());
            }
            prop_assert!(found == expected, "other bytes than cdb -c {option}");
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn each_side_reads_what_the_other_made() {
    if !is_tool_here("each_side_reads_what_the_other_made") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(24));
    let result = runner.run(&pairs(), |pairs| {
        make(&ours, &pairs, &options(Duplicates::Keep));
        tool(&["-c"], &theirs, &[], &text_of_pairs(&pairs, TextFormat::Native));
        let native = printed(&["-d"], &ours, &[]);
        prop_assert!(native == text_of_file(&theirs, TextFormat::Native));
        prop_assert!(printed(&["-l"], &ours, &[]) == text_of_file(&theirs, TextFormat::NativeKeys));
        let mut reader = TextReader::new(&native[..], TextFormat::Native);
        for (key, value) in &pairs {
            let record = reader.next_record().unwrap().unwrap();
            prop_assert!((record.key, record.value) == (&key[..], &value[..]));
        }
        prop_assert!(reader.next_record().unwrap().is_none());
        for (key, _) in pairs.iter().take(6) {
            let reader = Reader::open(&theirs).unwrap();
            let values: Vec<&[u8]> = reader.get_all(key).map(Result::unwrap).collect();
            // A key may begin with `-`, which the tool would take for an option.
            prop_assert!(printed(&["-q"], &ours, &[b"--", key]) == values.concat());
            let second = tool(&["-q", "-n", "2"], &ours, &[b"--", key], b"");
            prop_assert_eq!(second.status.success(), values.len() > 1);
            prop_assert!(second.stdout == *values.get(1).unwrap_or(&&b""[..]));
        }
        prop_assert!(!tool(&["-q"], &ours, &[b"a key that is not there"], b"").status.success());
        Ok(())
    });
    result.unwrap();
}

fn stations() -> Vec<Pair> {
    let mut pairs: Vec<Pair> = (0..2_000)
        .map(|n| pair(format!("station-{}", n % 1_700), format!("{} ri from Nihonbashi", n * 3)))
        .collect();
    pairs.push(pair("日本橋", "0 ri"));
    pairs
}

#[test]
fn the_map_format_is_the_same() {
    if !is_tool_here("the_map_format_is_the_same") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    make(&ours, &stations(), &options(Duplicates::Keep));
    assert!(printed(&["-d", "-m"], &ours, &[]) == text_of_file(&ours, TextFormat::Map));
    assert!(printed(&["-l", "-m"], &ours, &[]) == text_of_file(&ours, TextFormat::MapKeys));
    let map = b"# comment\n\n a\t 1 2\nb\n\n c  \n #d\n\te e ";
    assert!(tool(&["-c", "-m"], &theirs, &[], map).status.success());
    let mut reader = TextReader::new(&map[..], TextFormat::Map);
    let mut pairs = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        pairs.push(pair(record.key, record.value));
    }
    assert_eq!(pairs.len(), 4);
    make(&ours, &pairs, &options(Duplicates::Keep));
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
}

#[test]
fn statistics_are_printed_alike() {
    if !is_tool_here("statistics_are_printed_alike") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let one_key: Vec<Pair> = (0..50).map(|n| pair("same", n.to_string())).collect();
    for pairs in [vec![], vec![pair("a", "bc")], one_key, stations()] {
        for (duplicates, _) in POLICIES {
            make(&path, &pairs, &options(duplicates));
            // The tool takes a length of 0 to mean none yet, so its minimum is that of the others.
            if duplicates == Duplicates::ZeroFill && !pairs.is_empty() {
                continue;
            }
            let ours = Reader::open(&path).unwrap().statistics().unwrap().to_string();
            assert_eq!(ours, String::from_utf8(printed(&["-s"], &path, &[])).unwrap());
        }
    }
}
