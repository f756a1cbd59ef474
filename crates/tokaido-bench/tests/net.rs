//! The generator with servers whose delays and stalls are known.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokaido_bench::{
    machine::Machine,
    net::{
        Address, Keys, Kind, Load, LoadError, Mix, Outcome, Pace, Protocol, Report, Values,
        Verdict, measure_ceiling, protocol, run,
    },
};

/// How long the server stalls, once.
const STALL: Duration = Duration::from_millis(600);

/// When it stalls, counted from the first request.
const STALL_AFTER: Duration = Duration::from_millis(300);

/// How a server behaves.
#[derive(Clone, Copy, Default)]
struct Behaviour {
    /// Before each answer.
    delay: Duration,
    stalls: bool,
    /// Closes a connection at its first request.
    closes: bool,
    /// Its answer in place of `END`.
    answer: Option<&'static str>,
}

struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
}

/// State shared by a server's threads: when the first request arrived, and whether it has stalled.
type Stall = Arc<Mutex<(Option<Instant>, bool)>>;

impl Server {
    /// Answers each line like memcached answers a get of a missing key.
    fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&requests);
        let stall = Stall::default();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stall, counted) = (Arc::clone(&stall), Arc::clone(&counted));
                thread::spawn(move || serve(&stream.unwrap(), behaviour, &stall, &counted));
            }
        });
        Self { address, requests }
    }

    fn load(&self) -> Load {
        load(self.address)
    }
}

fn serve(stream: &TcpStream, behaviour: Behaviour, stall: &Stall, counted: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let answer = format!("{}\r\n", behaviour.answer.unwrap_or("END"));
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let mut stream = stream;
        if line == "version" {
            stream.write_all(b"VERSION 1\r\n").unwrap();
            continue;
        }
        if behaviour.closes {
            return;
        }
        counted.fetch_add(1, Ordering::Relaxed);
        thread::sleep(behaviour.delay);
        if behaviour.stalls {
            // Whoever holds this lock blocks all others.
            let mut state = stall.lock().unwrap();
            let first = *state.0.get_or_insert_with(Instant::now);
            if !state.1 && first.elapsed() >= STALL_AFTER {
                state.1 = true;
                thread::sleep(STALL);
            }
        }
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn load(address: SocketAddr) -> Load {
    Load {
        address: address.to_string().parse::<Address>().unwrap(),
        protocol: Protocol::Memcached,
        options: protocol::Options::default(),
        connections: 2,
        pipeline: 1,
        threads: 1,
        reconnect: false,
        pace: Pace::Closed,
        time: Duration::from_millis(2000),
        requests: None,
        warm_up: Duration::ZERO,
        keys: Keys::Uniform,
        keys_count: 100,
        values: Values::Fixed(10),
        command: None,
        mix: Mix::only(Kind::Get),
        seed: 1,
    }
}

fn outcome(load: &Load) -> Outcome {
    run(load, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// In ns.
fn half_of(time: Duration) -> u64 {
    time.as_nanos() as u64 / 2
}

#[test]
fn a_closed_loop_misses_a_stall_that_a_rate_finds() {
    let stalling = Behaviour { stalls: true, ..Behaviour::default() };
    let closed = outcome(&Server::start(stalling).load());
    assert!(closed.tally.service.max() >= half_of(STALL), "{closed:?}");
    assert!(closed.tally.service.quantile(0.99) < half_of(STALL), "{closed:?}");

    // At least a fifth of the requests are due while the server stalls; only two of those were
    // sent. There is time for what waited meanwhile, even on a busy machine.
    let load = Load { pace: Pace::Rate(400.0), ..Server::start(stalling).load() };
    let open = outcome(&load);
    assert!(open.tally.response.quantile(0.99) >= half_of(STALL), "{open:?}");
    assert!(open.tally.service.quantile(0.99) < half_of(STALL), "{open:?}");
    assert_eq!(open.tally.response.count(), open.tally.requests() + open.unsent + open.unanswered);
}

#[test]
fn a_delay_is_in_every_request() {
    let delay = Duration::from_millis(20);
    let server = Server::start(Behaviour { delay, ..Behaviour::default() });
    let closed = outcome(&Load { time: Duration::from_millis(500), ..server.load() });
    assert!(closed.tally.service.quantile(0.01) >= 19_900_000, "{closed:?}");
    // Two connections with 50 requests per second at most.
    assert!(closed.rate <= 100.0 && closed.tally.requests() <= 52, "{closed:?}");
    assert_eq!(closed.tally.misses, closed.tally.requests());
}

#[test]
fn a_server_that_cannot_keep_up_is_not_made_to_look_fast_by_what_it_leaves_undone() {
    let delay = Duration::from_millis(50);
    let server = Server::start(Behaviour { delay, ..Behaviour::default() });
    let time = Duration::from_secs(2);
    let load = Load { pace: Pace::Rate(1000.0), time, ..server.load() };
    let open = outcome(&load);
    // It can do 40 per second, so requests wait for at least half of the time.
    assert!(open.unsent > 1000, "{open:?}");
    assert!(open.tally.response.quantile(0.5) >= half_of(time / 2), "{open:?}");
    assert_eq!(open.tally.response.count(), open.tally.requests() + open.unsent + open.unanswered);
    assert_eq!(Verdict::of(&load, &open), Verdict::Server);
}

#[test]
fn so_many_requests_are_sent_as_were_asked_for() {
    for (threads, pipeline) in [(1, 1), (1, 7), (2, 3)] {
        let server = Server::start(Behaviour::default());
        let load = Load { requests: Some(101), threads, pipeline, connections: 3, ..server.load() };
        let outcome = outcome(&load);
        assert_eq!(outcome.tally.requests(), 101);
        assert_eq!(server.requests.load(Ordering::Relaxed), 101);
    }
}

#[test]
fn a_rate_is_kept_and_the_warm_up_does_not_count() {
    let server = Server::start(Behaviour::default());
    let (warm_up, time) = (Duration::from_millis(500), Duration::from_millis(1000));
    let mut seconds = Vec::new();
    let load = Load { pace: Pace::Rate(500.0), warm_up, time, ..server.load() };
    let outcome = run(&load, &AtomicBool::new(false), &mut |interval| {
        seconds.push((interval.second, interval.tally.requests()));
    });
    let outcome = outcome.unwrap();
    // On a busy machine the last ones may find no free connection.
    assert_eq!(outcome.tally.requests() + outcome.unsent, 500, "{outcome:?}");
    let sum = seconds.iter().map(|(_, requests)| requests).sum::<u64>();
    assert_eq!(sum + outcome.unsent, 750, "{seconds:?}");
    assert!(seconds.iter().map(|(second, _)| second).is_sorted(), "{seconds:?}");
    assert!(outcome.server.is_some(), "this very process listens: {outcome:?}");
}

#[test]
fn each_request_has_a_connection_of_its_own_if_so_wanted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
            if head.contains("connection: close") {
                counted.fetch_add(1, Ordering::Relaxed);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").unwrap();
            }
        }
    });
    let kept = Load { protocol: Protocol::Http, requests: Some(50), ..load(address) };
    let anew = Load { reconnect: true, ..kept.clone() };
    assert_eq!(outcome(&anew).tally.requests(), 50);
    assert_eq!(connections.load(Ordering::Relaxed), 50);
    let elsewhere = Load { protocol: Protocol::Memcached, ..anew };
    let refused = run(&elsewhere, &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(refused, Err(LoadError::Reconnect)));
}

