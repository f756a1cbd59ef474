//! A procedure that cannot be stopped: the server reports it, and ends its own process at its limit or
//! when told to stop.

mod common;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Client, config, tcp_address};
use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Language, Limits, LoadError, Mode, Procedure,
    ProcedureId, Runtime, RuntimeError, Scope, Sources, Value,
};
use tokaido_server::{Config, Server, Signals};
use tokaido_store::Store;

/// Maximum time that a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A language whose procedures `hang.read` and `hang.write` end only when they are released.
#[derive(Clone, Default)]
struct Hanging {
    is_let_go: Arc<AtomicBool>,
    /// The name of the thread of the last call.
    called_on: Arc<Mutex<String>>,
    /// Makes that thread hang when it next loads the procedures, until they are released.
    hangs_at_loading: Arc<AtomicBool>,
}

/// Releases what hangs, on drop at the latest: before the server, which waits for it, is dropped.
struct Hold(Hanging);

impl Hold {
    fn let_go(&self, is_let_go: bool) {
        self.0.is_let_go.store(is_let_go, Relaxed);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.let_go(true);
    }
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

impl Hanging {
    fn called_on(&self) -> String {
        self.called_on.lock().expect("nothing panics with it").clone()
    }

    fn wait(&self) {
        while !self.is_let_go.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

struct HangingRuntime {
    language: Hanging,
    procedures: Vec<Procedure>,
}

impl Language for Hanging {
    fn extension(&self) -> &'static str {
        "hang"
    }

    fn start(
        &self,
        _store: &Arc<dyn Store>,
        _sources: &Sources,
        _limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        let is_it = thread_name() == self.called_on();
        if is_it && self.hangs_at_loading.swap(false, Relaxed) {
            self.wait();
        }
        let procedure = |name: &str, mode| Procedure {
            name: name.to_owned(),
            mode,
            route: None,
            hook: None,
            path: "hang.hang".into(),
            line: 1,
            is_of_worker: false,
        };
        let procedures =
            vec![procedure("hang.read", Mode::Read), procedure("hang.write", Mode::Write)];
        Ok((Box::new(HangingRuntime { language: self.clone(), procedures }), Vec::new()))
    }
}

impl Runtime for HangingRuntime {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn call(
        &mut self,
        _procedure: ProcedureId,
        _scope: Scope<'_>,
        _arguments: &[Value],
    ) -> Result<Value, CallError> {
        *self.language.called_on.lock().expect("nothing panics with it") = thread_name();
        self.language.wait();
        Ok(Value::Integer(1))
    }

