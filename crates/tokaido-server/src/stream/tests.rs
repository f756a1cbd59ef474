//! A second protocol, over real sockets and with real threads.

mod bed;
mod echo;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokaido_script::Sources;
use tokaido_store::{
    CommitError, CommitNumber, DatabaseId, GroupWriter, NewRecord, Observer, ObserverGuard,
    TransactionChanges, What, WriteError, WriteTransaction, Writer, transact, tree,
};
use tokio::{net::TcpListener, sync::oneshot, task::LocalSet};

use super::*;
use crate::{
    Context, Progress, Shared, SharedOptions, Target,
    config::Config,
    connection::Connections,
    metrics::Metrics,
    pool::{self, PoolHandle},
    procedures::LocalProgram,
    program::Loader,
    read_context::ReadContext,
    service::Service,
    transport::{Socket, SocketAddress},
    worker::Worker,
    writer::{self, WriterHandle},
};
use bed::Bed;
use echo::lock;

/// The longest time that a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn requests_run_where_they_must_and_are_answered_in_order() {
    let bed = Bed::new();
    let (mut client, _) = bed.connect();
    client.send("echo a\nslow b\nput c\necho d\nquiet e\nslow f\n");
    client.expect(&["a@worker", "b@pool", "c@writer", "d@writer", "f@writer"]);
    client.send("echo g\n");
    client.expect(&["g@worker"]);
    let counters = &bed.service.metrics.workers[0].resp;
    let counted = [&counters.local, &counters.pool, &counters.writer].map(|n| n.load(SeqCst));
    assert_eq!(counted, [2, 1, 4]);
}

#[test]
fn a_group_that_fails_is_refused_in_the_words_of_the_protocol() {
    let bed = Bed::new();
    let (mut client, _) = bed.connect();
    *lock(&bed.backstage.flush_error) = Some(CommitError::DiskFull);
    client.send("echo a\nput b\nquiet c\necho d\nnonsense\n");
    let error = CommitError::DiskFull;
    let (b, d) = (format!("alas, b: {error}"), format!("alas, d: {error}"));
    client.expect(&["a@worker", &b, &d, "farewell: a line is a verb and a text"]);
    client.expect_end();
}

#[test]
fn what_is_pushed_arrives_while_the_conversation_is_with_the_writer() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    client.send("echo a\nstall b\necho c\n");
    bed.expect_event("stalls");
    mailbox.push(b"news\n").expect("it is taken");
    mailbox.push(b"more news\n").expect("it is taken");
    client.expect(&["a@worker", "news", "more news"]);
    bed.go_on.send(()).expect("it stalls");
    client.expect(&["b@writer", "c@writer"]);
    mailbox.push(b"late news\n").expect("it is taken");
    client.expect(&["late news"]);
}

#[test]
fn what_a_request_subscribes_to_follows_its_reply() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    let (mut other, _) = bed.connect();
    for _ in 0..2 {
        client.send("stall a\nfollow b\necho c\n");
        bed.expect_event("stalls");
        mailbox.push(b"before\n").expect("it is taken");
        client.expect(&["before"]);
        bed.go_on.send(()).expect("it stalls");
        bed.expect_event("stalls");
        mailbox.push(b"behind\n").expect("it is taken");
        // The worker has seen it once it has served another connection twice.
        for _ in 0..2 {
            other.send("echo d\n");
            other.expect(&["d@worker"]);
        }
        bed.go_on.send(()).expect("it stalls");
        client.expect(&["a@writer", "b@writer", "c@writer", "behind"]);
    }
}

#[test]
fn a_request_waits_until_it_is_woken() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    client.send("put a\nawait b\necho c\n");
    client.expect(&["a@writer"]);
    bed.expect_event("waits");
    // Meanwhile other connections are served, also by the writer.
    let (mut other, _) = bed.connect();
    other.send("put x\nslow y\n");
    other.expect(&["x@writer", "y@writer"]);
    mailbox.push(b"news\n").expect("it is taken");
    client.expect(&["news"]);
    mailbox.wake();
    bed.expect_event("waits");
    bed.backstage.happened.store(true, SeqCst);
    mailbox.wake();
    client.expect(&["b@writer", "c@writer"]);
}

