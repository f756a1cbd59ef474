//! Scripts that a virtual machine runs in addition to its procedures, for `tokaido run` and the
//! shell, and the transactions that they begin.

use std::{
    cell::RefCell,
    ffi::{CStr, CString},
    io::{self, Write as _},
    rc::Rc,
};

use tokaido_script::{
    CallError, Fault, HostFunction, RuntimeError, Transaction, Value, check_arguments,
};
use tokaido_store::{CommitError, Snapshot, Writer};

use crate::{
    context::{Context, no_store},
    items::{self, Argument},
    operation::Operation,
    report::Failure,
    state::RubyState,
    vm::RubyVm,
};

/// The name of typed lines in errors.
const LINES_NAME: &str = "shell";
const LINES_PATH: &CStr = c"shell";

/// The outcome of a typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    /// It has a value, like everything in Ruby.
    Value(ShownValue),
    /// It is incomplete: nothing was run, and more lines are needed.
    Unfinished,
}

/// The value of a line, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownValue {
    /// As `inspect` writes it.
    pub inspected: Vec<u8>,
    /// As `puts` writes it; `None` for nil.
    pub plain: Option<Vec<u8>>,
}

impl RubyVm {
    /// Runs a text as the top level of a file, outside of any transaction, for `tokaido run`. Its memory and its time are
    /// limited only if [`Limits`](tokaido_script::Limits) says so for scripts; [`interrupt`](Self::interrupt) stops it.
    /// `Tokaido.transact { |tx| … }` runs its block in a transaction that is durable when it returns,
    /// `Tokaido.snapshot { |tx| … }` on a snapshot, and `puts` writes to standard output. The arguments are `ARGV`.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn run_script(
        &mut self,
        name: &str,
        text: &[u8],
        arguments: &[Value],
        writer: &mut dyn Writer,
    ) -> Result<(), CallError> {
        check_arguments(arguments)?;
        let mut given = vec![items::bytes(text), items::bytes(name.as_bytes())];
        given.push(items::array(arguments.len()));
        arguments.iter().for_each(|argument| items::flatten(argument, &mut given));
        let run = |state: &mut RubyState| state.call_script(c"run_script", &given, 3);
        self.script(name, Some(writer), run).map(|_| ())
    }

    /// Runs a typed line as [`run_script`](Self::run_script) runs a text, if there is a writer.
    /// Later lines see its local variables, unless the virtual machine had to be replaced.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn run_line(
        &mut self,
        text: &str,
        writer: Option<&mut dyn Writer>,
    ) -> Result<LineOutcome, CallError> {
        let shown = self.script(LINES_NAME, writer, |state| state.run_line(text, LINES_PATH))?;
        let Some(shown) = shown else { return Ok(LineOutcome::Unfinished) };
        let Value::Array(shown) = shown else {
            return Ok(LineOutcome::Value(ShownValue::default()));
        };
        let mut texts = shown.into_iter().map(|text| match text {
            Value::String(text) => Some(text),
            _ => None,
        });
        let (inspected, plain) = (texts.next().flatten(), texts.next().flatten());
        Ok(LineOutcome::Value(ShownValue { inspected: inspected.unwrap_or_default(), plain }))
    }

    /// Whether a line has defined a local variable of this name.
    #[must_use]
    pub fn has_local(&self, name: &str) -> bool {
        let Ok(name) = CString::new(name) else { return false };
        self.state.as_ref().is_some_and(|state| state.has_local(&name))
    }

    /// Makes `command` in lines and scripts call this function, with the command's name first.
    pub fn set_command(&mut self, command: HostFunction) {
        let command = Rc::new(RefCell::new(command));
        self.command = Some(Rc::clone(&command));
        if let Some(state) = &mut self.state {
            state.context().command = Some(command);
        }
    }

    fn script<T>(
        &mut self,
        name: &str,
        mut writer: Option<&mut dyn Writer>,
        run: impl FnOnce(&mut RubyState) -> Result<T, Failure>,
    ) -> Result<T, CallError> {
        let limits = self.limits();
        let raised = |message: String| CallError::Raised { message, traceback: String::new() };
        let state = self.state_of_scripts().map_err(|error| raised(error.to_string()))?;
        if let Err(failure) = state.prepare_for_scripts() {
            return Err(script_error(failure, name, limits));
        }
        let context = state.context();
        name.clone_into(&mut context.procedure);
        context.writer = writer.as_deref_mut().map(|writer| {
            let writer: *mut (dyn Writer + '_) = writer;
            // SAFETY: only the lifetime is extended; the pointer is removed again below.
            unsafe {
                std::mem::transmute::<*mut (dyn Writer + '_), *mut (dyn Writer + 'static)>(writer)
            }
        });
        let result = run(state);
        let context = state.context();
        context.end();
        context.snapshot = None;
        context.writer = None;
        // Whatever an interrupted script left open is rolled back.
        if let Some(writer) = writer {
            writer.rollback().map_err(|error| raised(error.to_string()))?;
        }
        if matches!(result, Err(Failure::Memory)) {
            self.replace_state();
        } else {
            self.replace_if_worn(());
        }
        result.map_err(|failure| script_error(failure, name, limits))
    }

    fn state_of_scripts(&mut self) -> Result<&mut RubyState, RuntimeError> {
        if self.state.is_none() {
            self.state = Some(self.new_state()?);
        }
        match &mut self.state {
            Some(state) => Ok(state),
            None => unreachable!("it was made above"),
        }
    }
}

