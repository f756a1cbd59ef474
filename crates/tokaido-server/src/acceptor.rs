//! Accepts connections and hands them to the workers. The acceptor runs on a thread of its own or, where there is
//! only one worker, on that worker's thread, which saves each connection a hop between threads.
//!
//! There is one acceptor, not a listening socket for each worker (`SO_REUSEPORT`): with few connections the kernel's
//! hash leaves workers idle, and a second server on the same port would go unnoticed.

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
use tokio::{
    io::unix::AsyncFd,
    net::UnixListener,
    sync::{mpsc, watch},
    task::{JoinSet, LocalSet},
};

use crate::{
    detect::ProtocolName,
    listeners::{Listener, ListenerSocket},
    metrics::Metrics,
    transport::{Socket, SocketAddress},
    worker::{Accepted, Permits},
};

/// How long to wait after a system error (no file descriptors, no memory) before the next attempt.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// A worker as the acceptor sees it.
pub(crate) struct WorkerHandle {
    pub(crate) queue: mpsc::UnboundedSender<Accepted>,
    pub(crate) open: Arc<AtomicUsize>,
}

pub(crate) struct Acceptor {
    pub(crate) workers: Vec<WorkerHandle>,
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

/// Accepts on a thread of its own, until `stop` becomes true or its sender is dropped.
pub(crate) fn run(
    acceptor: Acceptor,
    listeners: Vec<Listener>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let _accepting = acceptor.start(listeners)?;
        // An error means that the server is gone, so stop as well.
        let _ = stop.wait_for(|&stop| stop).await;
        Ok(())
    })
}

impl Acceptor {
    /// Accepts in the event loop of this thread, until the returned set is dropped.
    pub(crate) fn start(self, listeners: Vec<Listener>) -> io::Result<JoinSet<()>> {
        let (acceptor, mut accepting) = (Rc::new(self), JoinSet::new());
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
            let acceptor = acceptor.clone();
            accepting.spawn_local(async move {
                // Removed when the task ends.
                let _file = file;
                acceptor.accept_all(&incoming, &address, &protocols).await;
            });
        }
        Ok(accepting)
    }

    async fn accept_all(
        &self,
        incoming: &Incoming,
        address: &SocketAddress,
        protocols: &Arc<[ProtocolName]>,
    ) {
        // A wildcard address does not tell which local address the client used.
        let local = address.tcp().filter(|address| !address.ip().is_unspecified());
        let mut failing = false;
        loop {
            match self.accept(incoming, address).await {
                Ok((Ok(socket), peer)) => {
                    failing = false;
                    self.deal(socket, peer, local, protocols);
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

    /// Hands a connection to the worker with the fewest connections.
    fn deal(
        &self,
        socket: Socket,
        peer: SocketAddress,
        local: Option<SocketAddr>,
        protocols: &Arc<[ProtocolName]>,
    ) {
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.open.load(Relaxed))
        else {
            return;
        };
        let admitted = self.open.load(Relaxed) < self.connections_max;
        let permits = if admitted {
            Permits::take(&[&self.open, &worker.open])
        } else {
            self.metrics.connections_refused.fetch_add(1, Relaxed);
            if self.refusals.load(Relaxed) >= self.refusals_max {
                return;
            }
            Permits::take(&[&self.refusals])
        };
        let protocols = protocols.clone();
        // If the worker is gone, the server is stopping, and the connection is closed.
        let _ = worker.queue.send(Accepted { socket, peer, local, protocols, admitted, permits });
    }
}

/// Sets the options that accepted sockets inherit from the listening one.
fn prepare(listener: &TcpListener, keepalive: Duration) -> io::Result<()> {
    let listener = SockRef::from(listener);
    listener.set_tcp_nodelay(true)?;
    listener.set_tcp_keepalive(&TcpKeepalive::new().with_time(keepalive))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

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
}