#[test]
fn it_ends_early_when_it_is_told_to() {
    let server = Server::start(Behaviour::default());
    let stop = AtomicBool::new(true);
    let load = Load { time: Duration::from_secs(3600), ..server.load() };
    let outcome = run(&load, &stop, &mut |_| {}).unwrap();
    assert_eq!(outcome.tally.requests(), 0);
}

#[test]
fn what_goes_wrong_is_told() {
    let refusing = Behaviour { answer: Some("SERVER_ERROR busy"), ..Behaviour::default() };
    let load = Load { requests: Some(10), ..Server::start(refusing).load() };
    let refused = outcome(&load);
    assert_eq!(
        (refused.tally.refused, refused.tally.refusal.as_deref()),
        (10, Some("SERVER_ERROR busy"))
    );
    let error = |load: &Load| run(load, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
    let other = Behaviour { answer: Some("+OK"), ..Behaviour::default() };
    let wrong = error(&Server::start(other).load());
    assert_eq!(wrong.to_string(), "the server does not speak memcached: it sent \"+OK\\r\\n\"");
    let closing = Behaviour { closes: true, ..Behaviour::default() };
    let closed = error(&Server::start(closing).load());
    assert!(matches!(closed, LoadError::Closed { .. } | LoadError::Broken { .. }), "{closed}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(error(&self::load(nobody)), LoadError::Connect { .. }));
    let load = Load { protocol: Protocol::Http, mix: "get=1,increment=1".parse().unwrap(), ..load };
    assert_eq!(error(&load).to_string(), "http has no increment; leave it out of the mix");
}

#[test]
fn the_generator_knows_its_ceiling_and_says_when_it_was_the_limit() {
    let server = Server::start(Behaviour::default());
    let load = Load { time: Duration::from_millis(300), ..server.load() };
    let ceiling = measure_ceiling(&load, &AtomicBool::new(false)).unwrap();
    assert!(ceiling.rate > 0.0 && ceiling.rate == ceiling.per_thread, "{ceiling:?}");
    let busy = Outcome { ran: 0.95, ..outcome(&load) };
    assert_eq!(Verdict::of(&load, &busy), Verdict::Generator);
    let idle = Outcome { ran: 0.3, waited: 0.0, ..busy };
    assert_eq!(Verdict::of(&load, &idle), Verdict::Server);
    let (ceiling, machine) = (Some(ceiling), Machine::look());
    let outcome = Outcome { ran: 0.7, waited: 0.25, ..idle };
    let report = Report { load, outcome, ceiling, machine };
    assert!(report.to_string().contains("/s: the generator was the limit"), "{report}");
    assert!(report.to_string().contains("at least "), "{report}");
    assert_eq!(report.json()["rate_is_lower_bound"], true);
}
