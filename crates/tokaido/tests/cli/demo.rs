//! `tokaido demo`, the first thing that a newcomer sees.

use crate::support::{Ran, command};

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
    // The failed call left the count where it was.
    let counts: Vec<&str> = text.lines().filter(|line| line.trim() == "\"1\"").collect();
    assert_eq!(counts.len(), 2, "{text}");
}
