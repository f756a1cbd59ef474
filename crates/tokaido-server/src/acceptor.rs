//! Accepts connections. Several workers accept from the same listening sockets, each on its own thread. A worker keeps
//! what it accepts, unless another one has fewer connections.
//!
//! An acceptor with a thread of its own would cost each connection two hops between threads. Listening sockets for each
//! worker (`SO_REUSEPORT`) would leave connections to a worker that is busy with a long call, though others are idle, and
//! a second server on the same port would go unnoticed.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{io::unix::AsyncFd, net::UnixListener, sync::mpsc, task::JoinSet};

use crate::{
    detect::ProtocolName,
    listeners::{Listener, ListenerSocket},
    metrics::Metrics,
    permit::Permit,
    transport::{Socket, SocketAddress},
};

/// How long to wait after a system error (no file descriptors, no memory) before the next attempt.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// For how many seconds a silent client is not accepted, as far as the system keeps to it: it counts in retransmissions.
#[cfg(target_os = "linux")]
static SILENCE_S: libc::c_int = 1;

/// How many workers accept, at most: several, so that new connections need not wait for one in a long call, but few,
/// since each new connection wakes all of them that are idle.
pub(crate) const ACCEPTORS_MAX: usize = 4;

/// A worker keeps a connection that it has accepted if no other one has fewer, give or take one connection in so many.
const SLACK_PART: usize = 8;

/// A worker as the acceptors see it.
pub(crate) struct WorkerHandle {
    pub(crate) queue: mpsc::UnboundedSender<Accepted>,
    /// Connections that it has.
    pub(crate) open: Arc<AtomicUsize>,
}

/// A connection that a worker is to serve.
pub(crate) struct Accepted {
    pub(crate) socket: Socket,
    pub(crate) peer: SocketAddress,
    /// The server's end, if its listener has only one address.
    pub(crate) local: Option<SocketAddr>,
    /// The protocols that its listener allows, the preferred one first.
    pub(crate) protocols: Arc<[ProtocolName]>,
    /// Whether there was room for it. If not, it is refused in its own protocol.
    pub(crate) admitted: bool,
    /// Counts it for the limits, as one that is open or one that is being refused.
    pub(crate) permit: Permit,
    /// Counts it as its worker's, if it was admitted.
    pub(crate) of_worker: Option<Permit>,
}

/// The acceptor of one worker.
#[derive(Clone)]
pub(crate) struct Acceptor {
    /// The index of the worker.
    pub(crate) own: usize,
    pub(crate) workers: Arc<[WorkerHandle]>,
    pub(crate) connections_max: usize,
    /// Connections over the limit that are sent a refusal at one time; more are closed without one.
    pub(crate) refusals_max: usize,
    /// How long a peer may be silent before it is asked whether it is still there.
    pub(crate) keepalive: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// Connections that are open.
    pub(crate) open: Arc<AtomicUsize>,
    /// Connections that are being refused.
    pub(crate) refusals: Arc<AtomicUsize>,
}

/// A listening socket in the acceptor's event loop.
enum Incoming {
    Tcp(AsyncFd<TcpListener>),
    Unix(UnixListener),
}

impl Acceptor {
    /// Accepts in the event loop of this thread, until the returned set is dropped. `keep` takes the connections that
    /// are for this worker.
    pub(crate) fn start(
        self,
        listeners: Vec<Listener>,
        keep: impl Fn(Accepted) + 'static,
    ) -> io::Result<JoinSet<()>> {
        let (acceptor, keep, mut accepting) = (Rc::new(self), Rc::new(keep), JoinSet::new());
        for Listener { socket, address, protocols, file } in listeners {
            let incoming = match socket {
                ListenerSocket::Tcp(socket) => {
                    prepare(&socket, acceptor.keepalive)?;
                    // SAFETY: the socket owns its descriptor for its whole lifetime, and gives
                    // access to it only by reference.
                    Incoming::Tcp(unsafe { AsyncFd::register(socket) }.map_err(io::Error::from)?)
                }
                ListenerSocket::Unix(socket) => Incoming::Unix(UnixListener::from_std(socket)?),
            };
            let (acceptor, keep) = (acceptor.clone(), keep.clone());
            accepting.spawn_local(async move {
                // Removed when the last acceptor ends.
                let _file = file;
                acceptor.accept_all(&incoming, &address, &protocols, &*keep).await;
            });
        }
        Ok(accepting)
    }