fn script_error(failure: Failure, name: &str, limits: tokaido_script::Limits) -> CallError {
    let name = name.to_owned();
    match failure {
        Failure::Time => CallError::ScriptTimeLimit {
            name,
            limit_ms: limits
                .script_time
                .map_or(u64::MAX, |limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        },
        Failure::Memory => CallError::ScriptMemoryLimit {
            name,
            limit_bytes: limits.script_memory_bytes.unwrap_or(usize::MAX),
        },
        failure => failure.into_error(name, limits),
    }
}

/// The operations that only scripts have.
pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    match operation {
        Operation::BeginTransaction => begin(context, arguments[0].is_true()),
        Operation::Commit => {
            let is_committed = commit(context)?;
            context.answer.push(items::boolean(is_committed));
            Ok(())
        }
        Operation::RollBack => roll_back(context),
        _ => print(&arguments[0].text("what is printed")?, arguments[1].is_true()),
    }
}

fn begin(context: &mut Context, may_write: bool) -> Result<(), Fault> {
    if context.is_running() {
        return Err(Fault::refused(
            "a transaction is open already; pass its tx on instead of beginning another",
        ));
    }
    if may_write {
        let Some(writer) = context.writer else {
            return Err(no_store());
        };
        // SAFETY: the writer outlives the script, and nothing else uses it while the script runs.
        let transaction = unsafe { &mut *writer }.begin().map_err(Fault::refused)?;
        // SAFETY: as above; `commit`, `roll_back` or the end of the script take the transaction back.
        unsafe { context.begin(Transaction::Write(transaction).into()) };
        return Ok(());
    }
    let snapshot = context.store()?.snapshot()?;
    let snapshot: *mut dyn Snapshot = &mut **context.snapshot.insert(snapshot);
    // SAFETY: the context keeps the snapshot, untouched, until the transaction is taken back.
    unsafe { context.begin(Transaction::Read(&mut *snapshot).into()) };
    Ok(())
}

/// Makes the writes durable; returns false if they conflict with another writer.
fn commit(context: &mut Context) -> Result<bool, Fault> {
    let poison = context.end();
    let Some(writer) = context.writer else { return Ok(true) };
    // SAFETY: as in `begin`; the transaction was taken back.
    let writer = unsafe { &mut *writer };
    if let Some(why) = poison {
        writer.rollback().map_err(Fault::refused)?;
        return Err(Fault::Refused(why));
    }
    match writer.commit() {
        Ok(_) => writer.flush().map(|_| true).map_err(Fault::refused),
        Err(CommitError::Conflict) => Ok(false),
        Err(error) => Err(Fault::refused(error)),
    }
}

/// Rolls back the open transaction, or ends the snapshot.
fn roll_back(context: &mut Context) -> Result<(), Fault> {
    context.end();
    if context.snapshot.take().is_none()
        && let Some(writer) = context.writer
    {
        // SAFETY: as in `commit`.
        unsafe { &mut *writer }.rollback().map_err(Fault::refused)?;
    }
    Ok(())
}

fn print(text: &[u8], is_error: bool) -> Result<(), Fault> {
    if is_error {
        // If standard error is closed, nobody can be told.
        let _ = io::stderr().write_all(text);
        return Ok(());
    }
    io::stdout()
        .write_all(text)
        .map_err(|error| Fault::Refused(format!("cannot write to the standard output: {error}")))
}
