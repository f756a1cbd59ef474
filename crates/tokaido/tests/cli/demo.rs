//! `tokaido demo`, the first thing that a newcomer sees.

use std::{fs, path::Path};

use crate::support::{Ran, Script, command, wait_for_result};

#[test]
fn the_demo_shows_all_of_it_and_ends() {
    let output = command().args(["demo", "--exit"]).output().unwrap();
    let ran = Ran::from(output);
    let text = ran.ok();
    assert_eq!(ran.stderr, "");
    assert!(!text.contains('\x1b'), "colours away from a terminal");
    for wanted in [
        "55 rows stored over the Redis protocol",
        "GET 53",
        "\"大津\\tOtsu\\tOmi\\t482.3\"",
        "FCALL stations.between 0 Odawara Numazu",
        "\"Mishima\"",
        "the road ends at station 54",
        "POST /v1/call/stations.between",
        "km\":16.6",
        "GET /stations/10",
        "箱根",
        "(integer) 55000",
        "ns a read",
    ] {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
    // The failed call did not change the count.
    let counts: Vec<&str> = text.lines().filter(|line| line.trim() == "\"1\"").collect();
    assert_eq!(counts.len(), 2, "{text}");
}

#[test]
fn the_demo_serves_each_change_of_a_procedure_file_until_ctrl_c() {
    let mut demo = Script::start(&["demo"], "");
    let store = demo.line_with("(removed at the end)");
    let store = Path::new(store.split_whitespace().nth(1).unwrap());
    let directory = store.parent().unwrap();
    let stays = demo.line_with("The server stays up at");
    let address = stays.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
    let connect = format!("--connect={address}");
    let file = directory.join("procedures/fresh.lua");
    for version in ["first", "second"] {
        let lua =
            "local t = require 'tokaido' return { name = t.read(function() return 'VERSION' end) }";
        fs::write(&file, lua.replace("VERSION", version)).unwrap();
        wait_for_result(&connect, "fresh.name", version);
    }
    demo.interrupt();
    let ran = demo.end();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(!directory.exists(), "{}", directory.display());
}
