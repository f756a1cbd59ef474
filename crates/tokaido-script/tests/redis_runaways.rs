//! Client scripts that do not end: each is stopped in time, leaves nothing, and the VM serves the next
//! call. The shapes are those of procedures; `runaway_shapes.rs` explains how the time is measured.

#[path = "support/shapes.rs"]
mod shapes;
mod support;

use std::time::Duration;

use shapes::{End, SHAPES};
use support::redis::RedisBed;
use tokaido_script::{CallError, Limits, Value};

/// A shape has to end within twice one of these.
const LIMITS: [Duration; 3] =
    [Duration::from_millis(80), Duration::from_millis(400), Duration::from_millis(1600)];

/// What procedures have and client scripts do not.
const OF_PROCEDURES: [&str; 4] = ["tx.", "require", "print(", "os.date"];

/// Shapes that are not runaways here: a table is not asked for the text of an error, and `pcall` is
/// a Lua function.
const END_THEMSELVES: [&str; 4] = [
    "an error whose text never ends",
    "an error whose message never ends",
    "tostring as __tostring of an error",
    "pcalls of pcall",
];

/// How often a call that does nothing is tried until it is within its short limit.
const ATTEMPTS_MAX: usize = 100;

/// How much processor time this thread has used.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is a local variable.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How a shape is run: as a script or as a function.
type Run = fn(&mut RedisBed, &str) -> Result<Value, CallError>;

/// Runs a shape; tells whether it ended in time, or what is wrong with how it ended.
fn run(how: Run, limit: Duration, end: End, body: &str) -> Result<bool, String> {
    let limits = Limits {
        time: limit,
        memory_bytes: 32 << 20,
        pattern_steps_max: 200_000,
        ..Limits::default()
    };
    let mut bed = RedisBed::new(limits);
    let script = format!("redis.call('SET', 'k', 'v') {body}");
    let start = processor_time();
    match how(&mut bed, &script) {
        Err(CallError::TimeLimit { .. }) => {}
        Err(_) if end == End::Refused => {}
        other => return Err(format!("{other:?}")),
    }
    let took = processor_time() - start;
    if bed.stored("k").is_some() {
        return Err("something of it remains".to_owned());
    }
    for _ in 0..ATTEMPTS_MAX {
        match how(&mut bed, "return redis.call('SET', 'k', 'v').ok") {
            Ok(Value::String(_)) => return Ok(took <= 2 * limit),
            Err(CallError::TimeLimit { .. }) => {}
            other => return Err(format!("the next script: {other:?}")),
        }
    }
    Err("the next scripts take too long".to_owned())
}

#[test]
fn each_shape_is_ended() {
    check(RedisBed::run, 1);
}

/// Functions run like scripts, so some of the shapes suffice.
#[test]
fn shapes_in_functions_are_ended() {
    check(RedisBed::run_function, 5);
}

#[test]
fn what_is_loaded_is_ended() {
    let limits = Limits { time: LIMITS[0], memory_bytes: 32 << 20, ..Limits::default() };
    let mut bed = RedisBed::new(limits);
    let shapes = [
        "while true do end",
        "::again:: goto again",
        "local function f() return f() end f()",
        "local t, i = {}, 0 while true do i = i + 1 t[i] = {} end",
        "local s = 'x' while true do s = s .. s end",
        "local i = 0 while true do i = i + 1 redis.register_function('f' .. i, function() end) end",
        "while true do redis.log(redis.LOG_DEBUG, 'x') end",
        "redis.register_function('f', function() end) while true do end",
        "local t = ('x'):rep(5000) while true do t:find('x*x*x*x*y') end",
    ];
    for body in shapes {
        assert!(bed.load(body).is_err(), "{body}");
        assert_eq!(bed.run_function("return 7").unwrap(), Value::Integer(7), "{body}");
    }
}

/// Runs every shape whose index is a multiple of `step`.
fn check(how: Run, step: usize) {
    let mut wrong = Vec::new();
    let is_runaway = |(name, _, body): &&(&str, End, &str)| {
        let is_of_procedures = OF_PROCEDURES.iter().any(|missing| body.contains(missing));
        !is_of_procedures && !END_THEMSELVES.contains(name)
    };
    let shapes: Vec<_> = SHAPES.iter().filter(is_runaway).collect();
    assert!(shapes.len() >= 80, "{}", shapes.len());
    for (name, end, body) in shapes.into_iter().step_by(step) {
        let mut results = LIMITS.iter().map(|&limit| run(how, limit, *end, body));
        match results.find(|result| *result != Ok(false)) {
            Some(Ok(_)) => {}
            Some(Err(why)) => wrong.push(format!("{name}: {why}")),
            None => wrong.push(format!("{name}: takes too long")),
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A script that was refused memory may reach its time limit before it is over.
#[test]
fn what_meets_both_limits_is_nothing_to_the_next_script() {
    for time_ms in (100..600).step_by(50) {
        let time = Duration::from_millis(time_ms);
        let limits = Limits { time, memory_bytes: 256 << 20, ..Limits::default() };
        let mut bed = RedisBed::new(limits);
        bed.run("local t = {} for i = 1, 1e9 do t[i] = {} end").unwrap_err();
        let next = (0..ATTEMPTS_MAX).map(|_| bed.run("return 1"));
        let next: Vec<_> = next.take_while(|next| next.is_err()).collect();
        let is_slow = |next: &Result<_, _>| matches!(next, Err(CallError::TimeLimit { .. }));
        assert!(next.len() < ATTEMPTS_MAX && next.iter().all(is_slow), "{time_ms} ms: {next:?}");
    }
}
