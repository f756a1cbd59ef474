//! `tokaido bench lua`: the time of a Lua function.

use std::{
    cell::RefCell,
    io::{self, Write},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration as Time, Instant},
};

use tokaido_bench::{
    lua::{Measurement, Plan, Report, Sample, Subject, TraceEvent, TraceOutcome, Warning, measure},
    machine::Machine,
};
use tokaido_script::{
    self as script, BenchCode, BenchOptions, BenchSample, CallError, Dialect, FunctionBench, Limits,
};
use tokaido_store::Writer;

use crate::{
    duration::Duration,
    error::{Error, lua_error},
    interrupt::{self, Running},
    procedures,
    script::{Script, ScriptStore, ScriptText},
    shared_dictionary::SharedDictionary,
};

/// Time a Lua function
///
/// FILE returns the function to be timed; with -e, CODE is its body. It is called as f(i), where i is the number of the
/// call, and its result is kept, so that computing it cannot be optimised away. ARGS are `...` in FILE.
///
/// The function is called until the compiler has nothing more to do. Then samples are taken with the JIT on and off in
/// turn, each after a full garbage collection, and each with enough calls that the resolution of the clock is less than a
/// hundredth of it. The time of the loop is measured with an empty function and subtracted. The report also shows what
/// LuaJIT did not compile, and why, and what makes the figures doubtful.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido bench lua -e 'tostring(i)'
  tokaido bench lua --transaction -e 'tx.main:put(i % 1000, i)'
  tokaido bench lua --dialect ngx --naive -e 'ngx.re.find(\"hello, world.\", [[\\w+\\.]], \"jo\")'

Exit status: 0 if it was measured, 1 if the function raised an error or on failure, 2 for a wrong command
line, 3 if the store cannot be opened, 130 if Ctrl-C ended it."
)]
pub(crate) struct LuaArgs {
    /// File that returns the function; - is standard input
    #[arg(value_name = "FILE.lua", required_unless_present = "code")]
    file: Option<String>,
    /// Time this function body, or expression, instead of a file
    #[arg(short = 'e', value_name = "CODE")]
    code: Option<String>,
    /// Run this once, before the function of -e; its local variables are upvalues of the function
    #[arg(
        short,
        long,
        value_name = "CODE",
        requires = "code",
        default_value = "",
        hide_default_value = true
    )]
    setup: String,
    /// Dialect that it is written in, any except mod_lua [default: the one that its first line names]
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// Arguments of the file
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// Call it as f(i, tx), with one write transaction per sample, committed after the clock has stopped
    #[arg(long)]
    transaction: bool,
    /// Also show what misleading methods report: a process, a cold call, no garbage collection
    #[arg(long)]
    naive: bool,
    /// Print one JSON object, with times in nanoseconds
    #[arg(long)]
    json: bool,
    /// Take samples for about this time, such as 500ms, 30s or 15m
    #[arg(long, value_name = "TIME", default_value = "5s")]
    time: Duration,
    /// Maximum time to wait until no new traces appear
    #[arg(long, value_name = "TIME", default_value = "10s")]
    warm_up: Duration,
    /// Directory of the store; created if it does not exist [default: an empty store, removed at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Directory of the procedure files that it may require; may be given several times, the first one that has a file counts
    #[arg(short = 'I', long, value_name = "DIR")]
    procedures: Vec<PathBuf>,
    /// Cache of this name and size for `ngx.shared.NAME`, and for transactions; may be given several times
    #[arg(long = "shdict", value_name = "NAME SIZE")]
    dictionaries: Vec<SharedDictionary>,
    /// Call the function once, and print nothing: the process that --naive starts
    #[arg(long, hide = true)]
    once: bool,
}

pub(super) fn lua(args: &LuaArgs) -> Result<ExitCode, Error> {
    let (code, file) = (args.code.as_deref(), args.file.as_deref());
    let script = Script::of(ScriptText::of(code, file, &args.args)?, args.dialect.as_deref())?;
    if args.transaction && script.dialect.name != Dialect::NATIVE.name {
        let message = format!(
            "--transaction is for the dialect tokaido; what a function may write in {} it finds there",
            script.dialect.name
        );
        return Err(Error::Usage(message));
    }
    let opened = ScriptStore::open(args.dir.as_deref(), &args.dictionaries)?;
    let mut writer = opened.store.writer()?;
    let mut compiled = start(args, &script, &opened, true)?;
    let outcome = match args.once {
        true => once(args, &script, &mut compiled, &mut *writer),
        false => {
            let mut interpreted = start(args, &script, &opened, false)?;
            interrupt::catch([compiled.interrupt(), interpreted.interrupt()])?;
            let _running = Running::begin();
            let measured = run(args, &script, [&mut compiled, &mut interpreted], writer);
            measured.and_then(|measured| report(args, &script, measured))
        }
    };
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failure::Script(CallError::Exited { status })) => Ok(status.into()),
        Err(Failure::Script(error)) => Err(lua_error(&error)),
        Err(Failure::Other(error)) => Err(error),
    }
}

