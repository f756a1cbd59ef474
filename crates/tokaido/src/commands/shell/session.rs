//! The loop of the shell: reads a line, prints the outcome.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustyline::{
    Cmd, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler, KeyEvent,
    RepeatCount, error::ReadlineError, history::FileHistory,
};
use tokaido_script::CallError;
use tokaido_wire::resp::Reply;

use super::{
    backend::Backend,
    complete::Names,
    language::{Language, Outcome},
    line::{Line, understand},
    reply,
};
use crate::{
    endpoint::{Endpoint, EndpointArgs},
    error::{EXIT_FAILED, EXIT_INTERRUPTED, Error, lua_message},
    interrupt::{self, Running},
};

/// Number of lines that the history keeps.
const HISTORY_LINES_MAX: usize = 10_000;

/// How many bytes of an answer are written between two checks for Ctrl-C.
const PIECE_LEN: usize = 16 << 10;

const HELP: &str = "\
The first word decides what a line is:
  GET k              the name of a command, in any case, or of a procedure: runs it
  n = 1 + 2          anything else is Lua, and so is what begins with a keyword of Lua in
                     small letters; the value of an expression is printed
  = get              = before an expression: Lua, even if it begins with such a name
  ruby, lua          from here on, anything else is Ruby, or Lua again
  help, exit         this text; leave (as Ctrl-D, or Ctrl-C twice)

The prompt is the database, and says `(multi)` between MULTI and EXEC. Ctrl-C stops what runs: a
transaction of Lua that was open is rolled back, and the shell goes on.

