//! The generator's maximum: it talks to a server of its own that does next to nothing.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use mio::{Events, Interest, Poll, Token, unix::SourceFd};

use super::{
    operation::{Answer, Operation},
    protocol::{Codec, ProtocolError, Sent},
    run::{Load, LoadError, Pace, run_with},
    socket::Address,
};

/// How long the measurement takes.
const TIME: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(200);

/// How often the server checks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Size of the server's read buffer.
const READ_LEN: usize = 64 << 10;

/// The generator's maximum with these connections, pipelines and requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Requests per second of one thread that has a core to itself.
    pub per_thread: f64,
    /// Requests per second of all threads of the load.
    pub rate: f64,
}

/// The requests of a protocol, each of which comes back unchanged.
struct Echo(Box<dyn Codec>);

impl Codec for Echo {
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        self.0.encode(operation, out);
    }

    fn decode(&self, input: &[u8], sent: Sent) -> Result<Option<(usize, Answer)>, ProtocolError> {
        Ok((input.len() >= sent.len).then_some((sent.len, Answer::Done)))
    }
}

/// Measures the maximum, in under a second. It runs a closed loop and counts the generator's
/// processor time per request, so that it does not matter whether the server has a core to itself.
///
/// # Errors
/// See [`LoadError`].
pub fn measure(load: &Load, stop: &AtomicBool) -> Result<Ceiling, LoadError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(LoadError::System)?;
    let address = listener.local_addr().map_err(LoadError::System)?;
    let load = Load {
        address: Address::Tcp { name: address.to_string(), address },
        pace: Pace::Closed,
        reconnect: false,
        time: TIME,
        warm_up: WARM_UP,
        requests: None,
        ..load.clone()
    };
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| echo(&listener, &is_over));
        let codec = || Box::new(Echo(load.protocol.codec(&load.options))) as Box<dyn Codec>;
        let outcome = run_with(&load, stop, &mut |_| {}, &codec);
        is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    let threads = load.threads as f64;
    // If the kernel does not say how long a thread ran, assume that it ran all the time.
    let ran = if outcome.ran > 0.0 { outcome.ran } else { 1.0 };
    let per_thread = outcome.rate / threads / ran;
    Ok(Ceiling { per_thread, rate: per_thread * threads })
}

/// Sends back what arrives until `is_over`. The client notices any error of a connection.
fn echo(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<()> {
    const LISTENER: Token = Token(usize::MAX);
    listener.set_nonblocking(true)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
    let mut connections = Vec::<(TcpStream, Vec<u8>)>::new();
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; READ_LEN];
    while !is_over.load(Ordering::Relaxed) {
        poll.poll(&mut events, Some(LOOK))?;
        for event in &events {
            if event.token() != LISTENER {
                let (stream, pending) = &mut connections[event.token().0];
                let _ = send_back(stream, pending, &mut buffer);
                continue;
            }
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                let (token, both) =
                    (Token(connections.len()), Interest::READABLE | Interest::WRITABLE);
                poll.registry().register(&mut SourceFd(&stream.as_raw_fd()), token, both)?;
                connections.push((stream, Vec::new()));
            }
        }
    }
    Ok(())
}

/// Reads and writes until the socket would block.
fn send_back(stream: &mut TcpStream, pending: &mut Vec<u8>, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        while !pending.is_empty() {
            let written = stream.write(pending)?;
            pending.drain(..written);
        }
        match stream.read(buffer)? {
            0 => return Ok(()),
            len => pending.extend_from_slice(&buffer[..len]),
        }
    }
}
