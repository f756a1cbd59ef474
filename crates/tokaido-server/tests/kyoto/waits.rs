//! Calls that wait for a condition, and calls that signal one.

use std::thread;

use crate::{call, server};

#[test]
fn a_call_waits_for_another_and_holds_up_nobody() {
    let server = server(|config| config.workers = 1);
    let mut waiting = server.connect();
    let body = "WAIT\tready\nWAITTIME\t25\nkey\tk\n";
    let headers = "content-type: text/tab-separated-values\r\n";
    waiting.send_http("POST /rpc/get", headers, body.as_bytes());
    let mut client = server.connect();
    // The only worker answers others meanwhile. Repeat the signal until it is heard.
    let woken = loop {
        let (status, woken) = call(&mut client, "set", "key\tk\nvalue\tv\nSIGNAL\tready\n");
        assert_eq!(status, 200);
        if woken != "SIGNALED\t0\n" {
            break woken;
        }
    };
    assert_eq!(woken, "SIGNALED\t1\n");
    let response = waiting.response();
    assert_eq!((response.status, response.text()), (200, "value\tv\n"));
}

#[test]
fn a_server_that_stops_waits_for_nobody() {
    let server = server(|_| {});
    let mut waiting = server.connect();
    let headers = "content-type: text/tab-separated-values\r\n";
    waiting.send_http("POST /rpc/void", headers, b"WAIT\tnever\nWAITTIME\t86400\n");
    // Once a later request is answered, the first one has arrived.
    call(&mut server.connect(), "void", "");
    let stopping = thread::spawn(move || server.stop());
    let answer = waiting.text_to_end();
    assert!(answer.is_empty() || answer.contains("503"), "{answer}");
    stopping.join().expect("the server stops");
}