/// Why it ended early.
enum Failure {
    Script(CallError),
    Other(Error),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Script(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// A virtual machine for measurements, without a function yet.
fn start(
    args: &LuaArgs,
    script: &Script,
    opened: &ScriptStore,
    is_compiled: bool,
) -> Result<FunctionBench, Error> {
    let (directories, limits) = (args.procedures.as_slice(), Limits::default());
    let (vm, _failed) =
        procedures::start_vm_of(script.dialect, &opened.store, directories, limits)?;
    let options = BenchOptions { is_compiled, in_transaction: args.transaction };
    Ok(FunctionBench::new(vm, options)?)
}

/// Runs the code that defines the function.
fn prepare(
    args: &LuaArgs,
    script: &Script,
    bench: &mut FunctionBench,
    writer: &mut dyn Writer,
) -> Result<(), CallError> {
    let text = String::from_utf8_lossy(&script.text);
    let code = match args.code {
        Some(_) => BenchCode::Body { body: &text, setup: &args.setup },
        None => BenchCode::Chunk(&script.text),
    };
    bench.prepare(&script.name, code, &script.arguments, Some(writer))
}

fn once(
    args: &LuaArgs,
    script: &Script,
    bench: &mut FunctionBench,
    writer: &mut dyn Writer,
) -> Result<(), Failure> {
    prepare(args, script, bench, writer)?;
    bench.sample(BenchSample { is_empty: false, count: 1, before: 0 }, Some(writer))?;
    Ok(())
}

fn run(
    args: &LuaArgs,
    script: &Script,
    machines: [&mut FunctionBench; 2],
    mut writer: Box<dyn Writer>,
) -> Result<Measurement, Failure> {
    let [compiled, interpreted] = machines;
    prepare(args, script, compiled, &mut *writer)?;
    prepare(args, script, interpreted, &mut *writer)?;
    let plan = Plan { samples: args.time.time(), warm_up: args.warm_up.time(), naive: args.naive };
    let writer = RefCell::new(writer);
    let [mut compiled, mut interpreted] =
        [compiled, interpreted].map(|bench| Lent { bench, writer: &writer });
    let mut measured = measure(&mut compiled, &mut interpreted, &plan)?;
    if let Some(naive) = &mut measured.naive {
        naive.process = process(args, script)?.map(|time| time.as_nanos() as f64);
    }
    Ok(measured)
}

fn report(args: &LuaArgs, script: &Script, measured: Measurement) -> Result<(), Failure> {
    let machine = Machine::look();
    let warnings = Warning::all(&measured, &machine);
    let (name, dialect) = (script.name.clone(), script.dialect.name.to_owned());
    let report = Report { name, dialect, machine, measured, warnings };
    let mut out = io::stdout().lock();
    let written = match args.json {
        true => writeln!(out, "{}", report.json()),
        false => write!(out, "{report}"),
    };
    Ok(written.and_then(|()| out.flush()).map_err(Error::Stdout)?)
}

/// The time of a process that makes one call; `None` if the call fails.
fn process(args: &LuaArgs, script: &Script) -> Result<Option<Time>, Error> {
    const CANNOT_START: &str = "cannot start the process of --naive";
    let failed = |source| Error::Io { what: CANNOT_START, source };
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["bench", "lua", "--once", "--dialect", script.dialect.name]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if args.transaction {
        command.arg("--transaction");
    }
    for directory in &args.procedures {
        command.arg("--procedures").arg(directory);
    }
    for dictionary in &args.dictionaries {
        command.arg("--shdict").arg(dictionary.to_string());
    }
    match &args.code {
        Some(code) => {
            command.args([format!("-e={code}"), format!("--setup={}", args.setup)]).args(&args.file)
        }
        None => command.arg("-"),
    };
    command.args(&args.args);
    let began = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take()
        && args.code.is_none()
    {
        stdin.write_all(&script.text).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    // A failed call has no time to report: the function may lack its records in the process's own, empty store.
    Ok(status.success().then(|| began.elapsed()))
}

/// A virtual machine, and the writer that it shares with another.
struct Lent<'a> {
    bench: &'a mut FunctionBench,
    writer: &'a RefCell<Box<dyn Writer>>,
}

impl Subject for Lent<'_> {
    type Error = CallError;

    fn sample(&mut self, sample: Sample) -> Result<Time, CallError> {
        let Sample { is_empty, count, before } = sample;
        let mut writer = self.writer.borrow_mut();
        self.bench.sample(BenchSample { is_empty, count, before }, Some(&mut **writer))
    }

    fn take_trace_events(&mut self) -> Vec<TraceEvent> {
        self.bench.take_trace_events().into_iter().map(trace_event).collect()
    }
}

fn trace_event(event: script::TraceEvent) -> TraceEvent {
    let what = match event.what {
        script::TraceOutcome::Compiled { link } => TraceOutcome::Compiled { link },
        script::TraceOutcome::Aborted { place, reason } => TraceOutcome::Aborted { place, reason },
        script::TraceOutcome::Stitched => TraceOutcome::Stitched,
        script::TraceOutcome::Flushed => TraceOutcome::Flushed,
    };
    TraceEvent { start: event.start, what }
}