    async fn accept_all(
        &self,
        incoming: &Incoming,
        address: &SocketAddress,
        protocols: &Arc<[ProtocolName]>,
        keep: &dyn Fn(Accepted),
    ) {
        // A wildcard address does not tell which local address the client used.
        let local = address.tcp().filter(|address| !address.ip().is_unspecified());
        let mut failing = false;
        loop {
            match self.accept(incoming, address).await {
                Ok((Ok(socket), peer)) => {
                    failing = false;
                    if let Some((permit, admitted)) = self.admit() {
                        let (protocols, of_worker) = (protocols.clone(), None);
                        self.deal(
                            Accepted {
                                socket,
                                peer,
                                local,
                                protocols,
                                admitted,
                                permit,
                                of_worker,
                            },
                            keep,
                        );
                    }
                }
                Ok((Err(error), peer)) => {
                    tracing::debug!(%peer, %error, "a connection broke before it was served");
                }
                // The client was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    if !failing {
                        tracing::warn!(%address, %error, "cannot accept connections; trying again");
                    }
                    failing = true;
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    /// Accepts a connection. Its socket is in no event loop, so that it can enter a worker's. A TCP
    /// socket never was in this one, which would cost two system calls.
    async fn accept(
        &self,
        incoming: &Incoming,
        address: &SocketAddress,
    ) -> io::Result<(io::Result<Socket>, SocketAddress)> {
        match incoming {
            Incoming::Tcp(listener) => {
                let (stream, peer) = loop {
                    // Consumes the budget like every other wait here, so that no listener starves the others.
                    tokio::task::coop::consume_budget().await;
                    let mut ready = listener.readable().await?;
                    if let Ok(accepted) = ready.try_io(|listener| listener.get_ref().accept()) {
                        break accepted?;
                    }
                };
                let socket = stream.set_nonblocking(true).map(|()| Socket::Tcp(stream));
                Ok((socket, SocketAddress::Tcp(peer)))
            }
            Incoming::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((stream.into_std().map(Socket::Unix), address.clone()))
            }
        }
    }

    /// Counts a connection as open, or as one that is refused. `None` if it is closed without a word.
    fn admit(&self) -> Option<(Permit, bool)> {
        if let Some(permit) = Permit::take(&self.open, self.connections_max) {
            return Some((permit, true));
        }
        self.metrics.connections_refused.fetch_add(1, Relaxed);
        Permit::take(&self.refusals, self.refusals_max).map(|permit| (permit, false))
    }

    /// Keeps a connection, or hands it to the worker with the fewest.
    fn deal(&self, mut accepted: Accepted, keep: &dyn Fn(Accepted)) {
        let open = |worker: &WorkerHandle| worker.open.load(Relaxed);
        let own = &self.workers[self.own];
        let idlest = self.workers.iter().min_by_key(|worker| open(worker)).unwrap_or(own);
        let is_kept = open(own) <= open(idlest) + open(idlest) / SLACK_PART;
        let worker = if is_kept { own } else { idlest };
        if accepted.admitted {
            accepted.of_worker = Permit::take(&worker.open, usize::MAX);
        }
        match is_kept {
            true => keep(accepted),
            // If that worker is gone, the server is stopping, and the connection is closed.
            false => drop(worker.queue.send(accepted)),
        }
    }
}

/// Sets the options of a listening socket, most of which the accepted ones inherit.
fn prepare(listener: &TcpListener, keepalive: Duration) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(keepalive))?;
    #[cfg(target_os = "linux")]
    if let Err(error) = defer(listener) {
        tracing::debug!(%error, "connections are accepted before their first bytes have come");
    }
    Ok(())
}

