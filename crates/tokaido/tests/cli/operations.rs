//! `tokaido check`, `backup`, `restore` and `compact`, as an operator sees them.

use std::{fs, path::PathBuf};

use crate::support::{Directory, Server, root, tokaido, tokaido_with};

/// A store that never changes: the fixture of the current format.
fn fixture() -> PathBuf {
    root().join("crates/tokaido-store/tests/fixtures/format-1/store")
}

/// A copy of it to work on, with a damaged log if requested.
fn store(directory: &Directory, is_damaged: bool) -> String {
    let (from, to) = (fixture(), directory.path("data"));
    fs::create_dir_all(to.join("log")).unwrap();
    let segment = "log/00000000000000000002";
    for name in ["data.mdb", "tokaido.lock", segment] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    if is_damaged {
        let mut bytes = fs::read(to.join(segment)).unwrap();
        bytes[48 + 144 + 50] ^= 1;
        fs::write(to.join(segment), bytes).unwrap();
    }
    directory.text("data")
}

#[test]
fn a_sound_store_is_told_to_be_sound() {
    let directory = Directory::new();
    let data = store(&directory, false);
    insta::assert_snapshot!("check_sound", tokaido(["check", &data]).ok());
    insta::assert_snapshot!("check_json", tokaido(["check", &data, "--json"]).ok());
}

#[test]
fn a_damaged_store_is_told_to_be_damaged_and_what_can_be_saved_is_saved() {
    let directory = Directory::new();
    let (data, saved) = (store(&directory, true), directory.text("saved"));
    let checked = tokaido(["check", &data]);
    assert_eq!(checked.code, Some(1));
    insta::assert_snapshot!("check_damaged", checked.text().replace(&data, "DATA"));
    let json = tokaido(["check", &data, "--json"]);
    assert_eq!(json.code, Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["findings"][0]["kind"], "log");
    assert_eq!(json["findings"][0]["segment"], 2);

    let salvaged = tokaido(["check", &data, "--salvage", &saved]);
    assert_eq!(salvaged.code, Some(1), "{salvaged:?}");
    let last = salvaged.text().lines().last().unwrap();
    assert!(last.starts_with("salvaged  ") && last.ends_with(&saved), "{last}");
    assert!(tokaido(["check", &saved]).ok().ends_with("sound     nothing is wrong\n"));
    assert_eq!(tokaido(["get", "--dir", &saved, "main", "key:0001"]).ok(), "value 1\n");
    let again = tokaido(["check", &data, "--salvage", &saved]);
    assert!(again.fails(1).contains("is there already"), "{again:?}");
    let backup = tokaido(["backup", &data, &directory.text("backup")]);
    assert!(backup.fails(1).contains("log segment 2, byte"), "{backup:?}");
    assert!(backup.fails(1).contains("--salvage NEW"), "{backup:?}");
}

#[test]
fn whoever_meets_a_damaged_store_is_told_of_salvage() {
    let directory = Directory::new();
    let data = store(&directory, true);
    let said =
        format!("`tokaido check {data}` says what can be read, and with --salvage NEW saves it");
    let at = format!("--dir={data}");
    for args in [
        &["serve", "--listen=127.0.0.1:0", &at][..],
        &["get", &at, "main", "key:0001"],
        &["put", &at, "main", "k", "v"],
        &["scan", &at, "main"],
        &["dump", &at],
        &["shell", &at],
        &["run", &at, "-"],
    ] {
        let ran = tokaido(args);
        assert!(ran.fails(3).contains(&said), "{args:?} {ran:?}");
    }
    let ran = tokaido(["compact", &data]);
    assert!(ran.fails(3).contains(&said), "{ran:?}");
}

#[test]
fn what_cannot_be_checked_has_an_exit_status_of_its_own() {
    let directory = Directory::new();
    let none = tokaido(["check", &directory.text("none")]);
    assert!(none.fails(3).starts_with("tokaido: there is no store in"), "{none:?}");
    let server = Server::start(&directory, &[]);
    let held = tokaido(["check", &directory.text("store")]);
    assert!(held.fails(3).contains("take a backup with `tokaido backup`"), "{held:?}");
    let held = tokaido(["compact", &directory.text("store")]);
    assert!(held.fails(3).contains("is in use by another tokaido process"), "{held:?}");
    drop(server);
}

/// With room for `main` and one more database.
#[test]
fn a_name_that_was_given_back_is_free_after_backup_and_compaction() {
    for drop in ["TOKAIDO DROP old", "FLUSHALL"] {
        let directory = Directory::new();
        let [data, backup] = ["store", "backup"].map(|name| directory.text(name));
        let start = || Server::start(&directory, &["--databases-max=2"]);
        let write = |server: &Server, database: &str| {
            let script = format!("SELECT {database}\nSET k v\n");
            tokaido_with(["shell", &server.connect()], script)
        };
        let is_written = |server: Server| {
            assert_eq!(write(&server, "new").ok(), "OK\nOK\n");
            assert_eq!(tokaido(["get", &server.connect(), "old", "k"]).code, Some(1));
            assert_eq!(server.stop().code, Some(0));
        };
        let server = start();
        assert_eq!(write(&server, "old").ok(), "OK\nOK\n");
        // Writes it to the base, from which the backup must remove it.
        tokaido(["backup", &data, &directory.text("before")]).ok();
        let full = write(&server, "new");
        assert!(full.fails(1).contains("the store has 2 databases"), "{full:?}");
        tokaido_with(["shell", &server.connect()], format!("{drop}\n")).ok();
        tokaido(["backup", &data, &backup]).ok();
        assert_eq!(server.stop().code, Some(0));
        tokaido(["compact", &data]).ok();
        is_written(start());
        fs::remove_dir_all(&data).unwrap();
        tokaido(["restore", &backup, &data]).ok();
        is_written(start());
    }
}

#[test]
fn a_backup_of_a_running_server_is_restored() {
    let directory = Directory::new();
    let (data, backup, restored) =
        (directory.text("store"), directory.text("backup"), directory.text("restored"));
    let server = Server::start(&directory, &[]);
    let rows = directory.write("rows", "a\t1\nb\t2\n");
    tokaido(["load", "--db=main", "--key=1", "--value=2", &rows, &server.connect()]).ok();
    let made = tokaido(["backup", &data, &backup]);
    assert!(made.ok().starts_with(&format!("backed up {data} up to transaction ")), "{made:?}");
    let again = tokaido(["backup", &data, &backup]);
    assert!(again.fails(1).contains("is there already"), "{again:?}");
    assert_eq!(server.stop().code, Some(0));
    let over = tokaido(["restore", &backup, &data]);
    assert!(over.fails(1).contains("is not empty"), "{over:?}");
    let done = tokaido(["restore", &backup, &restored]);
    assert!(done.ok().ends_with(": 2 records in 1 databases\n"), "{done:?}");
    assert_eq!(tokaido(["get", "--dir", &restored, "main", "b"]).ok(), "2\n");
    let none = tokaido(["restore", &directory.text("none"), &directory.text("new")]);
    assert!(none.fails(3).contains("there is no store"), "{none:?}");
}

#[test]
fn a_store_is_compacted() {
    let directory = Directory::new();
    let data = store(&directory, false);
    let done = tokaido(["compact", &data]);
    assert!(
        done.ok().starts_with(&format!("compacted {data}: 126,976 bytes before, ")),
        "{done:?}"
    );
    assert!(tokaido(["check", &data]).ok().contains(", 0 free;"));
}
