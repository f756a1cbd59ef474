//! Where a command writes its reply, for any caller: bytes for the wire, or values for a script.

use std::ops::ControlFlow;

use tokaido_wire::resp::{ReplyWriter, Version};

/// Receives replies, one after another. An aggregate is its length followed by that many replies
/// (twice as many for a map). What would exceed the limit is not written, nor is anything after it,
/// until the reply is discarded.
pub trait Reply {
    /// A status, such as `PONG`.
    fn simple(&mut self, text: &str);

    /// The status `OK`.
    fn ok(&mut self);

    /// An error: a code in capitals and a message.
    fn error(&mut self, text: &str);

    /// An integer.
    fn integer(&mut self, value: i64);

    /// A byte string.
    fn bulk(&mut self, bytes: &[u8]);

    /// A byte string, or null for `None`.
    fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Null in place of a string.
    fn null(&mut self);

    /// Null in place of an array: version 2 of the protocol distinguishes the two.
    fn null_array(&mut self);

    /// The header of an array.
    fn array(&mut self, len: usize);

    /// The header of a push, which version 2 of the protocol writes as an array.
    fn push(&mut self, len: usize) {
        self.array(len);
    }

    /// The header of a map; `len` pairs follow, key and value.
    fn map(&mut self, len: usize);

    /// The header of an array of pairs; `len` times [`pair`](Self::pair) and two replies follow.
    fn pairs(&mut self, len: usize);

    /// The header of a pair, where the protocol has one: version 2 puts all pairs into a flat array.
    fn pair(&mut self);

    /// The header of a map that version 2 writes as an array of pairs; `len` times
    /// [`map_pair`](Self::map_pair) and two replies follow.
    fn map_of_pairs(&mut self, len: usize);

    /// The header of a pair of such a map, in version 2.
    fn map_pair(&mut self);

    /// The header of a set.
    fn set(&mut self, len: usize);

    /// A floating-point number.
    fn double(&mut self, value: f64);

    /// A floating-point number, written as `text` on the wire.
    fn double_as(&mut self, value: f64, text: &str);

    /// An integer of any size, in decimal digits.
    fn big_number(&mut self, digits: &str);

    /// True or false.
    fn boolean(&mut self, value: bool);

    /// A text for humans and its format, such as `txt`.
    fn verbatim(&mut self, format: &str, text: &str);

    /// How much has been written, for [`truncate`](Self::truncate).
    fn mark(&self) -> usize;

    /// Discards what was written since [`mark`](Self::mark) returned `mark`.
    fn truncate(&mut self, mark: usize);

    /// Moves what was written since [`mark`](Self::mark) returned `last` to where it returned `first`: the
    /// header of an aggregate whose length was not known in advance.
    fn move_before(&mut self, first: usize, last: usize);

    /// Sets the limit: this many bytes more than are already written.
    fn limit(&mut self, bytes_max: usize);

    /// Whether something was left out because of the limit.
    fn is_over_limit(&self) -> bool;

    /// Whether the caller should go on writing.
    fn flow(&self) -> ControlFlow<()> {
        if self.is_over_limit() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Changes the version of the protocol for the following replies, if there is a protocol.
    fn set_version(&mut self, _version: Version) {}
}

/// Forwards to the methods of [`ReplyWriter`] with the same names.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method(&mut self, $($argument: $type),*) {
            self.$method($($argument),*);
        })*
    };
}

impl Reply for ReplyWriter<'_> {
    pass_on! {
        simple(text: &str);
        ok();
        error(text: &str);
        integer(value: i64);
        bulk(bytes: &[u8]);
        null();
        null_array();
        array(len: usize);
        push(len: usize);
        map(len: usize);
        pairs(len: usize);
        pair();
        map_of_pairs(len: usize);
        map_pair();
        set(len: usize);
        double(value: f64);
        big_number(digits: &str);
        boolean(value: bool);
        verbatim(format: &str, text: &str);
        truncate(len: usize);
        move_before(first: usize, last: usize);
        limit(bytes_max: usize);
        set_version(version: Version);
    }

    fn double_as(&mut self, _value: f64, text: &str) {
        self.double_text(text);
    }

    fn mark(&self) -> usize {
        self.len()
    }

    fn is_over_limit(&self) -> bool {
        self.is_over_limit()
    }
}