/// Has the system hold a connection back until its first bytes have come, or the client has been silent for
/// [`SILENCE_S`]. In all protocols the client begins, so nobody waits for that. A worker can then read the first request
/// at once: a connection for a single request need not enter its event loop, nor leave it.
#[cfg(target_os = "linux")]
fn defer(listener: &TcpListener) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
    let len = size_of_val(&SILENCE_S) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the option is read from a static of that many bytes.
    let failed = unsafe {
        libc::setsockopt(listener.as_raw_fd(), level, option, (&raw const SILENCE_S).cast(), len)
    } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        io::{Read, Write},
        net::TcpStream,
        os::unix::net::UnixStream,
    };

    use super::*;

    /// Accepts a connection on a worker; returns the worker that gets it.
    fn accept(acceptor: &Acceptor, kept: &RefCell<Vec<Accepted>>) -> usize {
        let open = || acceptor.workers.iter().map(|w| w.open.load(Relaxed)).collect::<Vec<_>>();
        let (before, kept_before) = (open(), kept.borrow().len());
        let socket = Socket::Unix(UnixStream::pair().expect("two sockets").0);
        let peer = SocketAddress::Tcp(([127, 0, 0, 1], 1).into());
        let (permit, admitted) = acceptor.admit().expect("there is room");
        let (protocols, of_worker) = (Arc::default(), None);
        acceptor.deal(
            Accepted { socket, peer, local: None, protocols, admitted, permit, of_worker },
            &|accepted| kept.borrow_mut().push(accepted),
        );
        let found = open().iter().zip(before).position(|(after, before)| *after > before);
        let found = found.expect("a worker has one more");
        assert_eq!(kept.borrow().len() - kept_before, usize::from(found == acceptor.own));
        found
    }

    #[test]
    fn a_worker_keeps_what_it_accepts_unless_another_one_has_fewer() {
        let (queues, _incoming): (Vec<_>, Vec<_>) =
            (0..2).map(|_| mpsc::unbounded_channel()).unzip();
        let workers =
            queues.into_iter().map(|queue| WorkerHandle { queue, open: Arc::default() }).collect();
        let first = Acceptor {
            own: 0,
            workers,
            connections_max: 100,
            refusals_max: 0,
            keepalive: Duration::ZERO,
            metrics: Arc::new(Metrics::new(2)),
            open: Arc::default(),
            refusals: Arc::default(),
        };
        let second = Acceptor { own: 1, ..first.clone() };
        let kept = RefCell::default();
        let given: Vec<_> = (0..4).map(|_| accept(&first, &kept)).collect();
        assert_eq!(given, [0, 1, 0, 1]);
        assert_eq!(accept(&second, &kept), 1);
        for _ in 0..13 {
            assert_eq!([accept(&first, &kept), accept(&second, &kept)], [0, 1]);
        }
        assert_eq!(accept(&first, &kept), 0);
        // With 16 connections on either, 18 against 16 is close enough.
        let given: Vec<_> = (0..4).map(|_| accept(&second, &kept)).collect();
        assert_eq!(given, [1, 1, 1, 0]);
    }

    #[test]
    fn what_is_set_for_a_listener_holds_for_its_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        prepare(&listener, Duration::from_secs(77)).expect("prepared");
        let address = listener.local_addr().expect("an address");
        let _client = TcpStream::connect(address).expect("a connection");
        let (accepted, _) = listener.accept().expect("the connection");
        let accepted = SockRef::from(&accepted);
        assert!(accepted.tcp_nodelay().expect("an option"));
        assert!(accepted.keepalive().expect("an option"));
        let time = accepted.tcp_keepalive_time().expect("an option");
        assert_eq!(time, Duration::from_secs(77));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_is_accepted_with_its_first_bytes_or_after_some_silence() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        prepare(&listener, Duration::from_secs(77)).expect("prepared");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("a connection");
        listener.set_nonblocking(true).expect("an option");
        let too_early = listener.accept().expect_err("the client is silent");
        assert_eq!(too_early.kind(), io::ErrorKind::WouldBlock);
        listener.set_nonblocking(false).expect("an option");
        client.write_all(b"PING").expect("sent");
        let (mut accepted, _) = listener.accept().expect("the connection");
        accepted.set_nonblocking(true).expect("an option");
        assert_eq!(accepted.read(&mut [0; 9]).expect("they have come"), 4);
        let _silent = TcpStream::connect(address).expect("a connection");
        listener.accept().expect("the silent connection");
    }
}
