//! Scripts and configurations for servers. They are part of the program, so that it needs no other files.

use std::{collections::BTreeMap, fs, path::Path};

use super::error::SuiteError;

/// The folder of those that ours runs as procedures and handlers.
const PROCEDURES: &str = "procedures/";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scripts/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "apache.conf",
    "fib.lua",
    "fib.py",
    "fib.rb",
    "nginx.conf",
    "procedures/bench.lua",
    "procedures/bench_ruby.rb",
    "procedures/dict_ngx.lua",
    "procedures/echo_ngx.lua",
    "procedures/fib_apache.lua",
    "procedures/fib_inside_ngx.lua",
    "procedures/hello_apache.lua",
    "procedures/hello_mod_mruby.rb",
    "procedures/hello_ngx.lua",
    "procedures/re_ngx.lua",
    "redis-fib.lua",
    "setget.py",
    "setget.rb",
];

/// The parts of the loop patterns.
const PATTERNS: &[(&str, &str)] = files![
    "patterns/kyoto.lua",
    "patterns/loops.lua",
    "patterns/nginx.lua",
    "patterns/program.lua",
    "patterns/redis.lua",
    "patterns/table.lua",
    "patterns/tarantool.lua",
    "patterns/tokaido.lua",
];

/// Precedes the name of statements, in the loops and in the file of a system.
const MARK: &str = "--@ ";

/// The loop patterns for a system, with its statements in place of their names.
pub(super) fn patterns(system: &str) -> String {
    let file = |name: &str| {
        let path = format!("patterns/{name}.lua");
        PATTERNS.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| *text)
    };
    let sections: BTreeMap<&str, &str> =
        file(system).split(MARK).filter_map(|section| section.split_once('\n')).collect();
    let section = |name: &str| sections.get(name).copied().unwrap_or_default();
    let mut text = section("before").to_owned();
    for line in file("loops").lines() {
        match line.trim_start().strip_prefix(MARK) {
            Some(name) => text.push_str(section(name)),
            None => text.extend([line, "\n"]),
        }
    }
    text + section("after")
}

/// The script with which a Kyoto Tycoon must have been started to take part in the loop patterns.
#[must_use]
pub fn kyoto_tycoon_script() -> String {
    patterns("kyoto")
}

/// The same as a program. It runs the pattern named by its first argument, with as many keys as the second one says.
pub(super) fn patterns_program(system: &str) -> String {
    let program = PATTERNS.iter().find(|(name, _)| *name == "patterns/program.lua");
    patterns(system) + program.map_or("", |(_, text)| *text)
}

/// The text of a file.
pub(super) fn text(name: &str) -> &'static str {
    FILES.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| *text)
}

/// Writes to `directory` everything that other programs run.
pub(super) fn write(directory: &Path) -> Result<(), SuiteError> {
    write_some(directory, "", &[("patterns_ngx.lua", &patterns("nginx"))])
}

/// Writes to `directory` everything that ours runs.
pub(super) fn write_procedures(directory: &Path) -> Result<(), SuiteError> {
    let patterns =
        [("patterns.lua", &*patterns("tokaido")), ("patterns_kyoto.lua", &patterns("kyoto"))];
    write_some(directory, PROCEDURES, &patterns)
}

/// Writes the files whose names begin with `begin`, without their folder, and `others`.
fn write_some(directory: &Path, begin: &str, others: &[(&str, &str)]) -> Result<(), SuiteError> {
    let failed = || SuiteError::system("cannot write scripts");
    fs::create_dir_all(directory).map_err(failed())?;
    let files = FILES.iter().filter(|(name, _)| name.starts_with(begin));
    for (name, text) in files.chain(others) {
        let name = name.strip_prefix(PROCEDURES).unwrap_or(name);
        fs::write(directory.join(name), text).map_err(failed())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_a_system_have_all_its_statements_and_no_marks() {
        let of_table = patterns("table");
        assert!(of_table.starts_with("-- The loop patterns over a Lua table"), "{of_table}");
        assert!(
            of_table.contains(
                "    local key = tostring(is_random and draw(n) + 1 or i)\ndb[key] = key\n"
            )
        );
        for system in ["kyoto", "nginx", "redis", "table", "tarantool", "tokaido"] {
            assert!(!patterns(system).contains(MARK), "{system}");
        }
    }
}
