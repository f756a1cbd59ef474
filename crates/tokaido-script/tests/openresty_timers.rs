//! Timers of OpenResty's Lua, as the program that runs a virtual machine sees them.

use std::{sync::Arc, time::Duration};

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Language as _, Limits, Lua, Runtime, Source, Sources,
    Timer, Transaction,
};
use tokaido_store::{Store, tree};

struct Bed {
    runtime: Box<dyn Runtime>,
    store: Arc<dyn Store>,
    _directory: tempfile::TempDir,
}

const REQUEST: HttpRequest<'static> = HttpRequest {
    method: "GET",
    path: "/",
    query: "",
    parameters: &[],
    headers: &[],
    body: b"",
    is_1_1: true,
    client: None,
    server: None,
    began_ms: 0.0,
    may_wait: true,
    may_stream: false,
    target: "/",
};

impl Bed {
    fn new(files: &[(&str, &str)], limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(tree::open(directory.path(), tree::Options::default()).unwrap());
        let mut sources = Sources::default();
        // With another dialect beside it, so that the timer's VM has to be found.
        for (module, text, dialect) in [("other", "return {}", "tokaido")]
            .into_iter()
            .chain(files.iter().map(|&(module, text)| (module, text, "ngx")))
        {
            sources.add(Source {
                module: module.to_owned(),
                path: format!("{module}.lua").into(),
                text: text.as_bytes().into(),
                dialect: Some(dialect.to_owned()),
                settings: Vec::new(),
            });
        }
        let (runtime, errors) = Lua::default().start(&store, &sources, limits).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { runtime, store, _directory: directory }
    }

    fn call(&mut self, handler: &str) -> Result<String, CallError> {
        let id = self.runtime.find(handler.as_bytes()).unwrap();
        let mut snapshot = self.store.snapshot().unwrap();
        let scope = Transaction::Read(&mut *snapshot).into();
        let mut response = HttpResponse::default();
        let called = self.runtime.call_http(id, scope, &REQUEST, &mut response);
        called.map(|()| String::from_utf8(response.body).unwrap())
    }

    /// Runs a timer to its end; gives how often it waited.
    fn run(&mut self, timer: &Timer) -> Result<usize, CallError> {
        let mut snapshot = self.store.snapshot().unwrap();
        let mut response = HttpResponse::default();
        let (mut slot, mut waits) = (None, 0);
        loop {
            let scope = Transaction::Read(&mut *snapshot).into();
            self.runtime.run_timer(timer, slot, scope, &REQUEST, &mut response)?;
            let Some(waiting) = response.waiting.take() else { return Ok(waits) };
            assert!(self.runtime.has_timer(timer.number));
            (slot, waits) = (Some(waiting.slot), waits + 1);
            std::thread::sleep(waiting.time);
        }
    }

    fn one_timer(&mut self) -> Timer {
        let mut timers = self.runtime.take_timers();
        assert_eq!(timers.len(), 1);
        timers.remove(0)
    }
}

const COUNTS: (&str, &str) = (
    "counts",
    "-- route: /counts\nngx.print(ngx.timer.pending_count(), ' ', ngx.timer.running_count(), ' ', told)",
);

#[test]
fn a_timer_is_given_once_with_who_made_it_and_runs_once() {
    let make =
        "-- route: /make\nngx.timer.at(0.25, function(p, x) ngx.sleep(0.001) told = x end, 7)";
    let mut bed = Bed::new(&[("make", make), COUNTS], Limits::default());
    bed.call("make").unwrap();
    let timer = bed.one_timer();
    assert_eq!((timer.delay, timer.name()), (Duration::from_millis(250), "make"));
    assert!(bed.runtime.take_timers().is_empty() && bed.runtime.has_timer(timer.number));
    assert_eq!(bed.call("counts").unwrap(), "1 0 nil");
    assert_eq!(bed.run(&timer).unwrap(), 1);
    assert_eq!(bed.call("counts").unwrap(), "0 0 7");
    assert!(!bed.runtime.has_timer(timer.number));
}

