//! What a worker runs in the writer's place, and what it leaves to the writer's thread.

use super::*;

/// Runs requests like a worker that has taken the writer's place.
struct Brief {
    server: Server,
    session: Session,
    out: Vec<u8>,
}

impl Brief {
    fn new() -> Self {
        let server = Server::new(None, &Sources::default());
        let session = server.session();
        Self { server, session, out: Vec::new() }
    }

    fn step(&mut self, line: &str) -> Step {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut writer = self.server.shared.clone().store().writer().unwrap();
        let target = Target::Writer(&mut *writer);
        let (shared, procedures) = (&*self.server.shared, self.server.program.procedures());
        let context = Context::new(shared, procedures, target, false);
        let mut reply = ReplyWriter::new(&mut self.out, self.session.version());
        let request = Request::from_arguments(&arguments);
        let mut context = Context { is_brief: true, ..context };
        let step = execute(&mut self.session, request, &mut context, &mut reply);
        writer.flush().unwrap();
        step
    }

    /// Fills the keys `list` and `set` with more elements than a worker visits.
    fn fill(&mut self) {
        let texts: String = (0..1001).map(|i| format!(" {i}")).collect();
        for command in ["RPUSH list", "SADD set"] {
            self.server.run(&mut self.session, &format!("{command}{texts}"));
        }
    }
}

#[test]
fn short_writes_and_reads_run_on_a_worker() {
    let mut brief = Brief::new();
    brief.fill();
    for line in [
        "SET k 1",
        "INCR k",
        "GET k",
        "EXPIRE k 100",
        "DEL k",
        "HSET h f v",
        "LPUSH list x",
        "RPOP list",
        "LPOP list 10",
        "SADD set x",
        "SPOP set",
        "ZADD z 1 m",
        "ZPOPMIN z",
        "ZPOPMAX z 10",
        "LRANGE list 0 9",
    ] {
        assert_eq!(brief.step(line), Step::Done, "{line}");
    }
    let replies = String::from_utf8(brief.out).unwrap();
    assert!(
        replies.starts_with("+OK\r\n:2\r\n$1\r\n2\r\n:1\r\n:1\r\n:1\r\n:1002\r\n"),
        "{replies}"
    );
}

#[test]
fn what_may_take_long_waits_or_spans_transactions_is_left_for_the_writer() {
    let mut brief = Brief::new();
    brief.fill();
    let many: String = (0..100).map(|i| format!(" {i}")).collect();
    let lines = [
        "SUNIONSTORE to set",
        "LREM list 0 x",
        "FLUSHALL",
        "COPY list other",
        "LPOP list 1001",
        "SPOP set 1001",
        "KEYS *",
        "LRANGE list 0 -1",
        "BLPOP none 1",
        "EXEC",
        "WATCH k",
        "PING",
    ];
    for line in lines.map(str::to_owned).into_iter().chain([format!("SADD set{many}")]) {
        assert_eq!(brief.step(&line), Step::NeedsWriter, "{line}");
        assert_eq!(brief.out, b"", "{line}");
    }
    brief.server.run(&mut brief.session, "PING");
    let (len, _) = brief.server.run(&mut brief.session, "LLEN list");
    assert_eq!(len, b":1001\r\n");
}

#[test]
fn a_script_earns_its_place_on_the_workers() {
    let mut brief = Brief::new();
    let line = "EVAL redis.call('INCR','n') 0";
    assert_eq!(brief.step(line), Step::NeedsWriter);
    let calls = (0..1000).position(|_| {
        brief.server.run_on_writer(
            &mut brief.session,
            &line.replace("EVAL ", "EVAL \"").replace(" 0", "\" 0"),
        );
        brief.step(line) == Step::Done
    });
    assert!(calls.is_some(), "its calls are short");
}
