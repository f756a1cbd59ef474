//! How a server starts, what it refuses, and how it stops.

mod common;

use std::{fs, net::TcpListener, thread};

use common::{Client, TestServer, config, encode, tcp_address};
use tokaido_server::{ListenError, Server, StartError};

#[test]
fn what_was_answered_is_there_after_a_restart() {
    let server = TestServer::start();
    server.connect().ask(&["SET", "k", "v"], "+OK\r\n");
    let directory = server.stop();
    let again = Server::start(config(directory.path())).expect("it starts again");
    Client::connect(tcp_address(&again)).ask(&["GET", "k"], "$1\r\nv\r\n");
}

#[test]
fn a_stop_answers_what_has_come() {
    // The limit is longer than any test waits, so only ending the connections can end the stop.
    let server = TestServer::start_with(|config| config.limits.stop_ms = 60_000);
    let address = server.address();
    let mut idle = server.connect();
    idle.ask(&["PING"], "+PONG\r\n");
    let mut http = server.connect();
    http.send_http("GET /healthz", "", b"");
    assert_eq!(http.response().status, 200);
    // 2,000 writes are in flight when the stop comes: those that are answered must be stored.
    let mut busy = server.connect();
    busy.ask(&["PING"], "+PONG\r\n");
    let requests: Vec<u8> = (0..2000).flat_map(|_| encode(&["INCR", "n"])).collect();
    busy.send(&requests);
    busy.expect(":1\r\n");
    let stopping = thread::spawn(|| server.stop());
    let answered = busy.text_to_end();
    let last = answered.lines().last().map_or(1, |l| l[1..].parse().expect("a number"));
    assert_eq!(answered.lines().count(), last - 1);
    assert_eq!((idle.text_to_end(), http.text_to_end()), (String::new(), String::new()));
    let directory = stopping.join().expect("it stops");
    assert!(std::net::TcpStream::connect(address).is_err());

    let again = Server::start(config(directory.path())).expect("it starts again");
    let mut client = Client::connect(tcp_address(&again));
    client.command(&["GET", "n"]);
    client.read_line();
    let found: usize = client.read_line().trim().parse().expect("a number");
    // A stop may close a connection between two batches, but loses no reply of a batch it ran.
    assert_eq!(found, last);
}

#[test]
fn a_client_that_takes_nothing_does_not_hold_up_a_stop_for_ever() {
    let server = TestServer::start_with(|config| config.limits.stop_ms = 50);
    let mut stuck = server.connect();
    stuck.ask(&["SET", "k", &"v".repeat(1 << 20)], "+OK\r\n");
    stuck.send(encode(&["GET", "k"]).repeat(100));
    // The first bytes of the replies show that the server has started on them.
    stuck.expect("$1048576\r\n");
    server.stop();
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path());
    config.listen = vec![address.to_string().parse().expect("an address")];
    let error = Server::start(config).err().expect("the port is taken");
    assert!(matches!(error, StartError::Listen(ListenError::InUse { .. })), "{error}");
    assert!(error.to_string().starts_with(&format!("{address} is in use")), "{error}");
}

#[test]
fn two_servers_share_no_port_and_no_directory() {
    let server = TestServer::start();
    let mut same_port = config(tempfile::tempdir().expect("a directory").path());
    same_port.listen = vec![server.address().to_string().parse().expect("an address")];
    let error = Server::start(same_port).err().expect("the port is taken");
    assert!(matches!(error, StartError::Listen(ListenError::InUse { .. })), "{error}");
    let error = Server::start(config(server.path())).err().expect("the directory is taken");
    assert!(error.to_string().contains("is in use by another tokaido process"), "{error}");
    server.connect().ask(&["PING"], "+PONG\r\n");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = Server::start(config(&file)).err().expect("no directory below a file");
    assert!(error.to_string().contains("cannot open the store in"), "{error}");
}

#[test]
fn an_open_address_without_a_password_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path());
    config.listen = vec!["0.0.0.0:0".parse().expect("an address")];
    let error = Server::start(config).err().expect("it is open to all");
    assert!(error.to_string().contains("without a password"), "{error}");
}

#[test]
fn a_broken_procedure_file_is_named_and_the_others_serve() {
    let directory = tempfile::tempdir().expect("a directory");
    let procedures = directory.path().join("procedures");
    fs::create_dir(&procedures).expect("a directory");
    let good = "local tokaido = require 'tokaido'\n\
                return { one = tokaido.read(function() return 1 end),\n\
                v1 = tokaido.http('GET /v1/mine', function() return '' end) }\n";
    fs::write(procedures.join("good.lua"), good).expect("a file");
    fs::write(procedures.join("broken.lua"), "local x = 1\nif then\n").expect("a file");
    let mut config = config(directory.path());
    config.procedures = Some(procedures);
    let server = Server::start(config).expect("it starts");
    let errors: Vec<_> = server.load_errors().iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("broken.lua:2: "), "{errors:?}");
    assert!(errors[1].contains("good.lua:3: good.v1: paths below /v1 belong"), "{errors:?}");
    Client::connect(tcp_address(&server)).ask(&["good.one"], ":1\r\n");
}

#[test]
fn procedures_that_are_not_there_are_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(directory.path());
    config.procedures = Some(directory.path().join("none"));
    let error = Server::start(config).err().expect("there are none");
    assert!(error.to_string().starts_with("cannot read the procedures: /"), "{error}");
}

#[test]
fn connections_are_dealt_evenly() {
    let server = TestServer::start();
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask(&["PING"], "+PONG\r\n");
    }
    let mut open = server.open_connections();
    open.sort_unstable();
    assert_eq!(open, [4, 5]);
}
