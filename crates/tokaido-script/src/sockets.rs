//! Sockets to other machines, as handlers see them. The program around the virtual machine owns them, and does all
//! input and output.

use std::task::Poll;

/// Where a socket connects to.
#[derive(Clone, Copy, Debug)]
pub struct SocketTarget<'t> {
    /// Whether it sends and receives UDP datagrams; such a socket belongs to no pool.
    pub is_of_datagrams: bool,
    /// A name, an address, or `unix:` and a path.
    pub host: &'t str,
    /// The port, except for a path.
    pub port: Option<u16>,
    /// The name of the pool that a connection is taken from and returned to.
    pub pool: &'t [u8],
    /// The number of connections that this pool keeps, if the pool is new.
    pub pool_size: usize,
}

/// What to receive.
#[derive(Clone, Copy, Debug)]
pub enum Receive<'r> {
    /// That many bytes.
    Size(usize),
    /// A line, without its terminator.
    Line,
    /// Everything until the other side closes.
    All,
    /// Whatever is there, up to that many bytes.
    Any(usize),
    /// One datagram, of which that many bytes are taken.
    Datagram(usize),
    /// Everything before a text, and with `inclusive` that text, too; in parts of about `size` bytes if that is not 0.
    Until {
        /// The text; it is not empty.
        text: &'r [u8],
        /// The size of a part.
        size: usize,
        /// Whether the text itself is included.
        inclusive: bool,
    },
}

/// How much was received.
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

/// The sockets of one request, each known by its number. An operation that is not done yet is `Pending`: the request
/// is resumed once it may be done, and has to try again.
///
/// An error is its message.
pub trait Sockets {
    /// Begins to connect, or takes a connection from a pool; gives the socket's number.
    ///
    /// # Errors
    /// If that address is not allowed, or there are too many sockets.
    fn connect(&mut self, target: SocketTarget<'_>) -> Result<u32, String>;

    /// Whether it is connected; gives how often the connection was taken from a pool.
    fn connected(&mut self, socket: u32) -> Poll<Result<u32, String>>;

    /// Sends as many of these bytes as it can, and gives how many.
    fn send(&mut self, socket: u32, bytes: &[u8]) -> Poll<Result<usize, String>>;

    /// Receives, and appends to `out`; on an error, appends what has come so far.
    fn receive(
        &mut self,
        socket: u32,
        what: Receive<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Received, String>>;

    /// How many bytes have come but were not received yet.
    fn buffered(&self, socket: u32) -> usize;

    /// Gives up a receive, and appends what has come of it so far.
    fn give_up(&mut self, socket: u32, what: Receive<'_>, out: &mut Vec<u8>);

    /// Closes it.
    fn close(&mut self, socket: u32);

    /// Returns the connection to its pool for another request, for at most that many milliseconds if that is not 0. A
    /// new pool keeps as many connections as `pool_size` says, or else the target.
    ///
    /// # Errors
    /// If it is closed, or data was left unreceived.
    fn keep(&mut self, socket: u32, time_ms: u64, pool_size: Option<usize>) -> Result<(), String>;

    /// Sets an option.
    ///
    /// # Errors
    /// The system's error.
    fn set_option(&mut self, socket: u32, option: SocketOption, value: u32) -> Result<(), String>;

    /// Resumes the handler that waits in this slot, if there is one.
    fn wake(&mut self, slot: u64);
}
