//! A look-aside cache client: it sets what it does not find in the cache.

use std::io::{Read, Write};

use super::{
    connection::greeted,
    operation::{Answer, Kind, Operation},
    protocol::{Codec, Sent},
    run::{Load, LoadError},
    socket::{Address, Socket},
    values::ValueSource,
};
use crate::random::Random;

/// Size of the read buffer.
const READ_LEN: usize = 64 << 10;

/// One connection, whose requests are sent in batches.
pub struct LookAside {
    address: Address,
    socket: Socket,
    codec: Box<dyn Codec>,
    values: ValueSource,
    random: Random,
    buffer: Vec<u8>,
}

impl LookAside {
    /// Connects to the server of a load, with its protocol and its values.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn open(load: &Load) -> Result<Self, LoadError> {
        let codec = load.protocol.codec(&load.options);
        Ok(Self {
            address: load.address.clone(),
            socket: greeted(&load.address, &*codec)?,
            codec,
            values: ValueSource::new(&load.values, load.seed)?,
            random: Random::new(load.seed),
            buffer: vec![0; READ_LEN],
        })
    }

    /// Gets these keys, sets the missing ones, and returns their number.
    ///
    /// # Errors
    /// If the connection breaks, or the server refuses a request or speaks something else.
    pub fn look(&mut self, keys: &[Vec<u8>]) -> Result<u64, LoadError> {
        let found = self.send(Kind::Get, keys)?;
        let missing: Vec<Vec<u8>> = keys
            .iter()
            .zip(found)
            .filter(|(_, answer)| *answer == Answer::Miss)
            .map(|(key, _)| key.clone())
            .collect();
        self.send(Kind::Set, &missing)?;
        Ok(missing.len() as u64)
    }

    /// Sends a request for each key, and returns the answers.
    fn send(&mut self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Answer>, LoadError> {
        let mut out = Vec::new();
        for key in keys {
            let value = match kind {
                Kind::Set => self.values.next(&mut self.random),
                _ => &[],
            };
            self.codec.encode(&Operation { kind, key, value }, &mut out);
        }
        let address = self.address.to_string();
        let broken = |source| LoadError::Broken { address: address.clone(), source };
        self.socket.write_all(&out).map_err(broken)?;
        let (mut input, mut begin, mut answers) = (Vec::new(), 0, Vec::new());
        while answers.len() < keys.len() {
            match self.codec.decode(&input[begin..], Sent { kind, len: 0 })? {
                Some((_, Answer::Refused(message))) => {
                    return Err(LoadError::Refused { address, message });
                }
                Some((len, answer)) => {
                    begin += len;
                    answers.push(answer);
                }
                None => match self.socket.read(&mut self.buffer).map_err(broken)? {
                    0 => return Err(LoadError::Closed { address }),
                    len => input.extend_from_slice(&self.buffer[..len]),
                },
            }
        }
        Ok(answers)
    }
}