    fn call_http(
        &mut self,
        _procedure: ProcedureId,
        _scope: Scope<'_>,
        _request: &HttpRequest<'_>,
        _response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        Err(CallError::Value { message: "there are no routes".to_owned() })
    }
}

/// Starts a server whose procedures hang. Also returns the hold that releases them.
fn start(directory: &Path, change: impl FnOnce(&mut Config)) -> (Server, Hold) {
    let procedures = directory.join("procedures");
    fs::create_dir(&procedures).expect("a directory");
    fs::write(procedures.join("hang.hang"), "").expect("a file");
    let mut config = config(directory);
    config.procedures = Some(procedures);
    config.limits.script_ms = 1;
    config.limits.stalled_ms = 50;
    change(&mut config);
    let language = Hanging::default();
    let languages: Vec<Arc<dyn Language>> = vec![Arc::new(language.clone())];
    (Server::start_in(config, languages).expect("the server starts"), Hold(language))
}

/// Polls `/healthz` until it answers with this status, and returns the answer.
fn health(address: std::net::SocketAddr, status: u16) -> String {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < PATIENCE, "/healthz never answers {status}");
        let mut client = Client::connect(address);
        client.send_http("GET /healthz", "", b"");
        let response = client.response();
        if response.status == status {
            return response.text().to_owned();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Polls `/healthz` on this connection until it answers with this status, and returns the answer.
fn health_on(client: &mut Client, status: u16) -> String {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < PATIENCE, "/healthz never answers {status}");
        client.send_http("GET /healthz", "", b"");
        let response = client.response();
        if response.status == status {
            return response.text().to_owned();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_that_has_stalled_is_named_on_another_until_it_goes_on() {
    for what in ["one procedure", "loading the procedures"] {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, hold) = start(directory.path(), |config| {
            config.limits.stalled_exit_ms = 0;
            // After a few calls, a procedure runs on workers, however long the calls took.
            config.limits.script_short_us = 1_000_000;
        });
        let mut caller = Client::connect(tcp_address(&server));
        caller.ask(&["PING"], "+PONG\r\n");
        // The next connection goes to the worker without connections, whichever that is.
        let mut other = Client::connect(tcp_address(&server));
        health_on(&mut other, 200);
        hold.let_go(true);
        for _ in 0..10 {
            caller.ask(&["FCALL", "hang.read", "0"], ":1\r\n");
        }
        hold.let_go(false);
        let worker = hold.0.called_on();
        assert!(worker.starts_with("tokaido-worker-"), "{worker}");
        if what == "one procedure" {
            caller.command(&["FCALL", "hang.read", "0"]);
        } else {
            hold.0.hangs_at_loading.store(true, Relaxed);
            server.reload().expect("it loads");
            caller.command(&["GET", "k"]);
        }
        let told = health_on(&mut other, 503);
        let wanted = format!("{worker} has been at {what} for");
        assert!(told.contains(&wanted), "{told}");
        // A new connection does not wait for it either.
        health_on(&mut Client::connect(tcp_address(&server)), 503);
        hold.let_go(true);
        caller.expect(if what == "one procedure" { ":1\r\n" } else { "$-1\r\n" });
        health_on(&mut other, 200);
    }
}

#[test]
fn health_and_metrics_name_the_thread_that_has_stalled_until_it_goes_on() {
    for (procedure, name) in [("hang.write", "tokaido-writer"), ("hang.read", "tokaido-pool-")] {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, hold) = start(directory.path(), |c| c.limits.stalled_exit_ms = 0);
        let address = tcp_address(&server);
        health(address, 200);
        let mut caller = Client::connect(address);
        caller.command(&["FCALL", procedure, "0"]);
        let told = health(address, 503);
        assert!(told.contains(name) && told.contains("at one procedure for"), "{told}");
        let mut client = Client::connect(address);
        client.send_http("GET /metrics", "", b"");
        let metrics = client.response();
        let is_stalled = |line: &str| line.contains(name) && line.ends_with("} 1");
        let lines = metrics.text().lines().filter(|l| l.starts_with("tokaido_thread_stalled{"));
        assert_eq!(lines.filter(|line| is_stalled(line)).count(), 1, "{}", metrics.text());
        Client::connect(address).ask(&["GET", "k"], "$-1\r\n");
        hold.let_go(true);
        caller.expect(":1\r\n");
        health(address, 200);
    }
}

/// Set to the directory for a test that runs again in its own process, which is to end.
const DIRECTORY: &str = "TOKAIDO_TEST_STALLED_IN";

/// Runs this test in its own process, in the directory.
fn run_again(test: &str, directory: &Path) -> Output {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).env(DIRECTORY, directory);
    command.output().expect("it runs")
}

/// Enables logging, and makes sure that the process ends in any case.
fn begin_process() {
    tracing_subscriber::fmt().with_ansi(false).init();
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        std::process::exit(3);
    });
}

/// Stores a record, and makes the writer hang.
fn store_and_hang(server: &Server) {
    let mut client = Client::connect(tcp_address(server));
    client.ask(&["SET", "k", "v"], "+OK\r\n");
    client.command(&["FCALL", "hang.write", "0"]);
    // The connection must not end before the process does.
    std::mem::forget(client);
}

/// Asserts that the process has ended itself for this reason, and that acknowledged data is there.
fn assert_ended(ended: &Output, reason: &str, directory: &Path) {
    let log = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{log}");
    assert!(log.contains(reason) && log.contains("ending the process"), "{log}");
    let server = Server::start(config(directory)).expect("it starts again");
    Client::connect(tcp_address(&server)).ask(&["GET", "k"], "$1\r\nv\r\n");
}

#[test]
fn a_procedure_that_does_not_stop_ends_the_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        let directory = tempfile::tempdir().expect("a directory");
        let ended = run_again("a_procedure_that_does_not_stop_ends_the_process", directory.path());
        return assert_ended(&ended, "tokaido-writer has been at one procedure", directory.path());
    };
    begin_process();
    let (server, _hold) = start(Path::new(&directory), |c| c.limits.stalled_exit_ms = 200);
    store_and_hang(&server);
    thread::sleep(PATIENCE);
}

#[test]
fn a_stop_that_takes_too_long_ends_the_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        let directory = tempfile::tempdir().expect("a directory");
        let ended = run_again("a_stop_that_takes_too_long_ends_the_process", directory.path());
        return assert_ended(&ended, "stopping took longer than 250 ms", directory.path());
    };
    begin_process();
    let signals = Signals::catch().expect("they are caught");
    let (server, _hold) = start(Path::new(&directory), |config| {
        config.limits.stalled_exit_ms = 0;
        config.limits.stop_ms = 50;
        config.limits.stop_exit_ms = 200;
    });
    store_and_hang(&server);
    let address = tcp_address(&server);
    thread::spawn(move || {
        health(address, 503);
        let id = std::process::id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("it is sent");
    });
    server.run_until_signal(signals).expect("a signal");
}
