//! `tokaido bench`.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Directory, Ran, Script, Server, skip, tokaido, tokaido_with};

/// So that a test takes no longer than necessary.
const BRIEF: [&str; 4] = ["bench", "lua", "--time=50ms", "--warm-up=2s"];

fn lua(arguments: &[&str]) -> Ran {
    tokaido([&BRIEF, arguments].concat())
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn help_is_the_manual() {
    insta::assert_snapshot!("bench", tokaido(["bench", "--help"]).ok());
    for name in ["lua", "net", "suite", "peers", "compare"] {
        insta::assert_snapshot!(format!("bench_{name}"), tokaido(["bench", name, "--help"]).ok());
    }
}

#[test]
fn a_function_is_timed_with_the_jit_on_and_off() {
    let directory = Directory::new();
    let file = directory.write("double.lua", "local by = ... return function(i) return i * by end");
    let ran = lua(&[&file, "2"]);
    let text = ran.ok();
    assert!(text.starts_with(&format!("{file}, dialect tokaido\n")), "{text}");
    for beginning in ["JIT on ", "JIT off ", "loop ", "warm-up ", "traces "] {
        assert!(text.lines().any(|line| line.starts_with(beginning)), "no {beginning} in {text}");
    }
    assert!(!text.contains("What other ways"), "{text}");
    let piped = "return function(i) return i end";
    let ran = tokaido_with([&BRIEF[..], &["--json", "-"]].concat(), piped);
    assert_eq!(json(ran.ok())["name"], "stdin");
}

#[test]
fn what_wrong_ways_would_have_said_stands_beside_it() {
    let ran = lua(&["--naive", "--json", "-e", "tostring(i)"]);
    let report = json(ran.ok());
    let ns = |side: &str, name: &str| report[side][name].as_f64().unwrap();
    // A process takes milliseconds, a call nanoseconds.
    assert!(ns("naive", "process_ns") > 100.0 * ns("jit_on", "median_ns"), "{report}");
    assert!(ns("naive", "cold_call_ns") > 0.0 && ns("naive", "no_collection_ns") > 0.0, "{report}");
    for side in ["jit_on", "jit_off"] {
        assert!(ns(side, "min_ns") <= ns(side, "quartile_low_ns"), "{report}");
        assert!(ns(side, "quartile_low_ns") <= ns(side, "median_ns"), "{report}");
        assert!(ns(side, "median_ns") <= ns(side, "quartile_high_ns"), "{report}");
    }
    // Code that looks like an option also reaches the process; a failing process has no time.
    let ran = lua(&["--naive", "--json", "-e=-i"]);
    assert!(json(ran.ok())["naive"]["process_ns"].is_f64(), "{ran:?}");
    let text = lua(&["--naive", "-e", "tostring(i)"]);
    for way in ["a process that makes one call", "one cold call", "no collection of garbage"] {
        assert!(text.ok().contains(way), "{text:?}");
    }
}

#[test]
fn what_is_not_compiled_is_told_with_its_line() {
    let directory = Directory::new();
    let text = "return function(i)\n  local f = function() return i end\n  return f\nend";
    let file = directory.write("closure.lua", text);
    let ran = lua(&[&file]);
    let told = format!("{file}:2: NYI: making a closure (bytecode FNEW)");
    assert!(ran.ok().contains(&told), "{ran:?}");
}

#[test]
fn what_was_optimised_away_is_told() {
    // On a busy machine a figure may be off, but not every time.
    const TRIES: usize = 20;
    let is_told = || {
        let ran = lua(&["--json", "-e", "local x = math.sqrt(2)"]);
        ran.ok().contains("\"optimised_away\"")
    };
    assert!((0..TRIES).any(|_| is_told()));
}

#[test]
fn functions_of_every_dialect_of_run_are_timed() {
    let bodies = [
        ("tokaido", "i + 1"),
        ("kyototycoon", "__kyototycoon__.db:set('k', i)"),
        ("tokyotyrant", "_put('k', i)"),
        ("ngx", "ngx.re.find('hello, world.', [[\\w+\\.]], 'jo')"),
    ];
    for (dialect, body) in bodies {
        let ran = lua(&["--json", "--dialect", dialect, "-e", body]);
        assert_eq!(json(ran.ok())["dialect"], dialect);
    }
    let ran = lua(&["--dialect=mod_lua", "-e", "1"]);
    assert!(ran.fails(2).contains("serve them with `tokaido serve --mod-lua FILE`"), "{ran:?}");
}

#[test]
fn a_function_may_have_a_transaction() {
    let directory = Directory::new();
    let body = ["--transaction", "-e", "tx.main:put('last', i)"];
    lua(&[&[directory.store().as_str()], &body[..]].concat()).ok();
    let last = tokaido(["get", &directory.store(), "main", "last"]);
    assert!(last.ok().trim().parse::<u64>().unwrap() > 0, "{last:?}");
    let ran = lua(&["--transaction", "--dialect=ngx", "-e", "i"]);
    assert!(ran.fails(2).contains("--transaction is for the dialect tokaido"), "{ran:?}");
}

#[test]
fn a_function_that_fails_ends_it() {
    let ran = lua(&["-e", "error('no more tea')"]);
    assert!(ran.fails(1).contains("(-e):1: no more tea"), "{ran:?}");
    let ran = lua(&["-e", "end"]);
    assert!(ran.fails(1).contains("(-e):"), "{ran:?}");
    let directory = Directory::new();
    let file = directory.write("nothing.lua", "local x = 1");
    let ran = lua(&[&file]);
    assert!(ran.fails(1).contains("must return the function that is to be timed"), "{ran:?}");
    assert_eq!(lua(&["-e", "os.exit(7)"]).code, Some(7));
    assert_eq!(tokaido(["bench", "lua"]).code, Some(2));
}

/// A load that takes no longer than necessary.
fn net(arguments: &[&str]) -> Ran {
    let brief = ["bench", "net", "--time=300ms", "--warm-up=50ms", "--no-ceiling", "-c4", "-k100"];
    tokaido([&brief, arguments].concat())
}

const PROTOCOLS: [&str; 8] = [
    "resp2",
    "resp3",
    "memcached",
    "memcached-meta",
    "memcached-binary",
    "http",
    "kyototycoon",
    "tokyotyrant",
];

/// After all keys were set, every key is found, whatever the protocol; nothing is refused.
#[track_caller]
fn assert_speaks(address: &str, protocol: &str) {
    let has_increment = !matches!(protocol, "http" | "kyototycoon");
    let mix = if has_increment { "get=8,set=2" } else { "get=8,set=1" };
    for pipeline in ["1", "5"] {
        let ran = net(&[
            "--fill",
            "--json",
            "--mix",
            mix,
            "-P",
            pipeline,
            "--protocol",
            protocol,
            address,
        ]);
        let summary = json(ran.ok().lines().last().unwrap());
        assert_eq!(
            (&summary["refusal"], &summary["misses"]),
            (&serde_json::Value::Null, &0.into()),
            "{summary}"
        );
        let answered = |kind: &str| summary["answered"][kind].as_u64().unwrap();
        assert!(answered("get") > answered("set") && answered("set") > 0, "{summary}");
        assert!(summary["server"]["user_s"].is_number(), "{summary}");
    }
    // After deletion, a key is missing.
    let mix = if has_increment { "delete=1,increment=1,get=1" } else { "delete=1,get=1" };
    let ran = tokaido([
        "bench",
        "net",
        "--no-ceiling",
        "-c4",
        "-k100",
        "--json",
        "--mix",
        mix,
        "--requests=600",
        "--warm-up=1ms",
        "--protocol",
        protocol,
        address,
    ]);
    let summary = json(ran.ok().lines().last().unwrap());
    assert_eq!(summary["requests"], 600, "{summary}");
    assert!(summary["misses"].as_u64() > Some(0), "{summary}");
}

#[test]
fn a_unix_socket_is_a_server_too() {
    let directory = Directory::new();
    let _server = Server::start(&directory, &["--sync=os", "--listen=unix:s.sock"]);
    let address = format!("unix:{}", directory.text("s.sock"));
    let ran = net(&["--fill", "--json", &address]);
    let summary = json(ran.ok().lines().last().unwrap());
    assert!(summary["requests"].as_u64() > Some(0) && summary["misses"] == 0, "{summary}");
    assert!(summary["server"]["user_s"].is_number(), "{summary}");
}

#[test]
fn every_protocol_is_spoken_to_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &["--sync=os"]);
    for protocol in PROTOCOLS {
        assert_speaks(&server.address, protocol);
    }
}

