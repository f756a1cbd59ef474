//! Sockets that reach other machines, as handlers see them: the program around the virtual machine has them, and does
//! all input and output.

use std::task::Poll;

/// Where a socket connects to.
#[derive(Clone, Copy, Debug)]
pub struct SocketTarget<'t> {
    /// Whether it sends and receives datagrams, by UDP; such a socket is of no pool.
    pub is_of_datagrams: bool,
    /// A name, an address, or `unix:` and a path.
    pub host: &'t str,
    /// The port, but for a path.
    pub port: Option<u16>,
    /// The name of the pool that a connection is taken from and goes back to.
    pub pool: &'t [u8],
    /// The number of connections that this pool keeps, if it is not there yet.
    pub pool_size: usize,
}

/// What is to be received.
#[derive(Clone, Copy, Debug)]
pub enum Receive<'r> {
    /// So many bytes.
    Size(usize),
    /// A line, without its end.
    Line,
    /// All that comes until the other side closes.
    All,
    /// Whatever is there, up to so many bytes.
    Any(usize),
    /// One datagram, of which so many bytes are taken.
    Datagram(usize),
    /// What comes before a text, and with `inclusive` that text, too; in parts of about `size` bytes if that is not 0.
    Until {
        /// The text; it is not empty.
        text: &'r [u8],
        /// The size of a part.
        size: usize,
        /// Whether the text is given, too.
        inclusive: bool,
    },
}

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// All of it.
    Whole,
    /// A part of what comes before a text.
    Part,
}

/// An option of a socket.
#[derive(Clone, Copy, Debug)]
pub enum SocketOption {
    /// `SO_KEEPALIVE`
    KeepAlive,
    /// `SO_REUSEADDR`
    ReuseAddress,
    /// `TCP_NODELAY`
    NoDelay,
    /// `SO_SNDBUF`
    SendBuffer,
    /// `SO_RCVBUF`
    ReceiveBuffer,
}

/// The sockets of one request, each known by its number. What is not done yet is `Pending`: then the request is
/// resumed when it may be, and the operation is to be tried again.
///
/// An error is its message.
pub trait Sockets {
    /// Begins to connect, or takes a connection out of a pool; gives the socket's number.
    ///
    /// # Errors
    /// If that address is not allowed, or there are too many sockets.
    fn connect(&mut self, target: SocketTarget<'_>) -> Result<u32, String>;

    /// Whether it is connected; gives how often the connection was taken out of a pool.
    fn connected(&mut self, socket: u32) -> Poll<Result<u32, String>>;

    /// Sends what it can of this, and gives how many bytes that is.
    fn send(&mut self, socket: u32, bytes: &[u8]) -> Poll<Result<usize, String>>;

    /// Receives, and appends that to `out`; on an error, what has come so far.
    fn receive(
        &mut self,
        socket: u32,
        what: Receive<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Received, String>>;

    /// How many bytes have come, and were not received yet.
    fn buffered(&self, socket: u32) -> usize;

    /// Appends what has come so far of what was to be received, which is given up.
    fn give_up(&mut self, socket: u32, what: Receive<'_>, out: &mut Vec<u8>);

    /// Closes it.
    fn close(&mut self, socket: u32);

    /// Puts the connection into its pool for another request, for at most so many milliseconds if that is not 0. A pool
    /// that is not there yet keeps as many as this says, or else its target.
    ///
    /// # Errors
    /// If it is closed, or something was not received.
    fn keep(&mut self, socket: u32, time_ms: u64, pool_size: Option<usize>) -> Result<(), String>;

    /// Sets an option.
    ///
    /// # Errors
    /// What the system says.
    fn set_option(&mut self, socket: u32, option: SocketOption, value: u32) -> Result<(), String>;

    /// Resumes the handler that waits under this number, if there is one.
    fn wake(&mut self, slot: u64);
}
