//! `tokaido cdb`, alone and compared with TinyCDB's tool `cdb`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use crate::support::{Directory, command, skip, tokaido, tokaido_with};

const RECORDS: &str = "+3,4:one->here\n+1,1:a->b\n+1,3:b->abc\n+3,4:one->also\n\n";

#[test]
fn help_is_the_manual() {
    insta::assert_snapshot!("cdb", tokaido(["cdb", "--help"]).ok());
    for name in ["make", "get", "dump", "list", "stats"] {
        insta::assert_snapshot!(format!("cdb_{name}"), tokaido(["cdb", name, "--help"]).ok());
    }
}

#[test]
fn records_are_made_found_and_printed() {
    let directory = Directory::new();
    let file = directory.text("a.cdb");
    assert_eq!(tokaido_with(["cdb", "make", &file], RECORDS).ok(), "");
    assert_eq!(tokaido(["cdb", "get", &file, "one"]).ok(), "herealso");
    assert_eq!(tokaido(["cdb", "get", "-m", &file, "one"]).ok(), "here\nalso\n");
    assert_eq!(tokaido(["cdb", "get", "-n2", &file, "one"]).ok(), "also");
    for arguments in [&["cdb", "get", &file, "two"][..], &["cdb", "get", "-n3", &file, "one"]] {
        let ran = tokaido(arguments);
        assert_eq!((ran.code, ran.text(), &ran.stderr[..]), (Some(1), "", ""));
    }
    assert_eq!(tokaido(["cdb", "dump", &file]).ok(), RECORDS);
    assert_eq!(tokaido(["cdb", "dump", "-m", &file]).ok(), "one here\na b\nb abc\none also\n");
    assert_eq!(tokaido(["cdb", "list", &file]).ok(), "+3:one\n+1:a\n+1:b\n+3:one\n\n");
    assert_eq!(tokaido(["cdb", "list", "-m", &file]).ok(), "one\na\nb\none\n");
    insta::assert_snapshot!("cdb_stats_of_four_records", tokaido(["cdb", "stats", &file]).ok());
    let bytes = fs::read(&file).unwrap();
    for arguments in [&["dump"][..], &["list"], &["list", "-m"], &["stats"]] {
        let expected = tokaido([&["cdb"], arguments, &[&file]].concat()).stdout;
        for input in [&[][..], &["-"]] {
            let piped = tokaido_with([&["cdb"], arguments, input].concat(), &bytes);
            assert_eq!(piped.stdout, expected, "{arguments:?} {input:?} {piped:?}");
        }
    }
    // A dump of arbitrary bytes produces the same file.
    let odd = directory.write("odd", b"+2,4:\n\xff->\0\n->\n+0,0:->\n\n");
    let again = directory.text("b.cdb");
    tokaido(["cdb", "make", &file, &odd]).ok();
    tokaido_with(["cdb", "make", &again, "-"], tokaido(["cdb", "dump", &file]).stdout).ok();
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap());
}

#[test]
fn inputs_are_read_one_after_the_other() {
    let directory = Directory::new();
    let file = directory.text("a.cdb");
    let first = directory.write("first", "# stations\na 1\n");
    let last = directory.write("last", "c 3");
    tokaido_with(["cdb", "make", "-m", &file, &first, "-", &last], "b 2\n").ok();
    assert_eq!(tokaido(["cdb", "dump", "-m", &file]).ok(), "a 1\nb 2\nc 3\n");
}

#[test]
fn duplicates_are_treated_as_asked() {
    let directory = Directory::new();
    let file = directory.text("a.cdb");
    let lines = "a 1\nb 2\na 3\n";
    for (options, expected, reports) in [
        (&["-m"][..], "a 1\nb 2\na 3\n", 0),
        (&["-mw"], "a 1\nb 2\na 3\n", 1),
        (&["-mr"], "b 2\na 3\n", 0),
        (&["-mwr"], "b 2\na 3\n", 1),
        (&["-mu"], "a 1\nb 2\n", 0),
        (&["-mu", "-r"], "b 2\na 3\n", 0),
        (&["-mr", "-u"], "a 1\nb 2\n", 0),
    ] {
        let ran = tokaido_with([&["cdb", "make"], options, &[&file]].concat(), lines);
        ran.ok();
        let report = "tokaido: standard input: record 3: the key \"a\" was there before\n";
        assert_eq!(ran.stderr, report.repeat(reports), "{options:?}");
        assert_eq!(tokaido(["cdb", "dump", "-m", &file]).ok(), expected, "{options:?}");
    }
    tokaido_with(["cdb", "make", "-m0", &file], lines).ok();
    assert_eq!(tokaido(["cdb", "dump", &file]).ok(), "+0,2:->\0\0\n+1,1:b->2\n+1,1:a->3\n\n");
    let before = fs::read(&file).unwrap();
    let refused = tokaido_with(["cdb", "make", "-me", &file], lines);
    assert_eq!(
        refused.fails(1),
        "tokaido: record 3 has the key \"a\", which is there already; remove one of the two, or \
         choose which to keep"
    );
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn temporary_files_and_permissions_are_as_asked() {
    let directory = Directory::new();
    let (file, temporary) = (directory.text("a.cdb"), directory.text("t"));
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    tokaido_with(["cdb", "make", "-t", &temporary, "-p", "0640", &file], RECORDS).ok();
    assert_eq!(mode(), 0o640);
    tokaido_with(["cdb", "make", "-t-", "-p", "0606", &file], RECORDS).ok();
    assert_eq!(mode(), 0o606);
    assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 1);
    for permissions in ["644", "0888", "01777", "x", ""] {
        let ran = tokaido_with(["cdb", "make", "-p", permissions, &file], RECORDS);
        assert_eq!(ran.code, Some(2), "{permissions:?}");
    }
}

