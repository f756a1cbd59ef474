//! Every known shape of runaway, each run as a write, as a read, as an HTTP handler, while a file is
//! loaded, and in a script. Each is ended in time, nothing of it remains, and the VM serves the next
//! call.
//!
//! The time is the thread's processor time, not wall-clock time: on a busy machine a thread may have to
//! wait arbitrarily long. If the machine has nothing else to do, the two are the same; if it has, the test is less
//! strict, but does not fail for that. The watchdog may have to wait as well, and unwinding thousands of `pcall`
//! that call each other takes 50 to 200 ms, whatever the limit. So a shape that took longer than twice a short limit
//! is retried with longer ones; a shape that is not stopped in time takes too long each time.

#[path = "support/shapes.rs"]
mod shapes;
mod support;

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use shapes::{End, SHAPES};
use support::{Bed, limits, request};
use tokaido_script::{CallError, Limits, Value};
use tokaido_store::Store as _;

/// The limits of a call, and when a script is interrupted: a shape has to end within twice one of
/// them.
const LIMITS: [Duration; 3] =
    [Duration::from_millis(80), Duration::from_millis(400), Duration::from_millis(1600)];

/// A shape that runs longer than this is taken for one that nothing stops. It is far above any limit, so that a
/// slow machine is not mistaken for a hanging shape.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// How often a call that does nothing is tried until it is within the limit.
const ATTEMPTS_MAX: usize = 100;

#[derive(Clone, Copy)]
enum Context {
    Write,
    /// A write whose patterns have the default number of steps.
    WriteWithDefaultSteps,
    Read,
    Http,
    Load,
    Script,
}

/// What is wrong with how a shape ended.
enum Wrong {
    /// With a longer limit it may be right.
    TookLong(Duration),
    Other(String),
}

fn limits_of(context: Context, limit: Duration) -> Limits {
    let pattern_steps_max = match context {
        Context::WriteWithDefaultSteps => Limits::default().pattern_steps_max,
        _ => 200_000,
    };
    Limits {
        time: limit,
        script_memory_bytes: Some(limits().memory_bytes),
        pattern_steps_max,
        ..limits()
    }
}

/// The text around the shape; in a script, a transaction.
fn text(context: Context, body: &str) -> String {
    let put = "tx.main:put('runaway', 1)";
    let declared = match context {
        Context::Write | Context::WriteWithDefaultSteps => "tokaido.write(",
        Context::Read => "tokaido.read(",
        Context::Http => "tokaido.http('POST /', ",
        Context::Load => {
            return format!("local _ = (function() {body} end)() return {{}}");
        }
        Context::Script => {
            return format!("tokaido.transact(function(tx) {put} {body} end)");
        }
    };
    let put = if matches!(context, Context::Read) { "" } else { put };
    format!(
        "local tokaido = require 'tokaido'
        return {{ f = {declared}function(tx) {put} {body} end) }}"
    )
}

const AFTER: &str = "local tokaido = require 'tokaido'
    return { f = tokaido.write(function(tx) return tx.main:increment('after') end) }";

/// How much processor time this thread has used.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is a local variable.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn in_time<T>(limit: Duration, run: impl FnOnce() -> T) -> Result<T, Wrong> {
    let start = processor_time();
    let result = run();
    let took = processor_time() - start;
    if took > 2 * limit { Err(Wrong::TookLong(took)) } else { Ok(result) }
}

/// A bed with the shape in it. If the shape runs during loading, it has ended.
fn bed_of(context: Context, limit: Duration, end: End, body: &str) -> Result<Bed, Wrong> {
    let text = text(context, body);
    let files: &[(&str, &str)] = match context {
        Context::Script => &[("after", AFTER)],
        _ => &[("m", &text), ("after", AFTER)],
    };
    let load = || Bed::with_limits(files, limits_of(context, limit));
    if !matches!(context, Context::Load) {
        let bed = load();
        return match bed.errors.is_empty() {
            true => Ok(bed),
            false => Err(Wrong::Other(format!("{:?}", bed.errors))),
        };
    }
    let bed = in_time(limit, load)?;
    let [error] = &bed.errors[..] else {
        return Err(Wrong::Other(format!("loaded: {:?}", bed.errors)));
    };
    let error = error.to_string();
    if end == End::Stopped && !error.contains("longer than the time limit") {
        return Err(Wrong::Other(error));
    }
    Ok(bed)
}

