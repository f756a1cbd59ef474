//! Reload: the whole program is swapped while calls run.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use common::{Client, TestServer, encode};
use tokaido_script::{
    Language, Limits, LoadError, Lua, Runtime, RuntimeError, SourceLimits, Sources,
};
use tokaido_server::{Config, Server, StartError};
use tokaido_store::{Store, tree::SyncMode};

/// How often the program is swapped under load, and how many calls run in the meantime.
const RELOADS: u64 = 25;
const CALLS: u64 = 100_000;

/// How often a pipeline repeats each of its calls.
const ROUNDS: usize = 20;

/// Writes the two files of a version. From one version to the next, each procedure gets another
/// position, `flip` reads or writes, and `odd` comes and goes.
fn write_version(procedures: &Path, version: u64) {
    let odd = version % 2 == 1;
    let (mode, extra) = if odd { ("write", "odd") } else { ("read", "a_first") };
    let lua = format!(
        r#"
        local tokaido, part = require "tokaido", require "part"
        local function shown(what) return what .. " {version} " .. part.version end
        return {{
          {extra} = tokaido.read(function() return shown "{extra}" end),
          flip = tokaido.{mode}(function(tx)
            if {odd} then tx.main:increment("flips") end
            return shown "flip"
          end),
          name = tokaido.read(function() return shown "name" end),
          put = tokaido.write(function(tx) tx.main:put("k", "v") return shown "put" end),
          page = tokaido.http("GET /page/:x", function(tx, req) return shown("page" .. req.params.x) end),
          post = tokaido.http("POST /flip", tokaido.{mode}(function(tx) return shown "post" end)),
        }}
        "#
    );
    fs::write(procedures.join("t.lua"), lua).expect("a file");
    fs::write(procedures.join("part.lua"), format!("return {{ version = {version} }}"))
        .expect("a file");
}

fn start() -> (TestServer, PathBuf) {
    start_with(|_| {})
}

fn start_with(change: impl FnOnce(&mut Config)) -> (TestServer, PathBuf) {
    let server = TestServer::start_with_lua("return {}", change);
    let procedures = server.path().join("procedures");
    write_version(&procedures, 1);
    server.server.reload().expect("a program");
    (server, procedures)
}

#[test]
fn a_program_is_swapped_as_a_whole_and_says_which_it_is() {
    let (server, procedures) = start();
    let mut client = server.connect();
    client.ask(&["t.odd"], "$7\r\nodd 1 1\r\n");
    client.ask(&["t.flip"], "$8\r\nflip 1 1\r\n");
    write_version(&procedures, 2);
    let answer = server.http("POST /v1/reload", "", "");
    let expected = "{\"generation\":3,\"procedures\":6}\n";
    assert_eq!((answer.status, answer.text()), (200, expected));
    client.ask(&["t.flip"], "$8\r\nflip 2 2\r\n");
    client.ask(&["t.a_first"], "$11\r\na_first 2 2\r\n");
    client.command(&["t.odd"]);
    assert!(client.read_line().starts_with("-ERR unknown command"));
    assert_eq!(server.http("GET /page/x", "", "").text(), "pagex 2 2");
    assert_eq!(server.http("GET /v1/reload", "", "").status, 405);
}

#[test]
fn a_broken_file_keeps_the_old_program_and_is_named() {
    let (server, procedures) = start();
    write_version(&procedures, 2);
    fs::write(procedures.join("broken.lua"), "return {}\n\nreturn return").expect("a file");
    let answer = server.http("POST /v1/reload", "", "");
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("the program is as before"), "{}", answer.text());
    assert!(answer.text().contains("broken.lua:3: "), "{}", answer.text());
    server.connect().ask(&["t.name"], "$8\r\nname 1 1\r\n");
    // Two procedures for one path are not a valid program, either.
    let twice = r#"
        local tokaido = require "tokaido"
        return { f = tokaido.http("GET /page/:y", function() end) }
    "#;
    fs::write(procedures.join("broken.lua"), twice).expect("a file");
    let error = server.server.reload().expect_err("a route is taken twice").to_string();
    assert!(error.contains("GET /page/"), "{error}");
    fs::remove_file(procedures.join("broken.lua")).expect("it is there");
    server.server.reload().expect("a program");
    server.connect().ask(&["t.name"], "$8\r\nname 2 2\r\n");
}