#[test]
fn what_goes_wrong_leaves_the_file_as_it_was() {
    let directory = Directory::new();
    let file = directory.write("a.cdb", "what was there");
    let text = directory.write("text", "+3,4:one->here\n+9");
    let missing = directory.text("missing");
    for (arguments, message) in [
        (
            vec![&file[..], &text],
            format!("{text}: record 2, byte 17: the text ends within a record"),
        ),
        (vec![&file, &missing], format!("{missing}: No such file or directory (os error 2)")),
        (
            vec![&file],
            "standard input: record 1, byte 0: the empty line that ends the records is missing; \
             was the text cut short?"
                .to_owned(),
        ),
    ] {
        let ran = tokaido([&["cdb", "make"], &arguments[..]].concat());
        assert_eq!(ran.fails(1), format!("tokaido: {message}"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "what was there");
    }
    assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 2, "a file was left over");

    let broken = tokaido_with(["cdb", "stats"], "what was there");
    assert_eq!(
        broken.fails(1),
        "tokaido: standard input: no sound cdb file: the header is cut short at byte 14; make the \
         file anew from its source"
    );

    for name in ["get", "dump", "list", "stats"] {
        let key = if name == "get" { &["key"][..] } else { &[] };
        let ran = tokaido([&["cdb", name, &file], key].concat());
        // 1 would mean that the key is missing.
        let code = if name == "get" { 3 } else { 1 };
        assert_eq!(
            ran.fails(code),
            format!(
                "tokaido: {file}: no sound cdb file: the header is cut short at byte 14; make the \
                 file anew from its source"
            )
        );
        let ran = tokaido([&["cdb", name, &missing], key].concat());
        assert!(
            ran.fails(code).starts_with(&format!("tokaido: cannot read {missing}: No such file"))
        );
    }
    tokaido_with(["cdb", "make", &file], "+3,1:a b->c\n\n").ok();
    assert_eq!(
        tokaido(["cdb", "dump", "-m", &file]).fails(1),
        format!(
            "tokaido: {file}: record 1 with the key \"a b\": a key with a space or a tab would end \
             there; use the native format"
        )
    );
}

/// A file size limit stands in for a full disk: the write fails in the middle.
#[test]
fn a_write_that_fails_is_reported_and_leaves_nothing_behind() {
    let directory = Directory::new();
    let file = directory.write("a.cdb", "what was there");
    let lines: String = (0..50_000).map(|n| format!("{n} value\n")).collect();
    let input = directory.write("lines", lines);
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -f 100; trap '' XFSZ; exec \"$@\"", "bash"]);
    limited.arg(command().get_program()).args(["cdb", "make", "-m", &file, &input]);
    let output = limited.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("File too large (os error 27); the file was not made"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "what was there");
    assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 2, "a file was left over");
}

#[test]
fn the_tool_of_tinycdb_makes_and_prints_the_same() {
    if Command::new("cdb").arg("-h").stdout(Stdio::null()).status().is_err() {
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "cdb is missing: apt-get install tinycdb");
        return skip("cdb is missing (apt-get install tinycdb)");
    }
    let directory = Directory::new();
    let (ours, theirs) = (directory.text("ours.cdb"), directory.text("theirs.cdb"));
    let lines: String =
        (0..3_000).map(|n| format!("station-{}\t{} ri\n", n % 2_500, n * 3)).collect();
    let input = directory.write("lines", lines);
    let tool = |arguments: &[&str]| {
        let output = Command::new("cdb").args(arguments).output().unwrap();
        assert!(output.status.success(), "cdb {arguments:?}: {output:?}");
        output.stdout
    };
    for options in ["-m", "-mw", "-mu"] {
        tokaido(["cdb", "make", options, &ours, &input]).ok();
        tool(&["-c", options, &theirs, &input]);
        assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap(), "{options}");
    }
    tokaido(["cdb", "make", "-m", &ours, &input]).ok();
    for (theirs, arguments) in [
        (&["-d"][..], &["dump"][..]),
        (&["-d", "-m"], &["dump", "-m"]),
        (&["-l"], &["list"]),
        (&["-l", "-m"], &["list", "-m"]),
        (&["-s"], &["stats"]),
    ] {
        let printed = tokaido([&["cdb"], arguments, &[&ours]].concat());
        let expected = tool(&[theirs, &[&ours]].concat());
        assert_eq!(printed.stdout, expected, "{arguments:?}");
        // From a pipe, too, whether named or not.
        let file = fs::read(&ours).unwrap();
        for input in [&[][..], &["-"]] {
            let piped = tokaido_with([&["cdb"], arguments, input].concat(), &file);
            assert_eq!(piped.stdout, expected, "{arguments:?} {input:?}");
            let mut tool = Command::new("cdb");
            let stdin = fs::File::open(&ours).unwrap();
            let output = tool.args(theirs).args(input).stdin(stdin).output().unwrap();
            assert_eq!(output.stdout, expected, "{theirs:?} {input:?}");
        }
    }
    for options in [&[][..], &["-m"], &["-n", "2"]] {
        let printed = tokaido([&["cdb", "get"], options, &[&ours, "station-7"]].concat());
        assert_eq!(printed.stdout, tool(&[&["-q"], options, &[&ours, "station-7"]].concat()));
    }
}