/// Runs the shape as a script, which is interrupted after the limit.
fn run_script(
    bed: &mut Bed,
    limit: Duration,
    body: &str,
) -> Result<Result<Value, CallError>, Wrong> {
    let interrupt = bed.vm.interrupt();
    let interrupter = thread::spawn({
        let interrupt = interrupt.clone();
        move || {
            thread::sleep(limit);
            interrupt.raise();
        }
    });
    let mut writer = bed.store.writer().unwrap();
    let script = text(Context::Script, body);
    let outcome =
        in_time(limit, || bed.vm.run_script("shape", script.as_bytes(), &[], Some(&mut *writer)));
    interrupter.join().unwrap();
    interrupt.clear();
    outcome.map(|result| result.map(|_| Value::Nil))
}

/// Runs a shape; gives what is wrong with how it ended, or nothing.
fn run(context: Context, limit: Duration, end: End, body: &str) -> Result<(), Wrong> {
    let mut bed = bed_of(context, limit, end, body)?;
    if !matches!(context, Context::Load) {
        // Twice, since the first run may leave something behind; not needed in each context.
        let times = if matches!(context, Context::Write | Context::Script) { 2 } else { 1 };
        for _ in 0..times {
            let outcome = match context {
                Context::Script => run_script(&mut bed, limit, body)?,
                Context::Http => {
                    in_time(limit, || bed.http("m.f", &request("POST", "/")).map(|_| Value::Nil))?
                }
                _ => in_time(limit, || bed.run())?,
            };
            match outcome {
                Err(CallError::TimeLimit { .. }) if !matches!(context, Context::Script) => {}
                Err(CallError::Interrupted) if matches!(context, Context::Script) => {}
                Err(_) if end == End::Refused => {}
                other => return Err(Wrong::Other(format!("{other:?}"))),
            }
            if bed.stored("runaway").is_some() {
                return Err(Wrong::Other("something of it remains".to_owned()));
            }
        }
    }
    for times in 1..=2 {
        let mut after = bed.call("after.f", &[]);
        // On a busy machine even this may be over its short limit.
        for _ in 0..ATTEMPTS_MAX {
            if !matches!(after, Err(CallError::TimeLimit { .. })) {
                break;
            }
            after = bed.call("after.f", &[]);
        }
        if !matches!(after, Ok(Value::Integer(n)) if n == times) {
            return Err(Wrong::Other(format!("the next call: {after:?}")));
        }
    }
    Ok(())
}

/// Runs a shape on a thread of its own, which is left behind if it hangs.
fn try_shape(context: Context, end: End, body: &'static str) -> Result<(), String> {
    let mut took = Vec::new();
    for limit in LIMITS {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(run(context, limit, end, body)));
        match receiver.recv_timeout(HANGS_AFTER) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Wrong::TookLong(time))) => took.push(time),
            Ok(Err(Wrong::Other(why))) => return Err(why),
            Err(RecvTimeoutError::Timeout) => return Err("hangs".to_owned()),
            Err(RecvTimeoutError::Disconnected) => return Err("panicked".to_owned()),
        }
    }
    Err(format!("took {took:?} of the processor, at limits of {LIMITS:?}"))
}

fn run_all(context: Context) {
    let mut wrong = Vec::new();
    for (name, end, body) in SHAPES {
        // No transaction is open while a file is loaded.
        if matches!(context, Context::Load) && body.contains("tx.") {
            continue;
        }
        if matches!(context, Context::WriteWithDefaultSteps) && !body.contains("string.") {
            continue;
        }
        if let Err(why) = try_shape(context, *end, body) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), SHAPES.len(), wrong.join("\n"));
}

#[test]
fn each_shape_is_ended_in_a_write() {
    run_all(Context::Write);
}

#[test]
fn each_shape_with_strings_is_ended_with_the_steps_of_the_default() {
    run_all(Context::WriteWithDefaultSteps);
}

#[test]
fn each_shape_is_ended_in_a_read() {
    run_all(Context::Read);
}

#[test]
fn each_shape_is_ended_in_a_handler_of_http() {
    run_all(Context::Http);
}

#[test]
fn each_shape_is_ended_while_a_file_is_loaded() {
    run_all(Context::Load);
}

#[test]
fn each_shape_is_ended_in_a_script_that_is_interrupted() {
    run_all(Context::Script);
}
