//! One connection: requests that wait for their answers, and the bytes in both directions.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
};

use super::{
    operation::{Answer, Kind},
    protocol::{Codec, ProtocolError, Sent},
    run::LoadError,
    socket::{Address, Socket},
};

/// A request that waits for its answer. Times are in ns since the worker began.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) due: u64,
    pub(super) sent_at: u64,
    pub(super) sent: Sent,
}

pub(super) struct Connection {
    pub(super) socket: Socket,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    pub(super) in_flight: VecDeque<InFlight>,
    /// Whether it is in the list of connections with room.
    pub(super) is_listed: bool,
    /// Whether its only request has been sent, and whether the server has closed it since.
    pub(super) is_used: bool,
    pub(super) is_closed: bool,
}

impl Connection {
    /// Connects, and waits for the replies to the initial requests.
    pub(super) fn open(address: &Address, codec: &dyn Codec) -> Result<Self, LoadError> {
        Self::open_used(address, codec, &[])
    }

    /// The same, and then sends these requests one by one, waiting for the answer to each.
    pub(super) fn open_used(
        address: &Address,
        codec: &dyn Codec,
        requests: &[(Kind, Vec<u8>)],
    ) -> Result<Self, LoadError> {
        let mut socket = greeted(address, codec)?;
        for (kind, request) in requests {
            exchange(&mut socket, codec, address, *kind, request)?;
        }
        socket.set_ready().map_err(LoadError::System)?;
        let (out, input) = (Vec::new(), Vec::new());
        Ok(Self {
            socket,
            out,
            written: 0,
            input,
            in_flight: VecDeque::new(),
            is_listed: false,
            is_used: false,
            is_closed: false,
        })
    }

    /// The buffer to which requests are appended.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Writes as much as the socket accepts, and returns the number of bytes.
    pub(super) fn write(&mut self) -> io::Result<u64> {
        let before = self.written;
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => self.written += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok((self.written - before) as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let len = self.written - before;
        self.out.clear();
        self.written = 0;
        Ok(len as u64)
    }

    /// Reads once, through `buffer`, and returns the number of bytes. If they do not fill the
    /// buffer, there is nothing more for now.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        address: &Address,
    ) -> Result<usize, LoadError> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) if self.is_used && self.in_flight.is_empty() => {
                    self.is_closed = true;
                    return Ok(0);
                }
                Ok(0) => return Err(LoadError::Closed { address: address.to_string() }),
                Ok(len) => {
                    self.input.extend_from_slice(&buffer[..len]);
                    return Ok(len);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(LoadError::Broken { address: address.to_string(), source });
                }
            }
        }
    }

    /// Takes the answers that are complete, in the order of their requests.
    pub(super) fn answers(
        &mut self,
        codec: &dyn Codec,
        mut take: impl FnMut(InFlight, Answer),
    ) -> Result<(), ProtocolError> {
        let mut begin = 0;
        while let Some(&request) = self.in_flight.front() {
            let Some((len, answer)) = codec.decode(&self.input[begin..], request.sent)? else {
                break;
            };
            begin += len;
            self.in_flight.pop_front();
            take(request, answer);
        }
        self.input.drain(..begin);
        Ok(())
    }
}

/// Connects, and waits for the replies to the initial requests.
pub(super) fn greeted(address: &Address, codec: &dyn Codec) -> Result<Socket, LoadError> {
    let connected = Socket::connect(address);
    let mut socket =
        connected.map_err(|source| LoadError::Connect { address: address.to_string(), source })?;
    for greeting in codec.greetings() {
        exchange(&mut socket, codec, address, Kind::Set, &greeting)?;
    }
    Ok(socket)
}

/// Sends a request and waits for its answer.
fn exchange(
    socket: &mut Socket,
    codec: &dyn Codec,
    address: &Address,
    kind: Kind,
    request: &[u8],
) -> Result<(), LoadError> {
    let sent = Sent { kind, len: request.len() };
    let written = socket.write_all(request);
    written.map_err(|source| LoadError::Connect { address: address.to_string(), source })?;
    let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = socket.read(&mut buffer);
        let len =
            read.map_err(|source| LoadError::Connect { address: address.to_string(), source })?;
        if len == 0 {
            return Err(LoadError::Closed { address: address.to_string() });
        }
        input.extend_from_slice(&buffer[..len]);
        match codec.decode(&input, sent)? {
            None => {}
            Some((_, Answer::Refused(message))) => {
                return Err(LoadError::Greeting { address: address.to_string(), message });
            }
            Some(_) => return Ok(()),
        }
    }
}
