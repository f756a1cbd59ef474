//! Runs the commands in the documents, in order.
//!
//! A `console` fence is a session at a terminal: a line that begins with `$ ` is a command, `> `
//! continues it, and the other lines are its output. `…` stands for any text within a line, and
//! alone on a line for any number of lines. Any fence with a name after its language, as in
//! ```` ```lua hits.lua ````, is written to a file of that name. The fences of one page share one
//! directory, initially empty, and one shell, with `tokaido` on its path.

mod expected;
mod session;

use std::path::Path;

use crate::{
    failure::{Failure, Outcome},
    files, markdown, server,
};

/// One step, in the order of the page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Write a file.
    File { name: String, text: String },
    /// Run a command, which must print `expected`.
    Command { line: usize, command: String, expected: Vec<String> },
}

/// Runs the sessions of README.md and of all pages in docs/.
pub(crate) fn run_commands() -> Outcome {
    let binary = server::binary()?;
    let pages = files::tracked(&["README.md", ".md"])?;
    let ours = |path: &&std::path::PathBuf| {
        path.as_path() == Path::new("README.md") || path.starts_with("docs")
    };
    let mut complaints = Vec::new();
    let mut commands = 0;
    for path in pages.iter().filter(ours) {
        let steps = steps(&files::read(path)?);
        let is_command = |step: &&Step| matches!(step, Step::Command { .. });
        let count = steps.iter().filter(is_command).count();
        if count > 0 {
            complaints.extend(session::run(path, &steps, &binary)?);
            commands += count;
        }
    }
    if complaints.is_empty() {
        println!("docs: {commands} commands print what the documents say");
        return Ok(());
    }
    Err(Failure::new(format!(
        "commands do not do what the documents say:\n{}",
        complaints.join("\n")
    )))
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for fence in markdown::fences(page) {
        if !fence.name.is_empty() {
            let text = fence.text.join("\n") + "\n";
            steps.push(Step::File { name: fence.name.to_owned(), text });
        } else if fence.language == "console" {
            session_steps(&fence, &mut steps);
        }
    }
    steps
}

fn session_steps(fence: &markdown::Fence<'_>, steps: &mut Vec<Step>) {
    for (index, text) in fence.text.iter().enumerate() {
        if let Some(command) = text.strip_prefix("$ ") {
            let line = fence.line + 1 + index;
            steps.push(Step::Command { line, command: command.into(), expected: Vec::new() });
            continue;
        }
        let Some(Step::Command { command, expected, .. }) = steps.last_mut() else { continue };
        match text.strip_prefix("> ") {
            Some(more) if expected.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            _ => expected.push((*text).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_commands_and_what_they_print() {
        let page = "# T\n\n```console\n$ cat <<END\n> a\n> END\na\n$ true\n```\n";
        let expected = [
            Step::Command {
                line: 4,
                command: "cat <<END\na\nEND".into(),
                expected: vec!["a".into()],
            },
            Step::Command { line: 8, command: "true".into(), expected: Vec::new() },
        ];
        assert_eq!(steps(page), expected);
    }

    #[test]
    fn a_named_fence_is_a_file_and_others_are_only_to_be_read() {
        let page = "```lua a.lua\nreturn {}\n```\n```sh\n$ rm x\n```\n";
        assert_eq!(steps(page), [Step::File { name: "a.lua".into(), text: "return {}\n".into() }]);
    }
}
