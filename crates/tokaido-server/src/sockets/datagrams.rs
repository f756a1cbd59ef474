//! A datagram socket. If the peer accepts no datagrams, the socket reports it separately, as an
//! error, so whoever waits for a datagram must wait for errors, too.

use std::{
    cell::RefCell,
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use socket2::SockRef;
use tokio::{io::Interest, net::UdpSocket};

/// What a receiver waits for.
const DATAGRAM_OR_ERROR: Interest = Interest::READABLE.add(Interest::ERROR);

type Readiness = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// A socket that sends datagrams to one peer, and receives them only from it.
pub(super) struct Datagrams {
    pub(super) socket: Rc<UdpSocket>,
    /// Set while a receiver waits.
    readiness: RefCell<Option<Readiness>>,
}

impl Datagrams {
    pub(super) async fn to(peer: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(peer).await?;
        Ok(Self { socket: Rc::new(socket), readiness: RefCell::default() })
    }

    /// Receives one datagram; what does not fit is lost.
    pub(super) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let socket = SockRef::from(&*self.socket);
        let mut receive = || (&*socket).read(buffer);
        match self.socket.try_io(Interest::READABLE, &mut receive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.try_io(Interest::ERROR, receive)
            }
            received => received,
        }
    }

    pub(super) fn poll_receive_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut readiness = self.readiness.borrow_mut();
        let waiting = readiness.get_or_insert_with(|| {
            let socket = Rc::clone(&self.socket);
            Box::pin(async move { socket.ready(DATAGRAM_OR_ERROR).await.map(drop) })
        });
        let result = ready!(waiting.as_mut().poll(cx));
        *readiness = None;
        Poll::Ready(result)
    }
}
