//! Programs on PATH, and what they report about themselves.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use super::error::SuiteError;

/// Directories of servers that a user's PATH may lack.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Number of lines of a failed program's output that are shown.
const SHOWN_LINES: usize = 3;

/// The first program with one of these names.
pub(super) fn find(names: &[&str]) -> Option<PathBuf> {
    find_all(names).into_iter().next()
}

/// All programs with these names.
pub(super) fn find_all(names: &[&str]) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> =
        env::split_paths(&path).chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from)).collect();
    let paths = |name| directories.iter().map(move |directory: &PathBuf| directory.join(name));
    names.iter().flat_map(paths).filter(|path| path.is_file()).collect()
}

/// The first thing in a program's output that looks like a version.
pub(super) fn version(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    version_in(&String::from_utf8_lossy(&text))
}

/// The same for a program that must succeed.
pub(super) fn printed_version(program: &Path, arguments: &[&str]) -> Option<String> {
    version_in(&output(Command::new(program).args(arguments)).ok()?)
}

/// Digits with at least one point between them.
fn version_in(text: &str) -> Option<String> {
    let is_of_version = |letter: char| letter.is_ascii_digit() || letter == '.';
    let words = text.split(|letter: char| !is_of_version(letter));
    let mut words = words.map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

/// The output of a program that succeeds.
pub(super) fn output(command: &mut Command) -> Result<String, SuiteError> {
    let name = name(command);
    let failed = SuiteError::system(format!("cannot run {name}"));
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(failed)?;
    if !status.success() {
        let said = last_lines(&String::from_utf8_lossy(&[stdout, stderr].concat()));
        return Err(SuiteError::Program { program: name, status, said });
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The name of a command's program, without its directory.
pub(super) fn name(command: &Command) -> String {
    let path = Path::new(command.get_program());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The last lines of a log, joined into one.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let said = [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1", "7.0.15"),
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("Server version: Apache/2.4.62 (Debian)", "2.4.62"),
            ("Lua 5.1.5  Copyright (C) 1994-2012 Lua.org, PUC-Rio", "5.1.5"),
            ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", "3.1.2"),
        ];
        for (text, version) in said {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no version. At all"), None);
    }

    #[test]
    fn programs_are_found_and_a_failing_one_says_why() {
        assert!(find(&["no-such-program", "sh"]).is_some());
        assert_eq!(find(&["no-such-program"]), None);
        let failed = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(failed.to_string().contains("why"), "{failed}");
        assert_eq!(output(Command::new("sh").args(["-c", "echo 7"])).unwrap(), "7\n");
    }

    #[test]
    fn of_a_log_its_end_is_shown() {
        assert_eq!(last_lines("a\nb\n\nc\nd\n"), "b; c; d");
        assert_eq!(last_lines(""), "");
    }
}
