//! Golden tests: files of requests and expected replies, run as a client would see them.
//!
//! A line that starts with `> ` is a request, written as an inline request; `2> ` is for version 2
//! of the protocol only, `3> ` for version 3 only. The lines after it are the reply, roughly as
//! `redis-cli` would print it: `+OK`, `-ERR …`, `:1`, `"text"`, `nil`, and indented elements.
//! `! advance 1500` advances the clock, in ms. `#` starts a comment. Every file is run in both
//! versions, on a new store each time; reads are also run on a snapshot, as a worker would.

use std::fmt::Write as _;

use tokaido_script::Sources;
use tokaido_wire::resp::{Reply, ReplyDecoder, Version};

use super::Server;

/// A reply as text, one element per line.
pub(super) fn show(out: &[u8]) -> String {
    let mut decoder = ReplyDecoder::default();
    let mut rest = out;
    let mut text = String::new();
    while let Some((reply, consumed)) = decoder.decode(rest).unwrap() {
        show_reply(&mut text, &reply, 0);
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty(), "half a reply: {}", out.escape_ascii());
    text
}

fn show_reply(text: &mut String, reply: &Reply, depth: usize) {
    let indent = "  ".repeat(depth);
    let mut aggregate = |kind: &str, replies: &[Reply]| {
        writeln!(text, "{indent}{kind}{}", replies.len()).unwrap();
        for reply in replies {
            show_reply(text, reply, depth + 1);
        }
    };
    match reply {
        Reply::Array(replies) => aggregate("*", replies),
        Reply::Set(replies) => aggregate("~", replies),
        Reply::Push(replies) => aggregate(">", replies),
        Reply::Map(pairs) => {
            writeln!(text, "{indent}%{}", pairs.len()).unwrap();
            for (key, value) in pairs {
                show_reply(text, key, depth + 1);
                show_reply(text, value, depth + 1);
            }
        }
        Reply::Simple(value) => writeln!(text, "{indent}+{value}").unwrap(),
        Reply::Error(value) => writeln!(text, "{indent}-{value}").unwrap(),
        Reply::Integer(value) => writeln!(text, "{indent}:{value}").unwrap(),
        Reply::Bulk(value) => match std::str::from_utf8(value) {
            Ok(value) => writeln!(text, "{indent}{value:?}").unwrap(),
            Err(_) => writeln!(text, "{indent}\"{}\"", value.escape_ascii()).unwrap(),
        },
        Reply::Null => writeln!(text, "{indent}nil").unwrap(),
        Reply::Double(value) => writeln!(text, "{indent},{value}").unwrap(),
        Reply::Boolean(value) => writeln!(text, "{indent}#{value}").unwrap(),
        Reply::BigNumber(value) => writeln!(text, "{indent}({value}").unwrap(),
        Reply::Verbatim { format, text: value } => {
            writeln!(text, "{indent}={format} {value:?}").unwrap();
        }
    }
}

/// One of the two ways to run a file.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Reads on a snapshot, writes on the writer.
    Worker,
    /// Everything on the writer, like the rest of a batch after its first write.
    Writer,
}

/// Runs a file, and returns it with the actual replies.
fn run_file(text: &str, version: Version, way: Way, server: &mut Server) -> String {
    let mut session = server.session();
    if version == Version::Resp3 {
        server.run(&mut session, "HELLO 3");
    }
    let ours = if version == Version::Resp2 { "2> " } else { "3> " };
    let theirs = if version == Version::Resp2 { "3> " } else { "2> " };
    let mut seen = String::new();
    let mut keeps = false;
    for line in text.lines() {
        if let Some(request) = line.strip_prefix("> ").or_else(|| line.strip_prefix(ours)) {
            let out = match way {
                Way::Worker => server.run(&mut session, request).0,
                Way::Writer => server.run_on_writer(&mut session, request),
            };
            writeln!(seen, "{line}").unwrap();
            seen.push_str(&show(&out));
            keeps = false;
        } else if line.starts_with(theirs) {
            // A request of the other version: its expected reply is copied.
            keeps = true;
            writeln!(seen, "{line}").unwrap();
        } else if let Some(ms) = line.strip_prefix("! advance ") {
            server.advance(ms.parse().unwrap());
            keeps = false;
            writeln!(seen, "{line}").unwrap();
        } else if keeps || line.is_empty() || line.starts_with('#') {
            keeps = keeps && !line.is_empty();
            writeln!(seen, "{line}").unwrap();
        }
    }
    seen
}

/// Checks a golden file in both versions and both ways. With `UPDATE_GOLDEN=1`, rewrites the file
/// instead; review it before committing it.
fn check(name: &str) {
    check_on(name, || Server::new(None, &Sources::default()));
}

/// Like [`check`], on a custom server.
pub(super) fn check_on(name: &str, server: impl Fn() -> Server) {
    let path = format!("{}/src/redis/tests/files/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let mut expected = std::fs::read_to_string(&path).unwrap();
    let updates = std::env::var_os("UPDATE_GOLDEN").is_some();
    for version in [Version::Resp2, Version::Resp3] {
        for way in [Way::Worker, Way::Writer] {
            let mut server = server();
            let seen = run_file(&expected, version, way, &mut server);
            if updates {
                std::fs::write(&path, &seen).unwrap();
                expected = seen;
                continue;
            }
            if seen != expected {
                let line = expected.lines().zip(seen.lines()).position(|(a, b)| a != b);
                let at = line.unwrap_or(expected.lines().count().min(seen.lines().count()));
                let of = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
                panic!(
                    "{path}:{}: version {version:?}\nexpected {}\ncame     {}",
                    at + 1,
                    of(&expected),
                    of(&seen)
                );
            }
        }
    }
}

macro_rules! golden {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
    };
}

golden! { strings bitmaps hyperloglog sort set counters keys expiry scan connection server transactions introspection }
