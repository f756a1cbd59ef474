//! One page's commands in one shell.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
};

use tempfile::TempDir;

use crate::{
    failure::{Failure, Outcome},
    files,
    process::Command,
    server,
};

use super::{Step, expected};

/// Longest that the commands of one page may take together.
const SESSION_SECONDS_MAX: u32 = 120;

/// Stands in the output before what each command prints. Nothing that a document shows has it.
const MARK: &str = "\u{1}command ";

/// Runs the steps of `page` and complains about each command that did something else than the page
/// shows. A page that shows no output says that there is none and that the command succeeds; where
/// it shows some, a failure may be what is shown.
pub(super) fn run(page: &Path, steps: &[Step], binary: &Path) -> Outcome<Vec<String>> {
    let directory = TempDir::new().map_err(Failure::of("cannot make a directory"))?;
    check_port()?;
    let printed = shell(&script(steps), directory.path(), binary)?;
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

/// The documents show the port that everyone uses, so it must be ours.
fn check_port() -> Outcome {
    let port = server::PORT_DEFAULT;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop).map_err(Failure::of(format!(
        "the commands in the documents need port {port}; stop the server that has it"
    )))
}

fn shell(script: &str, directory: &Path, binary: &Path) -> Outcome<String> {
    copy_procedures(directory)?;
    let script_path = directory.join(".session");
    fs::write(&script_path, script).map_err(Failure::of("cannot write a session"))?;
    let limit = SESSION_SECONDS_MAX.to_string();
    let mut path = binary.parent().map(|p| p.as_os_str().to_owned()).unwrap_or_default();
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

/// Each command's output is caught in a file of its own, so that the mark before it can say how it
/// ended, and a server that goes on writing does not write into what the next one prints. A server
/// that was started with `&` is waited for, as a reader would.
fn script(steps: &[Step]) -> String {
    let mut script = String::from("exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::File { name, text } => {
                script.push_str(&format!("mkdir -p \"$(dirname {name})\"\ncat > {name} <<'END OF FILE'\n{text}END OF FILE\n"));
            }
            Step::Command { command, .. } => {
                let wait = if command.ends_with('&') { wait_for_server() } else { String::new() };
                script.push_str(&format!(
                    "{{\n{command}\n}} > .printed.{index} 2>&1\nstatus=$?\n{wait}printf \
                     '{MARK}%s\\n' $status\ncat .printed.{index}\n"
                ));
            }
        }
    }
    script
}

fn wait_for_server() -> String {
    let port = server::PORT_DEFAULT;
    format!(
        "for _ in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep \
         0.05; done\n"
    )
}

fn copy_procedures(directory: &Path) -> Outcome {
    let procedures = files::root().join("procedures");
    if !procedures.is_dir() {
        return Ok(());
    }
    Command::new("cp", ["-r".as_ref(), procedures.as_os_str(), directory.as_os_str()])
        .output()
        .map(drop)
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