#[test]
fn what_was_counted_stays_counted() {
    let (server, procedures) = start();
    for version in 2..4 {
        server.connect().ask(&["t.put"], &format!("$7\r\nput {0} {0}\r\n", version - 1));
        write_version(&procedures, version);
        server.server.reload().expect("a program");
    }
    let metrics = server.http("GET /metrics", "", "");
    let line = "tokaido_procedure_calls_total{procedure=\"t.put\"} 2";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[test]
fn a_server_without_procedures_says_so() {
    let server = TestServer::start();
    let answer = server.http("POST /v1/reload", "", "");
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("start it with the option procedures"), "{}", answer.text());
}

const BROKEN: &str = "return {}\n\nreturn return";

/// Checks the error for a procedure of a file that did not load, with each way to call it.
#[track_caller]
fn assert_told_why(server: &TestServer, name: &str, path: &Path) {
    let why = format!("procedure {name} is in {0}, which did not load: {0}:3: ", path.display());
    for command in [&["fcall", name, "0"][..], &["fcall_ro", name, "0"], &[name, "x"]] {
        let mut client = server.connect();
        client.command(command);
        let line = client.read_line();
        assert!(line.starts_with(&format!("-ERR {why}")), "{command:?}: {line}");
    }
    let answer = server.http(&format!("POST /v1/call/{name}"), "", "");
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains(&why), "{}", answer.text());
    let answer = server.http("GET /no/such/page", "", "");
    assert_eq!(answer.status, 404);
    let file = "nothing answers this path; the procedure file of broken did not load, see the log";
    assert!(answer.text().contains(file), "{}", answer.text());
}

#[test]
fn a_caller_is_told_of_the_file_that_did_not_load_at_the_start_and_at_a_reload() {
    let (server, procedures) = start();
    let broken = procedures.join("broken.lua");
    fs::write(&broken, BROKEN).expect("a file");
    server.server.reload().expect_err("a broken file");
    assert_told_why(&server, "broken.f", &broken);
    // Other missing procedures are reported as before.
    server.connect().ask(&["fcall", "brokenly.f", "0"], "-ERR Function not found\r\n");
    server.connect().ask(&["t.name"], "$8\r\nname 1 1\r\n");
    let directory = server.stop();
    let server = TestServer::start_in(directory, |config| config.procedures = Some(procedures));
    assert_told_why(&server, "broken.f", &broken);
    server.connect().ask(&["t.name"], "$8\r\nname 1 1\r\n");
    fs::remove_file(&broken).expect("it is there");
    server.server.reload().expect("a program");
    server.connect().ask(&["fcall", "broken.f", "0"], "-ERR Function not found\r\n");
}

#[test]
fn a_strict_server_starts_with_all_of_its_procedures_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let procedures = directory.path().join("procedures");
    fs::create_dir(&procedures).expect("a directory");
    write_version(&procedures, 1);
    let config = Config {
        strict: true,
        procedures: Some(procedures.clone()),
        ..common::config(directory.path())
    };
    Server::start(config.clone()).expect("all is well").stop();
    let twice = r#"
        local tokaido = require "tokaido"
        return { f = tokaido.http("GET /page/:y", function() end) }
    "#;
    for (text, line) in [(BROKEN, 3), (twice, 3)] {
        fs::write(procedures.join("u.lua"), text).expect("a file");
        let Err(error) = Server::start(config.clone()) else { panic!("it starts with {text}") };
        assert!(matches!(error, StartError::Broken(_)), "{error}");
        let place = format!("{}:{line}: ", procedures.join("u.lua").display());
        assert!(error.to_string().contains(&place), "{error}");
        let lax = Config { strict: false, ..config.clone() };
        Server::start(lax).expect("the other file serves").stop();
    }
}

