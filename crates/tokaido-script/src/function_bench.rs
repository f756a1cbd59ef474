//! Measures a Lua function, and records what the compiler does meanwhile. The loop that calls the function is in Lua,
//! too, so that the function is timed as other Lua code would see it.

use std::time::{Duration, Instant};

use mlua::{Function, Table, chunk::ChunkMode};
use tokaido_store::Writer;

use crate::{
    CallError, Interrupt, RuntimeError, Value, Vm, state::LuaState, vm::cannot_start,
    vm_script::compile_script,
};

const PRELUDE: &str = include_str!("../lua/bench.lua");

/// How a VM is measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct BenchOptions {
    /// Whether the JIT compiler is on.
    pub is_compiled: bool,
    /// In the native dialect: whether each sample is one write transaction, which the function gets as its second
    /// argument. In dialects whose scripts are transactions it is one anyway.
    pub in_transaction: bool,
}

/// The code whose function is timed.
#[derive(Clone, Copy, Debug)]
pub enum BenchCode<'a> {
    /// A chunk that returns the function.
    Chunk(&'a [u8]),
    /// The body of the function, which may be an expression. It has the number of the call as `i`, and the transaction,
    /// if there is one, as `tx`. `setup` is run once, before.
    Body {
        /// The body.
        body: &'a str,
        /// The code before the function.
        setup: &'a str,
    },
}

/// One sample: how many calls are timed, and how many come before.
#[derive(Clone, Copy, Debug)]
pub struct BenchSample {
    /// Whether to call an empty function instead of the measured one, to find the cost of the loop itself.
    pub is_empty: bool,
    /// Calls that are timed.
    pub count: u64,
    /// Untimed calls just before them, whose garbage is not collected.
    pub before: u64,
}

/// Something that the compiler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Where the trace began, as `file:line`.
    pub start: String,
    /// What it did.
    pub what: TraceOutcome,
}

/// How a trace ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceOutcome {
    /// It is machine code, whose end is linked to what LuaJIT calls this: `loop`, `root`, `interpreter`, …
    Compiled {
        /// LuaJIT's name of the link.
        link: String,
    },
    /// It was aborted.
    Aborted {
        /// At this `file:line`.
        place: String,
        /// For this reason.
        reason: String,
    },
    /// It begins after a call of a function that cannot be compiled, where the trace before it ended.
    Stitched,
    /// All machine code was thrown away.
    Flushed,
}

/// A VM with a function to be timed.
pub struct FunctionBench {
    vm: Vm,
    name: String,
}

impl FunctionBench {
    /// Takes a VM to measure in. It has no function yet.
    ///
    /// # Errors
    /// If the VM has no memory left.
    pub fn new(vm: Vm, options: BenchOptions) -> Result<Self, RuntimeError> {
        load_prelude(&vm.state, options).map_err(|error| cannot_start(&error))?;
        Ok(Self { vm, name: String::new() })
    }

    /// What stops it.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.vm.interrupt()
    }

    /// Runs the code, which must return the function. `name` is the chunk's name in messages, `arguments` are `...`.
    ///
    /// # Errors
    /// See [`CallError`]. Also if it returns no function.
    pub fn prepare(
        &mut self,
        name: &str,
        code: BenchCode<'_>,
        arguments: &[Value],
        writer: Option<&mut dyn Writer>,
    ) -> Result<(), CallError> {
        name.clone_into(&mut self.name);
        let run = self.vm.run_as_script(name, arguments, writer, |state| {
            let chunk = match code {
                BenchCode::Chunk(text) => compile_script(state, name, text, arguments)?,
                BenchCode::Body { body, setup } => {
                    let gap = if setup.is_empty() { "" } else { "\n" };
                    let compile = |body: String| {
                        let text = format!("{setup}{gap}return function(i, tx) {body}\nend");
                        compile_script(state, name, text.as_bytes(), arguments)
                    };
                    // First as an expression, so that its value is not thrown away. In parentheses, since a call
                    // would otherwise be a tail call, and the line of the body lost.
                    compile(format!("return ({body}\n)")).or_else(|_| compile(body.to_owned()))?
                }
            };
            bench(state)?.get::<Function>("prepare")?.call(chunk)
        });
        run.map(drop)
    }

    /// Takes one sample, and gives the total time of its calls. There is a full garbage collection before it, that is,
    /// before its untimed calls.
    ///
    /// # Errors
    /// See [`CallError`]: what the function raises.
    ///
    /// # Panics
    /// If nothing was [prepared](Self::prepare).
    pub fn sample(
        &mut self,
        sample: BenchSample,
        writer: Option<&mut dyn Writer>,
    ) -> Result<Duration, CallError> {
        let arguments = [sample.count, sample.before].map(|count| Value::Number(count as f64));
        let function = if sample.is_empty { "of_nothing" } else { "of_function" };
        let results = self.vm.run_as_script(&self.name, &arguments, writer, |state| {
            state.lua().gc_collect()?;
            bench(state)?.get::<Function>(function)
        })?;
        let ns = match results.as_slice() {
            [Value::Number(ns)] => *ns,
            [Value::Integer(ns)] => *ns as f64,
            other => panic!("a sample gave {other:?}"),
        };
        Ok(Duration::from_nanos(ns as u64))
    }

    /// What the compiler has done since the last call.
    pub fn take_trace_events(&mut self) -> Vec<TraceEvent> {
        let take = || -> mlua::Result<Vec<[String; 4]>> {
            bench(&self.vm.state)?.get::<Function>("take_events")?.call(())
        };
        take().unwrap_or_default().into_iter().filter_map(TraceEvent::of).collect()
    }
}

impl TraceEvent {
    fn of([what, start, place, more]: [String; 4]) -> Option<Self> {
        let what = match what.as_str() {
            "compiled" => TraceOutcome::Compiled { link: more },
            "aborted" => TraceOutcome::Aborted { place, reason: more },
            "stitched" => TraceOutcome::Stitched,
            "flushed" => TraceOutcome::Flushed,
            _ => return None,
        };
        Some(Self { start, what })
    }
}

fn bench(state: &LuaState) -> mlua::Result<Table> {
    state.core().get("bench")
}

fn load_prelude(state: &LuaState, options: BenchOptions) -> mlua::Result<()> {
    let lua = state.lua();
    let began = Instant::now();
    let now = lua.create_function(move |_, ()| Ok(began.elapsed().as_nanos() as f64))?;
    let prelude = lua.load(PRELUDE).set_name("=[tokaido]").set_mode(ChunkMode::Text);
    let main = lua.current_thread();
    prelude.call((state.core(), now, main, options.is_compiled, options.in_transaction))
}
