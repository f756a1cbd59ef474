//! CLIENT TRACKING beyond what the wire shows: events between two steps of a request, and the authors of changes.

use tokaido_script::Sources;

use super::Server;
use crate::{
    mailbox::{MailboxReceiver, mailbox},
    redis::Session,
};

const PUSHED_BYTES_MAX: usize = 1 << 20;

fn server() -> Server {
    Server::new(None, &Sources::default())
}

/// A session in version 3 of the protocol that tracks keys, and the receiver of its pushes.
fn tracking(server: &mut Server, options: &str) -> (Session, MailboxReceiver) {
    let (mailbox, receiver) = mailbox(PUSHED_BYTES_MAX);
    let mut session = server.session().reached_by(mailbox);
    server.run(&mut session, "HELLO 3");
    let (reply, _) = server.run(&mut session, &format!("CLIENT TRACKING ON {options}"));
    assert_eq!(reply, b"+OK\r\n");
    (session, receiver)
}

fn pushed(receiver: &mut MailboxReceiver) -> String {
    let mut bytes = Vec::new();
    receiver.take_all(&mut bytes).expect("it is open");
    String::from_utf8(bytes).expect("text").replace("\r\n", " ")
}

fn invalidation(key: &str) -> String {
    format!(">2 $10 invalidate *1 ${} {key} ", key.len())
}

#[test]
fn a_change_between_the_beginning_of_a_request_and_its_read_is_not_missed() {
    let mut server = server();
    let (session, _receiver) = tracking(&mut server, "");
    let mut other = server.session();
    let tracker = server.shared.tracker.clone();
    let groups = tracker.groups();
    server.run(&mut other, "SET k 1");
    let remember = |groups| tracker.remember(session.id(), [&b"k"[..]].into_iter(), groups);
    assert!(!remember(groups), "what was read may be older than the change");
    assert!(remember(tracker.groups()));
}

#[test]
fn what_a_request_reads_is_read_after_it_has_begun() {
    let mut server = server();
    let (mut session, mut receiver) = tracking(&mut server, "");
    let mut other = server.session();
    server.run(&mut other, "SET k 1");
    assert_eq!(server.run(&mut session, "GET k").0, b"$1\r\n1\r\n");
    server.run(&mut other, "SET k 2");
    assert_eq!(pushed(&mut receiver), invalidation("k"));
    server.run(&mut other, "SET k 3");
    assert_eq!(pushed(&mut receiver), "");
}

#[test]
fn a_number_that_a_transaction_has_not_used_is_not_taken_for_its_own() {
    let mut server = server();
    let (mut session, mut receiver) = tracking(&mut server, "NOLOOP");
    let mut other = server.session();
    server.run(&mut session, "SET k 1");
    for idle in ["DEL missing", "SET k 2 NX", "LPUSH k 1"] {
        server.run(&mut session, "GET k");
        server.run(&mut session, idle);
        server.run(&mut other, "SET k 3");
        assert_eq!(pushed(&mut receiver), invalidation("k"), "{idle}");
    }
}

#[test]
fn whose_a_transaction_was_is_forgotten_with_its_group() {
    let mut server = server();
    let (mut session, mut receiver) = tracking(&mut server, "NOLOOP");
    let mut other = server.session();
    server.run(&mut session, "GET k");
    let shared = server.shared.clone();
    for line in ["SET k 1\r\n", "SET k 2\r\n"] {
        let mut decoder =
            tokaido_wire::resp::RequestDecoder::new(tokaido_wire::resp::Limits::default());
        decoder.decode(line.as_bytes()).expect("a request");
        let mut out = Vec::new();
        let mut reply = tokaido_wire::resp::ReplyWriter::new(&mut out, session.version());
        let mut writer = shared.store().writer().expect("a writer");
        server.on_writer(&mut *writer, &mut session, decoder.request(line.as_bytes()), &mut reply);
        // The group fails: what was to be done when durable is dropped, and its numbers are reused.
        drop(writer);
        drop(session.publish_later());
    }
    server.run(&mut other, "SET k 3");
    assert_eq!(pushed(&mut receiver), invalidation("k"));
}

#[test]
fn what_is_told_comes_behind_the_replies_of_the_run() {
    let mut server = server();
    let (mut session, mut receiver) = tracking(&mut server, "");
    server.run(&mut session, "GET k");
    pushed(&mut receiver);
    server.run(&mut session, "SET k 1");
    let mut sent = Vec::new();
    receiver.take_some(&mut sent).expect("it is open");
    assert!(sent.is_empty(), "it overtakes the reply");
    assert_eq!(pushed(&mut receiver), invalidation("k"));
}

#[test]
fn a_session_that_is_reset_or_gone_tracks_nothing() {
    let mut server = server();
    let (mut session, receiver) = tracking(&mut server, "BCAST PREFIX a PREFIX b");
    let (other, _other_receiver) = tracking(&mut server, "");
    assert_eq!(server.shared.tracker.sizes().prefixes, 2);
    server.run(&mut session, "RESET");
    assert_eq!(server.shared.tracker.sizes().prefixes, 0);
    assert_eq!(server.shared.tracker.sizes().clients, 1);
    drop((session, receiver, other));
    assert_eq!(server.shared.tracker.sizes().clients, 0);
}