#[test]
fn a_request_is_woken_by_the_key_that_it_waits_for() {
    let bed = Bed::new();
    let ((mut client, _), (mut other, _)) = (bed.connect(), bed.connect());
    client.send("take k\necho a\n");
    bed.expect_event("waits");
    other.send("put j\nput k\n");
    other.expect(&["j@writer", "k@writer"]);
    client.expect(&["k@writer", "a@writer"]);
    client.send("take k\n");
    client.expect(&["k@writer"]);
}

#[test]
fn a_request_waits_no_longer_than_until_its_deadline() {
    let bed = Bed::new();
    let (mut client, _) = bed.connect();
    client.send("echo a\nnap b\nnap c\necho d\n");
    client.expect(&["a@worker", "b@worker", "c@worker", "d@worker"]);
    bed.expect_event("waits");
    bed.expect_event("waits");
    client.send("echo e\n");
    client.expect(&["e@worker"]);
}

#[test]
fn a_request_that_waited_for_what_was_taken_back_looks_again() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    *lock(&bed.backstage.flush_error) = Some(CommitError::DiskFull);
    client.send("put a\nawait b\n");
    bed.expect_event("waits");
    bed.expect_event("waits");
    let refused = format!("alas, a: {}", CommitError::DiskFull);
    client.expect(&[&refused]);
    bed.backstage.happened.store(true, SeqCst);
    mailbox.wake();
    client.expect(&["b@writer"]);
}

#[test]
fn a_client_that_goes_away_while_its_request_waits_is_noticed() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    client.send("await a\necho b\n");
    bed.expect_event("waits");
    drop(client);
    bed.expect_event("ends");
    mailbox.wake();
    // The mailbox closes as the task ends, a moment after the protocol.
    while mailbox.push(b"x") != Err(PushError::Closed) {
        std::thread::yield_now();
    }
}

#[test]
fn what_comes_behind_a_request_that_waits_is_answered_after_it() {
    let bed = Bed::new();
    let (mut client, mailbox) = bed.connect();
    client.send(&format!("await a\n{}", "quiet b\n".repeat(5000) + "put c\n"));
    bed.expect_event("waits");
    bed.backstage.happened.store(true, SeqCst);
    mailbox.wake();
    client.expect(&["a@writer", "c@writer"]);
}

#[test]
fn a_server_that_stops_ends_requests_that_wait() {
    let mut bed = Bed::new();
    let (mut client, _) = bed.connect();
    client.send("echo a\nawait b\n");
    bed.expect_event("waits");
    bed.stop.take();
    client.expect(&["a@worker"]);
    client.expect_end();
}

#[test]
fn a_client_that_does_not_take_what_is_pushed_is_disconnected() {
    let bed = Bed::new();
    let (mut idle, idle_mailbox) = bed.connect();
    let (mut away, away_mailbox) = bed.connect();
    let (mut parked, parked_mailbox) = bed.connect();
    idle.send("echo a\n");
    idle.expect(&["a@worker"]);
    parked.send("await b\n");
    bed.expect_event("waits");
    away.send("stall c\n");
    bed.expect_event("stalls");
    let message = [b'x'; 2 << 10];
    for mailbox in [&idle_mailbox, &away_mailbox, &parked_mailbox] {
        assert_eq!(mailbox.push(&message), Err(PushError::Full));
        assert!(mailbox.push(b"x").is_err());
    }
    for client in [&mut idle, &mut away, &mut parked] {
        client.expect_end();
    }
    bed.go_on.send(()).expect("it stalls");
    assert_eq!(bed.service.metrics.workers[0].connections_overrun.load(SeqCst), 3);
}

#[test]
fn a_panic_ends_one_connection_only() {
    let bed = Bed::new();
    let (mut client, _) = bed.connect();
    let (mut other, _) = bed.connect();
    client.send("echo a\npanic b\n");
    let farewell = "farewell: an error in the server itself, see its log; closing";
    client.expect(&["a@worker", farewell]);
    client.expect_end();
    let (mut client, _) = bed.connect();
    client.send("put a\npanic b\necho c\n");
    client.expect(&["a@writer", farewell]);
    client.expect_end();
    let (mut client, _) = bed.connect();
    client.send("slow a\nslow-panic b\n");
    client.expect(&["a@pool", farewell]);
    client.expect_end();
    other.send("put a\nslow b\n");
    other.expect(&["a@writer", "b@writer"]);
}