/// A server of another kind, killed after the test.
struct Peer {
    child: Child,
    address: String,
}

impl Peer {
    /// Starts a program that takes its port after `port_flag`; `None` if it is not installed.
    fn start(program: &str, arguments: &[&str], port_flag: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(arguments).args([port_flag, &port.to_string()]);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(child) = started else {
            skip(&format!("{program} is not installed"));
            return None;
        };
        let (peer, began) = (Self { child, address: format!("127.0.0.1:{port}") }, Instant::now());
        while std::net::TcpStream::connect(&peer.address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "{program} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn redis_is_spoken_to() {
    let Some(redis) = Peer::start("redis-server", &["--save", ""], "--port") else { return };
    for protocol in ["resp2", "resp3"] {
        assert_speaks(&redis.address, protocol);
    }
}

#[test]
fn memcached_is_spoken_to() {
    let Some(memcached) = Peer::start("memcached", &["-u", "nobody", "-l", "127.0.0.1"], "-p")
    else {
        return;
    };
    for protocol in ["memcached", "memcached-meta", "memcached-binary"] {
        assert_speaks(&memcached.address, protocol);
    }
}

#[test]
fn a_load_is_told_to_a_person_and_to_programs() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let ran = net(&["--fill", "--rate", "500", &server.address]);
    for beginning in
        ["requests ", "time ", "response ", "service ", "generator ", "server ", "share "]
    {
        assert!(
            ran.ok().lines().any(|line| line.starts_with(beginning)),
            "no {beginning} in {ran:?}"
        );
    }
    let ran = net(&["--csv", &server.address]);
    let lines: Vec<&str> = ran.ok().lines().collect();
    assert!(lines.len() >= 2 && lines[0].starts_with("second,counts,requests,"), "{ran:?}");
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{ran:?}");
    let ran =
        tokaido(["bench", "net", "--time=300ms", "--warm-up=50ms", "--json", &server.address]);
    let objects: Vec<_> = ran.ok().lines().map(json).collect();
    let (summary, intervals) = objects.split_last().unwrap();
    assert!(summary["ceiling"].as_f64() > Some(0.0) && summary["type"] == "summary", "{ran:?}");
    assert!(
        intervals.iter().all(|interval| interval["type"] == "interval") && !intervals.is_empty(),
        "{ran:?}"
    );
}

#[test]
fn a_command_is_sent_in_place_of_a_mix() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let command = "--command=ZADD board {random} {key}:{value}";
    let ran = net(&[command, "--values=3", "--json", &server.address]);
    let summary = ran.ok().lines().last().map(json).unwrap();
    assert_eq!(summary["command"], "ZADD board {random} {key}:{value}");
    assert!(summary["mix"].is_null() && summary["answered"].is_null() && summary["refused"] == 0);
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"ZCOUNT board 0 99\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let members: u32 = answer.trim_end().trim_start_matches(':').parse().unwrap();
    assert!(members > 1, "{answer}");
    let other = net(&["--protocol=http", "--command=PING", &server.address]);
    assert!(other.fails(1).contains("http has no commands of words"), "{other:?}");
    assert_eq!(net(&["--command= "]).code, Some(2));
}

