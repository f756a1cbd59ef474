//! Procedures that do not end by themselves, on a server that others use at the same time.

mod common;
#[path = "../../tokaido-script/tests/support/shapes.rs"]
mod shapes;

use std::io::ErrorKind;

use common::{Client, TestServer};
use shapes::{End, SHAPES};

/// One in this many shapes is tried; the tests of the script crate try all of them.
const SAMPLE: usize = 2;

/// How often to run a shape until another client is answered before the shape has ended. On a busy
/// machine, that client may get no processor time within the limit.
const ATTEMPTS_MAX: usize = 10;

/// The numbers of the shapes that run until their limit.
fn sample() -> impl Iterator<Item = usize> {
    (0..SHAPES.len()).filter(|&index| SHAPES[index].1 == End::Stopped).step_by(SAMPLE)
}

fn procedures() -> String {
    let mut text = "local tokaido = require 'tokaido'\nlocal m = {}\n".to_owned();
    for index in sample() {
        let (_, _, body) = SHAPES[index];
        text.push_str(&format!(
            "m.w{index} = tokaido.write(function(tx) tx.main:put('runaway', 1) {body} end)
            m.r{index} = tokaido.read(function(tx) {body} end)
            m.h{index} = tokaido.http('POST /{index}', function(tx) tx.main:put('runaway', 1) {body} end)\n"
        ));
    }
    text + "return m"
}

/// Whether no reply has arrived yet.
fn is_silent(client: &Client) -> bool {
    client.0.set_nonblocking(true).expect("a socket");
    let peeked = client.0.peek(&mut [0]);
    client.0.set_nonblocking(false).expect("a socket");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Runs a shape until others are answered meanwhile. `start` sends it, `end` reads the outcome.
fn others_are_answered(
    server: &TestServer,
    name: &str,
    start: impl Fn(&mut Client),
    end: impl Fn(&mut Client),
) {
    let mut other = server.connect();
    let is_answered = (0..ATTEMPTS_MAX).any(|_| {
        let mut caller = server.connect();
        start(&mut caller);
        other.ask(&["PING"], "+PONG\r\n");
        other.ask(&["GET", "k"], "$1\r\nv\r\n");
        let is_answered = is_silent(&caller);
        // After a shape that writes, this request waits for it to end.
        other.ask(&["SET", "k", "v"], "+OK\r\n");
        end(&mut caller);
        other.ask(&["EXISTS", "runaway"], ":0\r\n");
        is_answered
    });
    assert!(is_answered, "{name}: nobody else is answered meanwhile");
}

#[test]
fn a_runaway_is_ended_and_others_are_answered_meanwhile() {
    let server = TestServer::start_with_lua(&procedures(), |config| config.limits.script_ms = 100);
    server.connect().ask(&["SET", "k", "v"], "+OK\r\n");
    for index in sample() {
        let (name, ..) = SHAPES[index];
        for kind in ["w", "r"] {
            let procedure = format!("t.{kind}{index}");
            let start = |client: &mut Client| client.command(&["FCALL", &procedure, "0"]);
            others_are_answered(&server, name, start, |client| {
                let line = client.read_line();
                assert!(line.contains("its time limit"), "{name}: {line}");
            });
        }
        let line = format!("POST /{index}");
        let start = |client: &mut Client| client.send_http(&line, "", b"");
        others_are_answered(&server, name, start, |client| {
            let response = client.response();
            assert!(response.status >= 500, "{name}: {response:?}");
        });
    }
    server.stop();
}