/// Polls until the server's state is as expected, and returns it.
fn wait_for_state(
    server: &TestServer,
    is_so: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    loop {
        let answer = server.http("GET /healthz?verbose", "", "");
        let state = serde_json::from_str(answer.text()).expect("JSON");
        if is_so(&state) {
            assert_eq!(answer.status, 200, "the old program serves: {state}");
            return state;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a file atomically: a reader finds either no file or all of it.
fn put_whole(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).expect("a file");
    fs::rename(&beside, path).expect("the file in its place");
}

#[test]
fn a_watched_directory_is_reloaded_after_each_change_and_the_state_says_what_came_of_it() {
    let (server, procedures) = start_with(|config| {
        config.watch = true;
        config.limits.procedure_look_ms = 20;
    });
    // One of the two files may have been loaded while the other was still being written.
    let state = wait_for_state(&server, |state| state["last_load"]["ok"] == true);
    let generation_of = |state: &serde_json::Value| state["generation"].as_u64().expect("a number");
    let first = generation_of(&state);
    assert_eq!((&state["watch"], &state["ok"]), (&true.into(), &true.into()), "{state}");
    assert!(state["stalled_threads"].as_array().expect("a list").is_empty(), "{state}");
    write_version(&procedures, 2);
    let is_second = |state: &serde_json::Value| {
        let mut client = server.connect();
        client.command(&["t.name"]);
        client.read_line();
        client.read_line().trim_end() == "name 2 2" && state["last_load"]["ok"] == true
    };
    wait_for_state(&server, is_second);
    let second = generation_of(&wait_for_state(&server, |state| state["last_load"]["ok"] == true));
    assert!(second > first, "{second} after {first}");
    put_whole(&procedures.join("broken.lua"), BROKEN);
    let state = wait_for_state(&server, |state| state["last_load"]["ok"] == false);
    let error = &state["last_load"]["not_loaded"][0];
    let path = procedures.join("broken.lua").display().to_string();
    assert_eq!((&error["file"], &error["line"]), (&path.into(), &3.into()), "{state}");
    let message = state["last_load"]["error"].as_str().expect("text");
    assert!(message.starts_with("the program is as before"), "{message}");
    assert_eq!(generation_of(&state), second);
    server.connect().ask(&["t.name"], "$8\r\nname 2 2\r\n");
    fs::remove_file(procedures.join("broken.lua")).expect("it is there");
    let state = wait_for_state(&server, |state| state["last_load"]["ok"] == true);
    assert_eq!((generation_of(&state), &state["last_load"]["error"]), (second + 1, &().into()));
    fs::create_dir(procedures.join("more")).expect("a directory");
    put_whole(&procedures.join("more/m.lua"), "return {}");
    wait_for_state(&server, |state| generation_of(state) == second + 2);
    assert_eq!(server.http("GET /healthz", "", "").text(), "ok\n");
}

/// The version in a reply for `what`, which must be that of both files.
#[track_caller]
fn version(reply: &str, what: &str) -> u64 {
    let (first, second) =
        reply.strip_prefix(what).and_then(|rest| rest.trim().split_once(' ')).expect(reply);
    assert_eq!(first, second, "half of one program and half of another");
    first.parse().expect(reply)
}

fn read_bulk(client: &mut Client) -> Result<String, String> {
    let head = client.read_line();
    if head.starts_with('$') { Ok(client.read_line()) } else { Err(head) }
}

/// A client that reads many replies at once.
struct Lines(BufReader<TcpStream>);

impl Lines {
    fn new(client: Client) -> Self {
        Self(BufReader::new(client.0))
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line
    }

    fn read_bulk(&mut self) -> Result<String, String> {
        let head = self.read_line();
        if head.starts_with('$') { Ok(self.read_line()) } else { Err(head) }
    }
}

/// Calls over the Redis protocol: pipelines that read, write, or do both.
fn call_redis(client: Client, done: &AtomicBool, calls: &AtomicU64) {
    let names = ["name", "flip", "put", "odd", "name", "name"].repeat(ROUNDS);
    let pipeline: Vec<u8> =
        names.iter().flat_map(|name| encode(&[format!("t.{name}").as_str()])).collect();
    let mut client = Lines::new(client);
    let mut newest = 0;
    while !done.load(SeqCst) {
        client.0.get_mut().write_all(&pipeline).expect("the server reads");
        for &name in &names {
            match client.read_bulk() {
                Ok(reply) => {
                    let version = version(&reply, name);
                    assert!(version >= newest, "{reply} after version {newest}");
                    assert!(name != "odd" || version % 2 == 1, "{reply}");
                    newest = version;
                }
                Err(head) => assert!(
                    name == "odd" && head.starts_with("-ERR unknown command"),
                    "{name}: {head}"
                ),
            }
            calls.fetch_add(1, SeqCst);
        }
    }
}

/// Calls over HTTP: by name, and by routes that read and write.
fn call_http(mut client: Client, done: &AtomicBool, calls: &AtomicU64) {
    while !done.load(SeqCst) {
        for (line, body, what) in [
            ("GET /page/7", "", "page7"),
            ("POST /flip", "x", "post"),
            ("POST /v1/call/t.flip", "[]", "{\"result\":\"flip"),
            ("POST /v1/call/t.name", "[]", "{\"result\":\"name"),
        ] {
            client.send_http(line, "", body.as_bytes());
            let response = client.response();
            assert_eq!(response.status, 200, "{line}: {}", response.text());
            let text = response.text().trim_end();
            version(text.strip_suffix("\"}").unwrap_or(text), what);
            calls.fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn no_call_runs_the_wrong_version_of_anything() {
    // How a reload affects the disk does not matter here.
    let (server, procedures) = start_with(|config| config.sync = SyncMode::Os);
    let (done, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| call_redis(server.connect(), &done, &calls));
            scope.spawn(|| call_http(server.connect(), &done, &calls));
        }
        let mut client = server.connect();
        for version in 2..RELOADS + 2 {
            write_version(&procedures, version);
            server.server.reload().expect("a program");
            // A call after a reload gets the new program, on whichever thread it runs.
            for name in ["name", "put"] {
                client.command(&[&format!("t.{name}")]);
                let reply = read_bulk(&mut client).expect("a result");
                assert_eq!(reply.trim_end(), format!("{name} {version} {version}"));
            }
            let before = calls.load(SeqCst);
            while calls.load(SeqCst) < before + CALLS / RELOADS {
                thread::sleep(Duration::from_millis(1));
            }
        }
        done.store(true, SeqCst);
    });
    assert!(calls.into_inner() >= CALLS);
}

/// Lua that, once told to, loads an endless file instead of all others in every thread except the
/// one that created it: a file that loads in one thread may not finish loading in another. It is told
/// before the program is reloaded, because a worker may load it as soon as the reload has.
struct Late {
    lua: Lua,
    made_in: ThreadId,
    is_endless: Arc<AtomicBool>,
    endless: PathBuf,
}

impl Language for Late {
    fn extension(&self) -> &'static str {
        self.lua.extension()
    }

    fn start(
        &self,
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        if thread::current().id() == self.made_in || !self.is_endless.load(SeqCst) {
            return self.lua.start(store, sources, limits);
        }
        let endless = Sources::read(&self.endless, &["lua"], SourceLimits::default());
        self.lua.start(store, &endless.expect("a directory"), limits)
    }
}

#[test]
fn a_thread_that_cannot_load_the_program_within_its_limit_goes_on_with_the_old_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let [procedures, endless] = ["procedures", "endless"].map(|name| directory.path().join(name));
    fs::create_dir(&procedures).expect("a directory");
    fs::create_dir(&endless).expect("a directory");
    fs::write(endless.join("t.lua"), "while true do end").expect("a file");
    write_version(&procedures, 1);
    let mut config = common::config(directory.path());
    config.procedures = Some(procedures.clone());
    config.limits.script_ms = 500;
    let is_endless = Arc::<AtomicBool>::default();
    let language = Late {
        lua: Lua::default(),
        made_in: thread::current().id(),
        is_endless: is_endless.clone(),
        endless,
    };
    let server = Server::start_in(config, vec![Arc::new(language)]).expect("it starts");
    let mut clients = [0, 1, 2, 3].map(|_| Client::connect(common::tcp_address(&server)));
    let mut all_say = |version: u64| {
        for client in &mut clients {
            for what in ["name", "put"] {
                let said = format!("{what} {version} {version}");
                let call = format!("t.{what}");
                client.ask(&[&call], &format!("${}\r\n{said}\r\n", said.len()));
            }
        }
    };
    all_say(1);
    is_endless.store(true, SeqCst);
    write_version(&procedures, 2);
    server.reload().expect("it loads here");
    all_say(1);
    is_endless.store(false, SeqCst);
    write_version(&procedures, 3);
    server.reload().expect("it loads");
    all_say(3);
}
