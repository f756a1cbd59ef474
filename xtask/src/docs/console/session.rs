//! Runs one page's commands in one shell.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use tempfile::TempDir;

use crate::{
    failure::{Failure, Outcome},
    process::Command,
    server,
};

use super::{Step, expected};

/// The longest time that the commands of one page may take together.
const SESSION_SECONDS_MAX: u32 = 120;

/// The directory in which a session looks for programs first.
const PROGRAMS: &str = ".programs";

/// Precedes each command's output. It occurs in nothing that a document shows.
const MARK: &str = "\u{1}command ";

/// Runs the steps of `page`, and complains about each command whose result differs from the page.
/// If the page shows no output, there must be none and the command must succeed; if it shows some,
/// the command may fail.
pub(super) fn run(page: &Path, steps: &[Step], binary: &Path) -> Outcome<Vec<String>> {
    let directory = TempDir::new().map_err(Failure::of("cannot make a directory"))?;
    let port = server::free_port()?;
    write_stand_in(directory.path(), binary, port)?;
    let printed = shell(&script(steps, port), directory.path())?;
    let printed = printed.replace(&port.to_string(), &server::PORT_DEFAULT.to_string());
    let mut parts = printed.split(MARK).skip(1);
    let mut complaints = Vec::new();
    for step in steps {
        let Step::Command { line, command, expected } = step else { continue };
        let place = format!("{}:{line}: `{command}`", page.display());
        let Some((status, output)) = parts.next().and_then(|part| part.split_once('\n')) else {
            complaints.push(format!(
                "{place} was not reached within {SESSION_SECONDS_MAX} s; up to there was \
                 printed:\n{printed}"
            ));
            break;
        };
        // redis-cli ends an error with empty lines when it does not write to a terminal.
        let lines: Vec<&str> = output.trim_end_matches('\n').lines().collect();
        let failed = expected.is_empty() && status != "0";
        if failed || !expected::matches(expected, &lines) {
            let expected = expected.join("\n");
            complaints.push(format!(
                "{place} is to print\n{expected}\nbut it printed, with status {status},\n{output}"
            ));
        }
    }
    Ok(complaints)
}

/// The documents show the default port, which may be in use. So a session has its own port: the
/// number is replaced in the commands and put back in their output, and this stand-in for `tokaido`
/// passes it where a document relies on the default.
fn write_stand_in(directory: &Path, binary: &Path, port: u16) -> Outcome {
    let text = format!(
        "#!/bin/bash\n\
         case \"$* \" in\n\
         *' --listen '*) ;;\n\
         'serve '*) grep -qs '^.\\[listen' tokaido.toml || set -- \"$@\" --listen 127.0.0.1:{port} ;;\n\
         *' --dir '*|*' --connect '*) ;;\n\
         'load '*|'dump '*|'get '*|'put '*|'del '*|'scan '*|'call '*|'reload '*) set -- \"$@\" --connect 127.0.0.1:{port} ;;\n\
         esac\n\
         exec '{}' \"$@\"\n",
        binary.display()
    );
    let programs = directory.join(PROGRAMS);
    let path = programs.join("tokaido");
    fs::create_dir(&programs)
        .and_then(|()| fs::write(&path, text))
        .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)))
        .map_err(Failure::of("cannot write a stand-in for tokaido"))
}

fn shell(script: &str, directory: &Path) -> Outcome<String> {
    let script_path = directory.join(".session");
    fs::write(&script_path, script).map_err(Failure::of("cannot write a session"))?;
    let limit = SESSION_SECONDS_MAX.to_string();
    let mut path = directory.join(PROGRAMS).into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("timeout", ["--kill-after=5", &limit, "bash", ".session"])
        .directory(directory)
        .variable("PATH", path)
        .variable("LC_ALL", "C.UTF-8")
        .prepare()
        .output()
        .map_err(Failure::of("cannot run a session"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Each command's output is captured in its own file. So the mark before it can include the status,
/// and a server that keeps writing does not write into the next command's output. A server that was
/// started with `&` is waited for, as a reader would do.
fn script(steps: &[Step], port: u16) -> String {
    let mut script = String::from("exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::File { name, text } => {
                script.push_str(&format!("mkdir -p \"$(dirname {name})\"\ncat > {name} <<'END OF FILE'\n{text}END OF FILE\n"));
            }
            Step::Command { command, .. } => {
                let command = command.replace(&server::PORT_DEFAULT.to_string(), &port.to_string());
                let wait = if command.ends_with('&') { wait_for(port) } else { String::new() };
                script.push_str(&format!(
                    "{{\n{command}\n}} > .printed.{index} 2>&1\nstatus=$?\n{wait}printf \
                     '{MARK}%s\\n' $status\ncat .printed.{index}\n"
                ));
            }
        }
    }
    script
}

fn wait_for(port: u16) -> String {
    format!(
        "for _ in $(seq 1200); do (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep \
         0.05; done\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str, expected: &[&str]) -> Step {
        let expected = expected.iter().map(|&line| line.to_owned()).collect();
        Step::Command { line: 1, command: command.into(), expected }
    }

    fn complaints(steps: &[Step]) -> Vec<String> {
        run(Path::new("page.md"), steps, Path::new("/nowhere/tokaido")).unwrap()
    }

    #[test]
    fn commands_share_a_directory_and_a_shell() {
        let steps = [
            Step::File { name: "a.txt".into(), text: "one\n".into() },
            command("x=$(cat a.txt)", &[]),
            command("echo \"$x\" two", &["one two"]),
        ];
        assert_eq!(complaints(&steps), Vec::<String>::new());
    }

    #[test]
    fn other_output_and_silent_failure_are_complaints() {
        let found = complaints(&[command("echo a", &["b"]), command("false", &[])]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("page.md:1: `echo a` is to print\nb\nbut it printed"));
    }

    #[test]
    fn a_failure_may_be_what_is_shown() {
        assert_eq!(complaints(&[command("echo no; false", &["no"])]), Vec::<String>::new());
    }
}
