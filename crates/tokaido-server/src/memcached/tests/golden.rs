//! Golden tests: files of requests and the replies expected, byte by byte.
//!
//! `> ` begins what is sent, with a line end after it; `+ ` what is sent without one. The lines after
//! them are the reply, whose line ends are all `\r\n`. Both understand `\r`, `\n`, `\0` and `\\`. `$cas`
//! is the last cas in a reply. `! advance 1500` advances the clock, in ms. `#` starts a comment. Every
//! file runs on a cache and on a database of the store, with a new server each time.

use std::fmt::Write as _;

use super::{Memcached, Server};
use crate::Progress;

/// The bytes that a line of the file stands for.
fn unescape(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0").replace("\\\\", "\\")
}

/// A reply as text. `cas` is set to the cas in it.
fn show(reply: &[u8], cas: &mut String) -> String {
    let text = String::from_utf8(reply.to_vec()).expect("text");
    assert!(text.is_empty() || text.ends_with("\r\n"), "{text:?}");
    let mut shown = String::new();
    for line in text.split_terminator("\r\n") {
        assert!(!line.contains(['\r', '\n']), "{line:?}");
        let words: Vec<&str> = line.split(' ').collect();
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        let told = match &words[..] {
            ["VALUE", _, _, _, told] => Some(*told),
            ["HD" | "VA", flags @ ..] => {
                flags.iter().find_map(|flag| flag.strip_prefix('c').filter(|told| is_number(told)))
            }
            _ => None,
        };
        let mut line =
            if line.is_empty() { "(empty)".to_owned() } else { line.replace('\0', "\\0") };
        if let Some(told) = told {
            told.clone_into(cas);
            line = match words[0] {
                "VALUE" => [&words[..4], &["$cas"]].concat().join(" "),
                _ => line.replacen(&format!(" c{told}"), " c$cas", 1),
            };
        }
        writeln!(shown, "{line}").unwrap();
    }
    shown
}

/// Runs a file, and returns it with the actual replies.
fn run_file(text: &str, server: &mut Server) -> String {
    let (mut seen, mut cas) = (String::new(), String::new());
    let mut memcached: Memcached = server.connect();
    // What has been sent and is not answered.
    let mut input = String::new();
    for line in text.lines() {
        if let Some(ms) = line.strip_prefix("! advance ") {
            server.advance(ms.parse().unwrap());
            writeln!(seen, "{line}").unwrap();
        } else if line.starts_with("> ") || line.starts_with("+ ") {
            input.push_str(&unescape(&line[2..]).replace("$cas", &cas));
            if line.starts_with('>') {
                input.push_str("\r\n");
            }
            let (reply, progress) = server.exchange(&mut memcached, input.as_bytes());
            let has_come = !matches!(progress, Progress::NeedsInput) || !reply.is_empty();
            let awaits = line.starts_with('+') && !has_come;
            if !awaits {
                input.clear();
            }
            writeln!(seen, "{line}").unwrap();
            seen.push_str(&show(&reply, &mut cas));
            match progress {
                Progress::NeedsInput => {}
                Progress::Close { .. } => seen.push_str("(closed)\n"),
                Progress::Failed => seen.push_str("(failed)\n"),
                other => panic!("{line}: {other:?}"),
            }
            if !matches!(progress, Progress::NeedsInput) {
                memcached = server.connect();
            }
        } else if line.is_empty() || line.starts_with('#') {
            writeln!(seen, "{line}").unwrap();
        }
    }
    seen
}

/// Checks a golden file on both engines. With `UPDATE_GOLDEN=1` it is rewritten instead, for review
/// before it is committed.
fn check(name: &str, engines: &[bool]) {
    let path = format!("{}/src/memcached/tests/files/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let mut expected = std::fs::read_to_string(&path).unwrap();
    for is_cache in engines {
        let seen = run_file(&expected, &mut Server::new(*is_cache, None));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &seen).unwrap();
            expected = seen;
            continue;
        }
        let line = expected.lines().zip(seen.lines()).position(|(a, b)| a != b);
        let at = line.unwrap_or(expected.lines().count().min(seen.lines().count()));
        let of = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
        let (wanted, came) = (of(&expected), of(&seen));
        assert!(
            seen == expected,
            "{path}:{}: cache {is_cache}\nexpected {wanted}\ncame     {came}",
            at + 1
        );
    }
}

#[test]
fn text() {
    check("text", &[true, false]);
}

#[test]
fn errors() {
    check("errors", &[true, false]);
}

#[test]
fn meta() {
    check("meta", &[true, false]);
}

#[test]
fn what_only_a_cache_can_do() {
    check("cache", &[true]);
}

#[test]
fn what_only_the_store_does() {
    check("tree", &[false]);
}
