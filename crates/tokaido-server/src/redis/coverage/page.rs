//! The three groups, as a section of docs/redis-commands.md.

use std::fmt::Write;

use super::table::{ABSENT, DIFFERENT, REDIS, has};

/// The section, in Markdown.
pub(in crate::redis) fn section() -> String {
    let mut text =
        "\n## Every command of Redis 7.2\n\nThe same as in Redis, except for limits: ".to_owned();
    let same = REDIS.lines().filter(|name| !has(DIFFERENT, name) && !has(ABSENT, name));
    text += &shown(same);
    text += ".\n\n| different | how |\n|---|---|\n";
    for (names, how) in DIFFERENT {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {how} |", shown(names.iter().copied()));
    }
    text += "\n| absent | why |\n|---|---|\n";
    for (names, why) in ABSENT {
        let _ = writeln!(text, "| {} | {why} |", shown(names.iter().copied()));
    }
    text
}

fn shown<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> =
        names.map(|name| format!("`{}`", name.replace('|', " ").to_uppercase())).collect();
    names.join(", ")
}
