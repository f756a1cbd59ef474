//! Connections that have been used and are now idle.

use super::{
    connection::Connection,
    keys::KeySource,
    operation::{Kind, Operation},
    run::{Load, LoadError},
};
use crate::random::Random;

/// The value that is set.
const VALUE: &[u8] = b"value";

/// Connections that have each set and read a record. Dropping this value closes them.
pub struct Idle(Vec<Connection>);

impl Idle {
    /// Opens as many connections as the load has, to its server and with its protocol.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn open(load: &Load) -> Result<Self, LoadError> {
        let codec = load.protocol.codec(&load.options);
        let mut keys = KeySource::new(&load.keys, load.keys_count)?;
        let (mut random, mut key) = (Random::new(load.seed), Vec::new());
        let open = |_| {
            keys.next(&mut random, &mut key);
            let requests = [Kind::Set, Kind::Get].map(|kind| {
                let mut request = Vec::new();
                codec.encode(&Operation { kind, key: &key, value: VALUE }, &mut request);
                (kind, request)
            });
            Connection::open_used(&load.address, &*codec, &requests)
        };
        (0..load.connections).map(open).collect::<Result<_, _>>().map(Self)
    }

    /// The number of connections.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
