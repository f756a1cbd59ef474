//! What a command writes its reply to, whoever asked: the bytes of the wire, or a script's values.

use std::ops::ControlFlow;

use tokaido_wire::resp::{ReplyWriter, Version};

/// Takes replies, one after another. An aggregate is its length followed by so many replies (a
/// map: twice as many). What would go beyond the limit is not written, and nothing else after that,
/// until the reply is taken back.
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

    /// Null where a string could stand.
    fn null(&mut self);

    /// Null where an array could stand: version 2 of the protocol tells the two apart.
    fn null_array(&mut self);

    /// The head of an array.
    fn array(&mut self, len: usize);

    /// The head of a push, which version 2 of the protocol has as an array.
    fn push(&mut self, len: usize) {
        self.array(len);
    }

    /// The head of a map; `len` pairs follow, key and value.
    fn map(&mut self, len: usize);

    /// The head of an array of pairs; `len` times [`pair`](Self::pair) and two replies follow.
    fn pairs(&mut self, len: usize);

    /// The head of a pair, where the protocol has one: version 2 has a flat array of all of them.
    fn pair(&mut self);

    /// The head of a map that version 2 has as an array of pairs; `len` times
    /// [`map_pair`](Self::map_pair) and two replies follow.
    fn map_of_pairs(&mut self, len: usize);

    /// The head of a pair of such a map, in version 2.
    fn map_pair(&mut self);

    /// The head of a set.
    fn set(&mut self, len: usize);

    /// A floating-point number.
    fn double(&mut self, value: f64);

    /// A floating-point number whose text on the wire is this one.
    fn double_as(&mut self, value: f64, text: &str);

    /// An integer of any size, in decimal digits.
    fn big_number(&mut self, digits: &str);

    /// True or false.
    fn boolean(&mut self, value: bool);

    /// A text for humans with its format, such as `txt`.
    fn verbatim(&mut self, format: &str, text: &str);

    /// How much was written, for [`truncate`](Self::truncate).
    fn mark(&self) -> usize;

    /// Takes back what was written since [`mark`](Self::mark) gave `mark`.
    fn truncate(&mut self, mark: usize);

    /// Moves what was written since [`mark`](Self::mark) gave `last` before what was written since it gave
    /// `first`: the head of an aggregate whose length was not known before.
    fn move_before(&mut self, first: usize, last: usize);

    /// Sets the limit: so many bytes more than there are now.
    fn limit(&mut self, bytes_max: usize);

    /// Whether something was not written because of the limit.
    fn is_over_limit(&self) -> bool;

    /// Whether to go on with what is written here.
    fn flow(&self) -> ControlFlow<()> {
        if self.is_over_limit() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Changes the version of the protocol for the replies that follow, where there is a protocol.
    fn set_version(&mut self, _version: Version) {}
}

/// Methods that [`ReplyWriter`] has by the same name.
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
