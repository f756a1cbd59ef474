//! `tokaido load` and `get`.

use std::path::PathBuf;

use crate::support::{Directory, Ran, Server, number, root, skip, tokaido, tokaido_with};

/// A small file like the real one: section titles, blank lines, a repeated name.
fn small_file() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/companies.txt");
    path.into_os_string().into_string().unwrap()
}

fn load_companies(endpoint: &str, file: &str) -> Ran {
    tokaido(["load", endpoint, "--db=companies", "--key=3", "--value=5", file])
}

/// Rows read, stored, new, overwritten, skipped.
#[track_caller]
fn counts(ran: &Ran) -> [u64; 5] {
    ["rows read", "stored", "new", "overwritten", "skipped"].map(|name| number(ran.ok(), name))
}

#[track_caller]
fn get(endpoint: &str, db: &str, key: &str) -> String {
    tokaido(["get", endpoint, db, key]).ok().to_owned()
}

#[test]
fn the_small_file_is_loaded_twice_with_the_same_content() {
    let directory = Directory::new();
    let store = directory.store();
    let ran = load_companies(&store, &small_file());
    assert_eq!(counts(&ran), [13, 7, 6, 1, 6]);
    let bad: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(bad.len(), 6, "{bad:?}");
    assert!(bad[0].ends_with("companies.txt:1: no column 3: the line has 1"), "{bad:?}");
    assert!(bad[1].ends_with("companies.txt:5: the line is empty"), "{bad:?}");
    // The later row with the same name counts.
    assert_eq!(get(&store, "companies", "(株)青葉機工"), "8,300千円\n");

    let before = tokaido(["dump", &store, "--db=companies"]);
    assert_eq!(counts(&load_companies(&store, &small_file())), [13, 7, 0, 7, 6]);
    assert_eq!(tokaido(["dump", &store, "--db=companies"]).ok(), before.ok());
}

#[test]
fn the_real_file_gives_2269_rows_and_72_skipped_lines() {
    let file = root().join("../shared/data/corps_age_income.txt");
    if !file.exists() {
        skip(&format!("there is no {}", file.display()));
        return;
    }
    let file = file.into_os_string().into_string().unwrap();
    let directory = Directory::new();
    let embedded = load_companies(&directory.store(), &file);
    assert_eq!(counts(&embedded), [2341, 2269, 2249, 20, 72]);
    assert_eq!(embedded.stderr.lines().count(), 72);
    assert_eq!(get(&directory.store(), "companies", "三浦工業(株)"), "6,210千円\n");

    let served = Directory::new();
    let server = Server::start(&served, &[]);
    let connected = load_companies(&server.connect(), &file);
    assert_eq!(counts(&connected), [2341, 2269, 2249, 20, 72]);
    assert_eq!(connected.stderr, embedded.stderr);
    assert_eq!(get(&server.connect(), "companies", "三浦工業(株)"), "6,210千円\n");
    let dump = |endpoint: &str| tokaido(["dump", endpoint, "--db=companies"]).ok().to_owned();
    assert_eq!(dump(&server.connect()), dump(&directory.store()));
}

#[test]
fn a_server_counts_like_a_directory() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let ran = load_companies(&server.connect(), &small_file());
    assert_eq!(counts(&ran), [13, 7, 6, 1, 6]);
    assert_eq!(counts(&load_companies(&server.connect(), &small_file())), [13, 7, 0, 7, 6]);
    assert_eq!(get(&server.connect(), "companies", "(株)青葉機工"), "8,300千円\n");
}

#[test]
fn strict_fails_but_stores_what_is_good() {
    let directory = Directory::new();
    let args = ["load", &directory.store(), "--strict", "--key=3", &small_file()];
    let ran = tokaido(args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(number(ran.text(), "stored"), 7);
    let ran = tokaido_with(["load", &directory.store(), "--strict", "-"], "k\tv\n");
    assert_eq!(number(ran.ok(), "stored"), 1);
}

#[test]
fn reports_are_bounded_and_the_rest_is_counted() {
    let directory = Directory::new();
    let ran = tokaido(["load", &directory.store(), "--key=3", "--report-max=2", &small_file()]);
    assert_eq!(ran.stderr.lines().count(), 3, "{ran:?}");
    assert!(ran.stderr.ends_with("… and 4 more; --report-max shows more\n"), "{ran:?}");
    assert_eq!(number(ran.ok(), "skipped"), 6);
}

#[test]
fn every_format_is_guessed_and_read() {
    let directory = Directory::new();
    let store = directory.store();
    let csv = directory.write("a.csv", "id,name,town\r\nc1,\"Aoba, \"\"Ltd\"\"\",Hakone\r\n");
    tokaido(["load", &store, "--header", "--key=id", "--value=town,name", &csv]).ok();
    assert_eq!(get(&store, "main", "c1"), "Hakone\tAoba, \"Ltd\"\n");

    let jsonl = directory.write("a.jsonl", "\u{feff}{\"id\":7,\"yen\":1.50}\n");
    tokaido(["load", &store, "--key=id", "--value=yen", &jsonl]).ok();
    assert_eq!(get(&store, "main", "7"), "1.50\n");
    tokaido(["load", &store, "--key=id", "--prefix=whole:", &jsonl]).ok();
    assert_eq!(get(&store, "main", "whole:7"), "{\"id\":7,\"yen\":1.50}\n");

    let pairs = directory.write("a.pairs", "p\\tq\tone\\ntwo");
    tokaido(["load", &store, &pairs]).ok();
    assert_eq!(get(&store, "main", "p\tq"), "one\ntwo\n");

    let tsv = "# note\nk\ta\tb\n";
    let ran = tokaido_with(["load", &store, "--comment=#", "-"], tsv);
    assert_eq!((number(ran.ok(), "stored"), number(ran.ok(), "comments")), (1, 1));
    assert_eq!(get(&store, "main", "k"), "a\tb\n");
}

#[test]
fn several_files_make_one_load() {
    let directory = Directory::new();
    let (a, b) = (directory.write("a.tsv", "k\t1\nbad"), directory.write("b.tsv", "k\t2\n\n"));
    let ran = tokaido(["load", &directory.store(), "--value=2", &a, &b]);
    assert_eq!(counts(&ran), [4, 2, 1, 1, 2]);
    assert_eq!(
        ran.stderr,
        format!("{a}:2: no column 2: the line has 1\n{b}:2: the line is empty\n")
    );
    assert_eq!(get(&directory.store(), "main", "k"), "2\n");
}

#[test]
fn a_load_larger_than_a_transaction_is_whole() {
    let directory = Directory::new();
    let rows: String = (0..25_001).map(|i| format!("{i:05}\tvalue {i}\n")).collect();
    let ran = tokaido_with(["load", &directory.store(), "-"], &rows);
    assert_eq!(counts(&ran), [25_001, 25_001, 25_001, 0, 0]);
    assert_eq!(tokaido(["dump", &directory.store(), "--format=tsv"]).ok(), rows);
}

#[test]
fn get_tells_an_absent_key_by_its_exit_code_alone() {
    let directory = Directory::new();
    tokaido_with(["load", &directory.store(), "-"], "k\tv").ok();
    let absent = tokaido(["get", &directory.store(), "main", "other"]);
    assert_eq!((absent.code, absent.text(), absent.stderr.as_str()), (Some(1), "", ""));
}