#[test]
fn a_timer_that_is_repeated_is_a_new_one_each_time_until_its_program_is_over() {
    let worker = "-- phase: init_worker\ntold = ''
        ngx.timer.every(2, function(p) told = told .. tostring(p) .. ' ' end)";
    let mut bed = Bed::new(&[("worker", worker), COUNTS], Limits::default());
    let first = bed.one_timer();
    assert_eq!((first.maker.as_deref(), first.name()), (None, "init_worker"));
    bed.run(&first).unwrap();
    let second = bed.one_timer();
    assert_eq!((second.delay, second.number != first.number), (Duration::from_secs(2), true));
    bed.runtime.retire();
    bed.run(&second).unwrap();
    assert!(bed.runtime.take_timers().is_empty());
    assert_eq!(bed.call("counts").unwrap(), "0 0 false true ");
}

#[test]
fn a_timer_that_is_never_run_keeps_nothing() {
    let make = "-- route: /make\ncount = (count or 0) + 1 local held = ('x'):rep(2^20) .. count
        ngx.timer.at(0, function() ngx.log(ngx.ERR, #held) end)";
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut bed = Bed::new(&[("make", make)], limits);
    for _ in 0..100 {
        bed.call("make").unwrap();
        let timer = bed.one_timer();
        bed.runtime.abandon_timer(timer.number, None);
    }
}

#[test]
fn a_timer_that_fails_or_is_given_up_runs_no_more() {
    let make = "-- route: /make\nngx.timer.at(0, function() error('broken') end)
        ngx.timer.at(0, function() while true do end end)
        ngx.timer.at(0, function() ngx.sleep(1) end) ngx.timer.at(0, function() end)";
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let mut bed = Bed::new(&[("make", make), COUNTS], limits);
    bed.call("make").unwrap();
    let timers = bed.runtime.take_timers();
    let error = bed.run(&timers[0]).unwrap_err();
    assert!(matches!(&error, CallError::Raised { message, .. } if message.ends_with("broken")));
    let error = bed.run(&timers[1]).unwrap_err();
    assert!(matches!(&error, CallError::TimeLimit { name, .. } if name == "make"), "{error}");
    let mut snapshot = bed.store.snapshot().unwrap();
    let mut response = HttpResponse::default();
    let scope = Transaction::Read(&mut *snapshot).into();
    bed.runtime.run_timer(&timers[2], None, scope, &REQUEST, &mut response).unwrap();
    let slot = response.waiting.take().unwrap().slot;
    assert_eq!(bed.call("counts").unwrap(), "1 1 nil");
    bed.runtime.abandon_timer(timers[2].number, Some(slot));
    bed.runtime.abandon_timer(timers[3].number, None);
    assert_eq!(bed.call("counts").unwrap(), "0 0 nil");
}

#[test]
fn a_virtual_machine_that_met_its_memory_limit_has_no_timers_but_those_of_its_files() {
    let worker = "-- phase: init_worker\nngx.timer.at(1, function() told = 'of the worker' end)";
    let greedy =
        "-- route: /greedy\nngx.timer.at(0, function() end) local t = string.rep('x', 2 ^ 25)";
    let limits = Limits { memory_bytes: 16 << 20, ..Limits::default() };
    let mut bed = Bed::new(&[("worker", worker), ("greedy", greedy), COUNTS], limits);
    let lost = bed.one_timer();
    bed.runtime.retire();
    bed.call("greedy").unwrap_err();
    assert!(!bed.runtime.has_timer(lost.number));
    let timer = bed.one_timer();
    assert_eq!(timer.maker, None);
    bed.run(&timer).unwrap();
    assert_eq!(bed.call("counts").unwrap(), "0 0 of the worker");
}

#[test]
fn there_are_as_many_as_the_limits_say() {
    let make = "-- route: /make\nlocal made = 0
        while ngx.timer.at(0, function() ngx.sleep(1) end) do made = made + 1 end ngx.print(made)";
    let limits = Limits { timers_pending_max: 3, timers_running_max: 2, ..Limits::default() };
    let mut bed = Bed::new(&[("make", make), COUNTS], limits);
    assert_eq!(bed.call("make").unwrap(), "3");
    let mut waiting = 0;
    for timer in bed.runtime.take_timers() {
        let mut snapshot = bed.store.snapshot().unwrap();
        let mut response = HttpResponse::default();
        let scope = Transaction::Read(&mut *snapshot).into();
        bed.runtime.run_timer(&timer, None, scope, &REQUEST, &mut response).unwrap();
        waiting += usize::from(response.waiting.is_some());
    }
    assert_eq!((waiting, &*bed.call("counts").unwrap()), (2, "0 2 nil"));
}
