//! Light threads of `ngx.thread`: what they leave behind once they end.

mod support;

use std::time::Duration;

use support::handlers::{begin, call_waiting, go_on, limited, runtime};
use tokaido_script::Limits;

#[test]
fn threads_that_were_waited_for_or_killed_make_room_for_others() {
    let mut served = runtime(&[(
        "m",
        "-- route: /a
         local first
         for i = 1, 1100 do
           local thread = ngx.thread.spawn(function() ngx.sleep(0) return i end)
           first = first or thread
           if i % 2 == 0 then ngx.thread.kill(thread) else ngx.thread.wait(thread) end
         end
         ngx.say(ngx.thread.wait(first))
         ngx.say(ngx.thread.kill(first))
         ngx.say(pcall(ngx.thread.wait, coroutine.create(print)))
         local threads = {}
         for i = 1, 1000 do threads[i] = ngx.thread.spawn(function() ngx.sleep(0.001) end) end
         ngx.say(pcall(ngx.thread.spawn, print))",
    )]);
    let said = call_waiting(&mut served, "m").1.unwrap();
    let expected = "nilalready waited or killed\nnilalready waited or killed\n\
                    falseattempt to wait on a coroutine that is not a user thread\n\
                    falsea request has at most 1000 light threads\n";
    assert_eq!(said, expected);
}

#[test]
fn a_thread_that_kills_itself_is_over_once_it_waits() {
    let mut served = runtime(&[(
        "m",
        "-- route: /a
         ngx.thread.spawn(function()
           ngx.say(ngx.thread.kill(coroutine.running())) ngx.sleep(0.001) ngx.say('never')
         end)
         ngx.sleep(0.002) ngx.say('over')",
    )]);
    assert_eq!(call_waiting(&mut served, "m").1.unwrap(), "1\nover\n");
}

#[test]
fn a_thread_that_ends_a_phase_does_not_run_in_the_next_one() {
    let mut served = runtime(&[
        (
            "m",
            "-- route: /a\n-- access: access
             local thread = ngx.thread.spawn(function() ngx.sleep(0.001) return 'here' end)
             ngx.say(ngx.thread.wait(thread))",
        ),
        (
            "access",
            "ngx.thread.spawn(function() ngx.sleep(0.001) ngx.exit(ngx.OK) end) ngx.sleep(60)",
        ),
    ]);
    let mut response = begin(&mut served, "m").unwrap();
    while let Some(waiting) = response.waiting.take() {
        assert!(waiting.time < Duration::from_secs(30), "it waits for nothing");
        std::thread::sleep(waiting.time);
        go_on(&mut served, "m", waiting.slot, &mut response).unwrap();
    }
    assert_eq!(response.body, b"truehere\n");
}

#[test]
fn what_a_phase_that_was_ended_has_captured_counts_no_longer() {
    let limits = Limits { response_len_max: 1000, ..Limits::default() };
    let mut served = limited(
        &[
            (
                "m",
                "-- route: /a\n-- access: access\nngx.print(#ngx.location.capture('/inner').body)",
            ),
            (
                "access",
                "ngx.thread.spawn(function() ngx.sleep(0.001) ngx.exit(ngx.OK) end)
                 ngx.location.capture('/inner?wait')",
            ),
            (
                "inner",
                "-- route: /inner
                 ngx.print(('x'):rep(600)) if ngx.var.args then ngx.sleep(1) end",
            ),
        ],
        limits,
    );
    assert_eq!(call_waiting(&mut served, "m").1.unwrap(), "600");
}