Arguments of commands with spaces in them go in \"…\" or '…'. TAB completes names.
Lua runs in this process, and globals stay from line to line. On a server it sends commands:
  for i = 1, 3 do command(\"SET\", \"k\" .. i, i) end
  n = command(\"INCR\", \"hits\")   the value is the reply; an error reply is raised
What must happen as one is a procedure: install it on the server, and type its name.
On a store of this process, opened with --dir, Lua has transactions in place of `command`:
  tokaido.transact(function(tx) return tx.main:increment(\"hits\", 1) end)

Ruby runs here as well; local variables stay from line to line. It has the same, as
  command :incr, \"hits\"                                      on a server
  Tokaido.transact { |tx| tx[:main].increment(\"hits\") }      on a store";

/// Run commands, Lua and Ruby interactively
///
/// The shell takes Redis commands, procedures by their names, and Lua, or Ruby after `ruby`; `help` in the
/// shell explains how it tells them apart. In Lua, command("GET", "k") sends a command to the server; with
/// --dir, tokaido.transact and tokaido.snapshot work on the store. TAB completes names. The history is
/// kept in $XDG_STATE_HOME/tokaido/history, or ~/.local/state/tokaido/history.
///
/// If standard input is not a terminal, its lines are run as a script: replies are printed raw, and
/// errors go to standard error with their line numbers.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido shell
  tokaido shell --dir data --procedures procedures
  echo 'INCR hits' | tokaido shell --connect 127.0.0.1:7653

Exit status: 0; 1 if a line of a script failed; 2 for a wrong command line; 3 if no server answers or
the store cannot be opened; 130 if Ctrl-C ended a script."
)]
pub(crate) struct ShellArgs {
    /// Database to start with
    #[arg(long, value_name = "NAME", default_value = "main")]
    db: String,
    /// Directory of procedure files to load; only with --dir
    #[arg(long, value_name = "DIR", requires = "dir")]
    procedures: Option<PathBuf>,
    /// Start with Ruby instead of Lua
    #[arg(long)]
    ruby: bool,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn shell(args: &ShellArgs) -> Result<ExitCode, Error> {
    let mut backend = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            Backend::store(&directory, args.procedures.as_deref(), &args.db)?
        }
        Endpoint::Server(server) => Backend::server(&server, &args.db)?,
    };
    let commands = backend.commands()?;
    let names = commands.iter().cloned().chain(backend.procedures()?).collect();
    interrupt::catch(backend.interrupts())?;
    let is_raw = !io::stdout().is_terminal();
    let language = if args.ruby { Language::Ruby } else { Language::Lua };
    backend.prepare(language)?;
    let pending = String::new();
    let mut session = Session { backend, commands, names, is_raw, language, pending };
    if io::stdin().is_terminal() { converse(&mut session) } else { run_script(&mut session) }
}

struct Session {
    backend: Backend,
    commands: Vec<String>,
    /// The names of commands and procedures.
    names: BTreeSet<String>,
    /// Whether to print for a program instead of a person.
    is_raw: bool,
    /// The language of lines that are not commands.
    language: Language,
    /// The lines so far of incomplete code.
    pending: String,
}

/// What the loop does after a line.
enum Next {
    Go,
    /// Like `Go`, but the line failed with this message.
    Failed(String),
    Leave,
}

impl Session {
    fn take(&mut self, text: &str, out: &mut impl Write) -> Result<Next, Error> {
        let line = if self.pending.is_empty() {
            let (language, backend) = (self.language, &mut self.backend);
            let is_variable = |name: &str| backend.has_name(language, name);
            match understand(text, language, &self.names, is_variable) {
                Ok(line) => line,
                Err(error) => return Ok(Next::Failed(error.to_string())),
            }
        } else {
            Line::Code(format!("{}\n{text}", std::mem::take(&mut self.pending)))
        };
        match line {
            Line::Nothing => Ok(Next::Go),
            Line::Exit => Ok(Next::Leave),
            Line::Help => print(out, HELP.as_bytes()),
            Line::Command(arguments) => {
                let reply = self.backend.execute(&arguments)?;
                self.print_reply(&reply, out)
            }
            Line::Code(code) => self.run_code(code, out),
            Line::Language(language) => match self.backend.prepare(language) {
                Ok(()) => {
                    self.language = language;
                    Ok(Next::Go)
                }
                Err(error) => Ok(Next::Failed(error.to_string())),
            },
        }
    }

    /// Updates the names of procedures, which a reload may have changed.
    fn refresh_names(&mut self) {
        if self.backend.is_idle()
            && let Ok(procedures) = self.backend.procedures()
        {
            self.names = self.commands.iter().cloned().chain(procedures).collect();
        }
    }

    /// The prompt; the lines of an incomplete chunk are aligned with it.
    fn prompt(&self) -> String {
        let mut prompt = self.backend.prompt();
        if self.language == Language::Ruby {
            prompt = prompt.replace("> ", " (ruby)> ");
        }
        if self.pending.is_empty() { prompt } else { format!("{:>1$}", "> ", prompt.len()) }
    }

    fn print_reply(&self, reply: &Reply, out: &mut impl Write) -> Result<Next, Error> {
        match reply {
            Reply::Error(message) if self.is_raw => Ok(Next::Failed(message.clone())),
            reply if self.is_raw => {
                let mut bytes = Vec::new();
                reply::raw(reply, &mut bytes);
                show(out, &bytes)
            }
            reply => show(out, reply::format(reply).as_bytes()),
        }
    }

    fn run_code(&mut self, code: String, out: &mut impl Write) -> Result<Next, Error> {
        match self.backend.run(self.language, &code) {
            Outcome::Shown(values) => {
                for value in values {
                    let shown = if self.is_raw { value.plain } else { Some(value.notation) };
                    let Some(shown) = shown else { continue };
                    if let failed @ Next::Failed(_) = show(out, &shown)? {
                        return Ok(failed);
                    }
                }
                Ok(Next::Go)
            }
            Outcome::Unfinished => {
                self.pending = code;
                Ok(Next::Go)
            }
            Outcome::NotUnderstood(message) => {
                let first = code.split_whitespace().next().unwrap_or_default();
                let language = self.language;
                let why = format!("{first:?} is no command, and this is not {language}: {message}");
                Ok(Next::Failed(why))
            }
            Outcome::Failed(CallError::Exited { .. }) => Ok(Next::Leave),
            Outcome::Failed(error) => Ok(Next::Failed(lua_message(&error))),
        }
    }
}

fn print(out: &mut impl Write, bytes: &[u8]) -> Result<Next, Error> {
    let printed = out.write_all(bytes).and_then(|()| out.write_all(b"\n"));
    printed.and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(Next::Go)
}

/// Prints the result of a line, until Ctrl-C.
fn show(out: &mut impl Write, bytes: &[u8]) -> Result<Next, Error> {
    for piece in bytes.chunks(PIECE_LEN) {
        if interrupt::was_raised() {
            print(out, b"")?;
            return Ok(Next::Failed("interrupted; the rest is not shown".to_owned()));
        }
        out.write_all(piece).map_err(Error::Stdout)?;
    }
    print(out, b"")
}

/// Reads lines from the terminal.
fn converse(session: &mut Session) -> Result<ExitCode, Error> {
    let failed = |source| Error::Terminal { source };
    let config = Config::builder().max_history_size(HISTORY_LINES_MAX).map_err(failed)?;
    let config = config.history_ignore_space(true).build();
    let mut editor: Editor<Names, FileHistory> = Editor::with_config(config).map_err(failed)?;
    let history = history_path();
    if let Some(path) = &history {
        // There is none the first time.
        let _ = editor.load_history(path);
    }
    let was_empty = WasEmpty::default();
    let handler = EventHandler::Conditional(Box::new(OnCtrlC(Arc::clone(&was_empty))));
    editor.bind_sequence(KeyEvent::ctrl('C'), handler);
    let mut out = io::stdout();
    greet(session, &mut out)?;
    let mut is_second = false;
    // Until the end: a Ctrl-C that comes too late to stop a line must not end the shell.
    let running = Running::begin();
    loop {
        running.forget_interrupt();
        session.refresh_names();
        editor.set_helper(Some(Names::new(session.names.clone())));
        let prompt = session.prompt();
        running.forget_interrupt();
        let text = match editor.readline(&prompt) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => {
                let had_nothing = session.pending.is_empty() && was_empty.load(Ordering::Relaxed);
                session.pending.clear();
                if had_nothing && is_second {
                    break;
                }
                if had_nothing {
                    print(&mut out, b"Ctrl-C again, or Ctrl-D, leaves.")?;
                }
                is_second = had_nothing;
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(source) => return Err(Error::Terminal { source }),
        };
        is_second = false;
        if !holds_password(&text) {
            // If this fails, only the history is lost.
            let _ = editor.add_history_entry(&text);
        }
        match session.take(&text, &mut out) {
            Ok(Next::Go) => {}
            Ok(Next::Failed(message)) => {
                print(&mut out, format!("(error) {message}").as_bytes())?;
            }
            // The next line tries again.
            Err(Error::Client(error)) => {
                print(&mut out, format!("(error) {error}").as_bytes())?;
            }
            Ok(Next::Leave) => break,
            Err(error) => return Err(error),
        }
    }
    if let Some(path) = &history {
        save_history(&mut editor, path);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says where the shell is connected, and how to get help.
fn greet(session: &Session, out: &mut impl Write) -> Result<Next, Error> {
    let server = session.backend.server_name().map(|name| format!("Connected to {name}. "));
    let server = server.unwrap_or_default();
    print(out, format!("{server}`help` says what can be typed here; Ctrl-D leaves.").as_bytes())
}

/// Whether the line was empty when Ctrl-C was pressed.
type WasEmpty = Arc<AtomicBool>;

/// Checks the line before Ctrl-C discards it.
struct OnCtrlC(WasEmpty);

impl ConditionalEventHandler for OnCtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        self.0.store(context.line().is_empty(), Ordering::Relaxed);
        Some(Cmd::Interrupt)
    }
}

/// Whether a line must not be kept in the history, which is a file.
fn holds_password(text: &str) -> bool {
    text.split_whitespace().any(|word| word.eq_ignore_ascii_case("auth"))
}

/// Saves the history. Errors are ignored: the loss of the history is no reason for the shell to fail.
fn save_history(editor: &mut Editor<Names, FileHistory>, path: &std::path::Path) {
    if let Some(directory) = path.parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    let _ = editor.append_history(path);
}

/// Where the history is kept; nowhere for a user without a home.
fn history_path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("tokaido").join("history"))
}

/// Runs the lines of standard input.
fn run_script(session: &mut Session) -> Result<ExitCode, Error> {
    let mut out = io::stdout().lock();
    let mut failed = false;
    let mut number = 0;
    let mut complain = |number: usize, message: &str| {
        // If standard error is closed, the exit code still tells.
        let _ = writeln!(io::stderr(), "tokaido: line {number}: {message}");
        failed = true;
    };
    for line in io::stdin().lock().lines() {
        number += 1;
        let text =
            line.map_err(|source| Error::Io { what: "cannot read standard input", source })?;
        let running = Running::begin();
        let next = session.take(&text, &mut out);
        drop(running);
        match next {
            Ok(Next::Go) => {}
            Ok(Next::Failed(message)) => complain(number, &message),
            Ok(Next::Leave) => break,
            // The state that earlier lines left there, such as an open MULTI, is lost.
            Err(Error::Client(error)) => {
                complain(number, &error.to_string());
                return Ok(error.exit_code().into());
            }
            Err(error) => return Err(error),
        }
        if interrupt::was_raised() {
            return Ok(EXIT_INTERRUPTED.into());
        }
    }
    if !session.pending.is_empty() {
        let why = format!("the script ends within a chunk of {}", session.language);
        complain(number, &why);
    }
    Ok(if failed { EXIT_FAILED.into() } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_stay_out_of_the_history() {
        assert!(holds_password("AUTH sesame"));
        assert!(holds_password("hello 3 auth default sesame"));
        assert!(!holds_password("SET author me"));
    }
}
