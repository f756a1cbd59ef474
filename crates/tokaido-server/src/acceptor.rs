//! The thread that accepts connections and deals them to the workers.
//!
//! One acceptor, and not a listening socket for each worker (`SO_REUSEPORT`): with few connections
//! the kernel's hash leaves workers idle, and a second server on the same port would go unnoticed.

use std::{
    io,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::LocalSet,
};

use crate::{
    metrics::Metrics,
    worker::{Accepted, Places},
};

/// How long to wait after an error of the system (no file descriptors, no memory) before the next
/// attempt.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Opens a listening socket, on which so many connections may wait to be accepted.
pub(crate) fn listen(address: SocketAddr, queue_max: usize) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // So that a server can start again at once: connections of the last one may still be closing.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(queue_max).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

/// A worker as the acceptor sees it.
pub(crate) struct Seat {
    pub(crate) queue: mpsc::UnboundedSender<Accepted>,
    pub(crate) open: Arc<AtomicUsize>,
}

pub(crate) struct Acceptor {
    pub(crate) seats: Vec<Seat>,
    pub(crate) connections_max: usize,
    /// Connections over the limit that are told so at one time; still more are closed unheard.
    pub(crate) refusals_max: usize,
    /// A peer that has been silent for so long is asked whether it is still there.
    pub(crate) keepalive: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// Connections that are open, and those that are being refused.
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) refusals: Arc<AtomicUsize>,
}

/// Accepts until `stop` becomes true or its sender is gone.
pub(crate) fn run(
    acceptor: Acceptor,
    listeners: Vec<std::net::TcpListener>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let acceptor = Rc::new(acceptor);
    tasks.block_on(&runtime, async {
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            let acceptor = acceptor.clone();
            tokio::task::spawn_local(async move { acceptor.accept_all(&listener).await });
        }
        // An error means that the server is gone, which is a stop, too.
        let _ = stop.wait_for(|&stop| stop).await;
        Ok(())
    })
}

impl Acceptor {
    async fn accept_all(&self, listener: &TcpListener) {
        let mut failing = false;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    failing = false;
                    self.deal(stream, peer);
                }
                // The client was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "cannot accept connections; trying again");
                    }
                    failing = true;
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    /// Hands a connection to the worker that has the fewest.
    fn deal(&self, stream: TcpStream, peer: SocketAddr) {
        let stream = match prepare(stream, self.keepalive) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%peer, %error, "a connection broke before it was served");
                return;
            }
        };
        let Some(seat) = self.seats.iter().min_by_key(|seat| seat.open.load(Relaxed)) else {
            return;
        };
        let admitted = self.open.load(Relaxed) < self.connections_max;
        let places = if admitted {
            Places::take(&[&self.open, &seat.open])
        } else {
            self.metrics.connections_refused.fetch_add(1, Relaxed);
            if self.refusals.load(Relaxed) >= self.refusals_max {
                return;
            }
            Places::take(&[&self.refusals])
        };
        // A worker that is gone is a server that stops: the connection is closed.
        let _ = seat.queue.send(Accepted { stream, peer, admitted, places });
    }
}

/// Takes the socket out of the acceptor's event loop, so that it can enter a worker's.
fn prepare(stream: TcpStream, keepalive: Duration) -> io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(keepalive))?;
    Ok(stream)
}
