//! The sequence of requests of one thread.

use super::{
    command::Command,
    keys::KeySource,
    operation::{Kind, Mix, Operation},
    protocol::{Codec, Sent},
    values::ValueSource,
};
use crate::random::Random;

/// Makes requests.
pub(super) struct Requests {
    pub(super) codec: Box<dyn Codec>,
    pub(super) keys: KeySource,
    pub(super) values: ValueSource,
    pub(super) mix: Mix,
    /// Replaces the mix.
    pub(super) command: Option<Command>,
    pub(super) random: Random,
    /// Buffers for a key and for the words of a command.
    pub(super) key: Vec<u8>,
    pub(super) words: Vec<Vec<u8>>,
}

impl Requests {
    /// Appends the next request.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Sent {
        let before = out.len();
        let kind = match &self.command {
            Some(command) => {
                self.keys.next(&mut self.random, &mut self.key);
                let has_value = command.has_value();
                let value = if has_value { self.values.next(&mut self.random) } else { &[] };
                let random = self.random.below(self.keys.count());
                command.encode(&self.key, value, random, &mut self.words, out);
                // Its answer is read like a get's: any but an error will do.
                Kind::Get
            }
            None => self.operation(out),
        };
        Sent { kind, len: out.len() - before }
    }

    fn operation(&mut self, out: &mut Vec<u8>) -> Kind {
        let kind = self.mix.at(self.random.next());
        self.keys.next(&mut self.random, &mut self.key);
        let value = match kind {
            Kind::Set => self.values.next(&mut self.random),
            _ => &[],
        };
        self.codec.encode(&Operation { kind, key: &self.key, value }, out);
        kind
    }
}