#[test]
fn a_password_is_told_to_a_server() {
    let directory = Directory::new();
    let server = Server::start(&directory, &["--password=open sesame"]);
    for protocol in ["resp2", "resp3", "http"] {
        net(&["--fill", "--password=open sesame", "--protocol", protocol, &server.address]).ok();
    }
    let ran = net(&["--password=wrong", &server.address]);
    assert!(ran.fails(1).contains("does not let us in: WRONGPASS"), "{ran:?}");
    let ran = net(&["--fill", &server.address]);
    assert!(ran.fails(1).contains("the server refuses to set keys: NOAUTH"), "{ran:?}");
}

#[test]
fn what_cannot_be_measured_is_told() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ran = net(&[&nobody]);
    assert!(ran.fails(3).contains("is a server running there?"), "{ran:?}");
    let ran = net(&["--protocol=http", "--mix=increment", &nobody]);
    assert!(ran.fails(2).contains("http has no increment"), "{ran:?}");
    for wrong in [
        "--mix=put",
        "--rate=0",
        "--values=x",
        "--key-order=some",
        "--protocol=ftp",
        "-c0",
        "nowhere",
    ] {
        assert_eq!(net(&[wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn ctrl_c_ends_a_load_and_keeps_what_was_measured() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let arguments = [
        "bench",
        "net",
        "--time=1h",
        "--warm-up=1ms",
        "--json",
        "--no-ceiling",
        "-c2",
        &server.address,
    ];
    let mut load = Script::start(&arguments, "");
    load.line_with("interval");
    load.interrupt();
    let ran = load.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let summary = json(ran.text().lines().last().unwrap());
    assert!(
        summary["requests"].as_u64() > Some(0) && summary["rate"].as_f64() > Some(0.0),
        "{summary}"
    );
}

#[test]
fn what_the_suite_does_not_know_is_refused_before_anything_runs() {
    let scenario = tokaido(["bench", "suite", "speed"]);
    assert_eq!(scenario.code, Some(2));
    assert!(
        scenario.stderr.contains("there is no such scenario; there are fib, hello"),
        "{}",
        scenario.stderr
    );
    let peer = tokaido(["bench", "suite", "--peers", "redis,foo"]);
    assert_eq!(peer.code, Some(2));
    assert!(peer.stderr.contains("`tokaido bench peers` lists them"), "{}", peer.stderr);
    assert_eq!(tokaido(["bench", "suite", "--quick", "--long"]).code, Some(2));
}

#[test]
fn every_peer_is_there_or_has_its_package() {
    let ran = tokaido(["bench", "peers"]);
    let text = ran.ok();
    for name in ["redis", "memcached", "nginx", "apache", "tarantool", "lmdb", "rocksdb", "sqlite"]
    {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        assert!(line.is_some_and(|line| line.len() > 14), "{text}");
    }
    // Packages that conflict with others in Debian are left out of the installation line.
    let is_to_be_had = |line: &str| line.contains("not there: ") && !line.contains("not beside");
    let to_install = text.lines().find(|line| line.starts_with("apt-get install "));
    assert_eq!(text.lines().any(is_to_be_had), to_install.is_some(), "{text}");
    assert!(!to_install.is_some_and(|line| line.contains(" luajit")), "{text}");
}

#[test]
fn a_kyoto_tycoon_is_given_a_script_without_marks() {
    let ran = tokaido(["bench", "peers", "--kyototycoon-script"]);
    let text = ran.ok();
    assert!(text.starts_with("-- dialect: kyototycoon") && !text.contains("--@"), "{text}");
}
