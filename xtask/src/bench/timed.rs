//! Loops of Lua and Ruby that time themselves, by what the processor worked: no client and no connection is
//! part of the figure.

use std::path::Path;

use tokaido_bench::timing;

use super::{
    load,
    peers::Peer,
    report::{Measured, Samples},
    scenarios::{ROUNDS, Unit},
};
use crate::{
    failure::{Failure, Outcome},
    process::{self, Command},
    server::Server,
};

const NGINX: &str = "nginx with Lua";

/// One loop, and the ways to run it.
pub(super) struct Loop {
    pub(super) name: &'static str,
    /// Ours first.
    ways: &'static [Way],
}

/// A way to run a loop.
struct Way {
    name: &'static str,
    run: Run,
}

#[derive(Clone, Copy)]
enum Run {
    /// A request to a server, the answer to which ends with the seconds.
    Request(Peer, &'static str, &'static str),
    /// A file for `tokaido run`, which prints them.
    Script(&'static str),
    /// A file for another program, which does.
    Program(&'static str, &'static str),
}

/// What is run, with whatever has to run meanwhile.
enum Running {
    Server(Server, &'static str, &'static str),
    Command(Command),
}

pub(super) const LOOPS: [Loop; 7] = [
    Loop {
        name: "fib(37), timed by itself",
        ways: &[
            Way { name: "`tokaido run`", run: Run::Script("crates/tokaido-bench/scripts/fib.lua") },
            ours("a procedure", "POST", "/v1/call/bench.timed_fib"),
            ours("a module of a handler of ngx", "GET", "/bench/ngx/fib"),
            ours("a handler of ngx itself", "GET", "/bench/ngx/fib_inside"),
            ours("handle(r) of mod_lua", "GET", "/bench/mod_lua/fib"),
            ours("a function of Kyoto Tycoon's", "POST", "/v1/call/fib_kyoto"),
            ours("a function of Tokyo Tyrant's", "POST", "/v1/call/fib_tyrant"),
            of_nginx("nginx with Lua, a module", "/bench/ngx/fib"),
            of_nginx("nginx with Lua, a handler itself", "/bench/ngx/fib_inside"),
            Way {
                name: "Apache with mod_lua",
                run: Run::Request(Peer::Apache, "GET", "/bench/mod_lua/fib"),
            },
        ],
    },
    Loop {
        name: "fib(37) of Ruby, timed by itself",
        ways: &[
            ours("a procedure of Ruby", "POST", "/v1/call/bench_ruby.timed_fib"),
            Way { name: "`tokaido run`", run: Run::Script("crates/tokaido-bench/scripts/fib.rb") },
            Way {
                name: "mruby",
                run: Run::Program("mruby", "crates/tokaido-bench/scripts/fib.rb"),
            },
        ],
    },
    Loop {
        name: "10^7 times get of 64 bytes, timed by itself",
        ways: &[
            ours("a procedure of Ruby", "POST", "/v1/call/bench_ruby.timed_gets"),
            ours("a procedure of Lua", "POST", "/v1/call/bench.timed_gets"),
        ],
    },
    Loop {
        name: "10^7 times ngx.re.find, timed by itself",
        ways: &[ours("Tokaido", "GET", "/bench/ngx/re"), of_nginx(NGINX, "/bench/ngx/re")],
    },
    Loop {
        name: "10^6 times get of ngx.shared, timed by itself",
        ways: &[
            ours("Tokaido", "GET", "/bench/ngx/dict?get"),
            of_nginx(NGINX, "/bench/ngx/dict?get"),
        ],
    },
    Loop {
        name: "10^6 times set of ngx.shared, timed by itself",
        ways: &[
            ours("Tokaido", "GET", "/bench/ngx/dict?set"),
            of_nginx(NGINX, "/bench/ngx/dict?set"),
        ],
    },
    Loop {
        name: "10^6 times incr of ngx.shared, timed by itself",
        ways: &[
            ours("Tokaido", "GET", "/bench/ngx/dict?incr"),
            of_nginx(NGINX, "/bench/ngx/dict?incr"),
        ],
    },
];

const fn ours(name: &'static str, method: &'static str, path: &'static str) -> Way {
    Way { name, run: Run::Request(Peer::Tokaido, method, path) }
}

const fn of_nginx(name: &'static str, path: &'static str) -> Way {
    Way { name, run: Run::Request(Peer::Nginx, "GET", path) }
}

impl Loop {
    /// Runs it by each way in turn.
    pub(super) fn measure(&self, tokaido: &Path) -> Outcome<Measured> {
        let mut measured = Measured::of(self.name, Unit::Seconds);
        let mut running = Vec::new();
        for way in self.ways {
            match way.run.start(tokaido)? {
                Some(started) => running.push((way.name, started)),
                None => measured.missing.push(way.name),
            }
        }
        let samples =
            timing::interleave(running.len(), ROUNDS, |index| running[index].1.seconds())?;
        let samples = running.iter().zip(samples);
        // What the loop has measured is the processor's time already.
        measured.samples = samples
            .map(|(&(subject, _), figures)| Samples { subject, figures, costs: Vec::new() })
            .collect();
        Ok(measured)
    }
}

impl Run {
    /// `None` if the peer is not installed.
    fn start(self, tokaido: &Path) -> Outcome<Option<Running>> {
        Ok(match self {
            Self::Request(peer, method, path) if peer.is_installed() => {
                Some(Running::Server(peer.start(tokaido)?, method, path))
            }
            Self::Request(..) => None,
            Self::Script(path) => Some(Running::Command(Command::new(tokaido, ["run", path]))),
            Self::Program(program, path) => {
                let command = || Running::Command(Command::new(program, [path]));
                process::is_installed(program).then(command)
            }
        })
    }
}

impl Running {
    fn seconds(&self) -> Outcome<f64> {
        match self {
            Self::Server(server, method, path) => {
                load::seconds_in_answer(server.port(), method, path)
            }
            Self::Command(command) => {
                let output = command.output()?;
                load::last_number(&output)
                    .ok_or_else(|| Failure::new(format!("{command} printed {output:?}")))
            }
        }
    }
}
