//! Handlers of Lua and Ruby over the wire: ours, those of nginx and of Apache that we run as they are, and
//! the servers that they were written for.

use super::{
    load::{self, Sample},
    peers::Peer,
    scenarios::{ROUNDS, Scenario, Unit},
};
use crate::failure::Outcome;

/// Where each handler answers.
const HELLO: &str = "/bench/hello";
const NGX_HELLO: &str = "/bench/ngx/hello";
const NGX_ECHO: &str = "/bench/ngx/echo";
const RUBY_HELLO: &str = "/bench/ruby/hello";
const MOD_MRUBY_HELLO: &str = "/bench/mod_mruby/hello";

/// As long as a sample takes.
const TIME: &str = "-d2s";

/// What makes wrk post a body.
const POST: &str = "crates/tokaido-bench/scripts/post.lua";

pub(super) const SCENARIOS: [Scenario; 4] = [
    by_wrk("hello world from a Ruby route, 100 connections", &BESIDE_LUA, |peer, port| {
        hello(peer, port, RUBY_HELLO)
    }),
    by_wrk("hello world by mod_mruby's rputs, 100 connections", &BESIDE_LUA, |peer, port| {
        hello(peer, port, MOD_MRUBY_HELLO)
    }),
    by_wrk("POST of 1 KiB echoed by ngx.print, 100 connections", &BESIDE_NGINX, |_, port| {
        load::wrk(port, NGX_ECHO, &["-t1", "-c100", TIME, "-s", POST, "--", "1024"])
    }),
    by_wrk("POST of 1 MiB echoed by ngx.print, 10 connections", &BESIDE_NGINX, |_, port| {
        load::wrk(port, NGX_ECHO, &["-t1", "-c10", TIME, "-s", POST, "--", "1048576"])
    }),
];

const BESIDE_NGINX: [Peer; 2] = [Peer::Tokaido, Peer::Nginx];
const BESIDE_LUA: [Peer; 3] = [Peer::Tokaido, Peer::TokaidoOfLua, Peer::Nginx];

const fn by_wrk(
    name: &'static str,
    subjects: &'static [Peer],
    sample: fn(Peer, u16) -> Outcome<Sample>,
) -> Scenario {
    Scenario {
        name,
        unit: Unit::RequestsPerSecond,
        subjects,
        generator: "wrk",
        rounds: ROUNDS,
        fill: |_| Ok(()),
        sample,
    }
}

/// From ours by the handler at `path`, from others by their own.
fn hello(peer: Peer, port: u16, path: &str) -> Outcome<Sample> {
    let path = match peer {
        Peer::Nginx => NGX_HELLO,
        Peer::TokaidoOfLua => HELLO,
        _ => path,
    };
    load::wrk(port, path, &["-t1", "-c100", TIME])
}
