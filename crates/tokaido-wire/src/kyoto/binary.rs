//! The binary protocol: bulk commands with big-endian numbers. A reply begins with the same byte as
//! its request, or is [`ERROR`] alone.
//!
//! ```text
//! play_script  B4 flags:u32 name_len:u32 count:u32 name {key_len:u32 value_len:u32 key value}*
//!         ->   B4 count:u32 {key_len:u32 value_len:u32 key value}*
//! set_bulk     B8 flags:u32 count:u32 {database:u16 key_len:u32 value_len:u32 xt:i64 key value}*
//!         ->   B8 hits:u32
//! remove_bulk  B9 flags:u32 count:u32 {database:u16 key_len:u32 key}*
//!         ->   B9 hits:u32
//! get_bulk     BA flags:u32 count:u32 {database:u16 key_len:u32 key}*
//!         ->   BA hits:u32 {database:u16 key_len:u32 value_len:u32 xt:i64 key value}*
//! replication  B1 flags:u32 timestamp:u64 server:u16
//! ```

/// The first byte of a request of the binary protocol.
pub const MAGICS: &[u8] = &[0xb1, 0xb4, 0xb8, 0xb9, 0xba];

/// The reply to a request that failed.
pub const ERROR: u8 = 0xbf;

/// The flag of a request that wants no reply.
const NO_REPLY: u32 = 1 << 0;

/// The expiry of a record that never expires, in seconds since the epoch.
pub const XT_MAX: i64 = (1 << 40) - 1;

/// A request.
#[derive(Clone, Debug)]
pub enum Request<'a> {
    /// Calls a procedure with pairs.
    PlayScript {
        /// Its name.
        name: &'a [u8],
        /// The pairs, whose databases and expiries have no meaning.
        pairs: Items<'a>,
    },
    /// Sets records.
    SetBulk(Items<'a>),
    /// Removes records.
    RemoveBulk(Items<'a>),
    /// Gets records.
    GetBulk(Items<'a>),
    /// Asks for the update log.
    Replication,
}

/// The items of a request, in order.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    layout: Layout,
    bytes: &'a [u8],
    left: u32,
}

/// An item of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The number of the database.
    pub database: u16,
    /// The key.
    pub key: &'a [u8],
    /// The value, empty where there is none.
    pub value: &'a [u8],
    /// The expiry of a record to be set: seconds from now, or, if negative, seconds since the epoch.
    pub xt: i64,
}

/// The outcome of decoding.
#[derive(Debug)]
pub enum Decoded<'a> {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with a whole request.
    Complete {
        /// Its length in bytes: where the next one begins.
        consumed: usize,
        /// Whether it wants no reply.
        is_quiet: bool,
        /// The request.
        request: Request<'a>,
    },
}

/// The input is not the binary protocol, or exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// No request begins with this byte.
    #[error("no request begins with {0:#04x}")]
    Magic(u8),
    /// A request is longer than the limit.
    #[error("a request has at most {max} bytes here; send the records in several")]
    TooLong {
        /// The limit.
        max: usize,
    },
}

/// The fields before the key of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// `key_len:u32 value_len:u32`
    Pair,
    /// `database:u16 key_len:u32 value_len:u32 xt:i64`
    Record,
    /// `database:u16 key_len:u32`
    Key,
}

impl Layout {
    const fn len(self) -> usize {
        match self {
            Self::Pair => 4 + 4,
            Self::Record => 2 + 4 + 4 + 8,
            Self::Key => 2 + 4,
        }
    }

    /// Reads the item that begins here, without its key and value, and the lengths of both.
    fn read(self, bytes: &[u8]) -> Option<(Item<'static>, u64, u64)> {
        let mut reader = Reader(bytes);
        let database = if self == Self::Pair { 0 } else { u16::from_be_bytes(reader.take()?) };
        let key_len = u32::from_be_bytes(reader.take()?);
        let value_len = if self == Self::Key { 0 } else { u32::from_be_bytes(reader.take()?) };
        let xt = if self == Self::Record { i64::from_be_bytes(reader.take()?) } else { i64::MAX };
        Some((Item { database, key: b"", value: b"", xt }, key_len.into(), value_len.into()))
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (item, key_len, value_len) = self.layout.read(self.bytes)?;
        let rest = self.bytes.get(self.layout.len()..)?;
        let (key, rest) = rest.split_at_checked(usize::try_from(key_len).ok()?)?;
        let (value, rest) = rest.split_at_checked(usize::try_from(value_len).ok()?)?;
        self.bytes = rest;
        Some(Item { key, value, ..item })
    }
}

impl Items<'_> {
    /// How many items are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left as usize
    }
}

/// Decodes the requests of one connection. It copies nothing, allocates nothing, and looks at each
/// item once, however the bytes are split.
#[derive(Debug)]
pub struct Decoder {
    request_len_max: usize,
    /// How far the items of the current request are known to be complete: the offset of the next
    /// one, and the number of items from there on.
    checked: Option<(usize, u32)>,
}

/// The part of a request before its items.
struct Head<'a> {
    len: usize,
    flags: u32,
    count: u32,
    layout: Layout,
    make: fn(&'a [u8], Items<'a>) -> Request<'a>,
    name: &'a [u8],
}

impl Decoder {
    /// Creates a decoder for requests of at most `request_len_max` bytes.
    #[must_use]
    pub fn new(request_len_max: usize) -> Self {
        Self { request_len_max, checked: None }
    }

    /// Decodes the request at the start of `input`, which must begin where the last one ended.
    ///
    /// # Errors
    /// [`BinaryError`], after which it is unclear where the next request begins.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a>, BinaryError> {
        let Some(&magic) = input.first() else { return Ok(Decoded::Incomplete) };
        let Some(head) = self.head(magic, input)? else { return Ok(Decoded::Incomplete) };
        let (mut at, mut left) = self.checked.take().unwrap_or((head.len, head.count));
        while left > 0 {
            let Some((_, key_len, value_len)) = input.get(at..).and_then(|i| head.layout.read(i))
            else {
                // An item count that can never fit is refused before its items arrive.
                self.check_len(at as u64 + u64::from(left) * head.layout.len() as u64)?;
                self.checked = Some((at, left));
                return Ok(Decoded::Incomplete);
            };
            let end = at as u64 + head.layout.len() as u64 + key_len + value_len;
            self.check_len(end)?;
            match usize::try_from(end) {
                Ok(end) if end <= input.len() => (at, left) = (end, left - 1),
                _ => {
                    self.checked = Some((at, left));
                    return Ok(Decoded::Incomplete);
                }
            }
        }
        let items = Items { layout: head.layout, bytes: &input[head.len..at], left: head.count };
        let request = (head.make)(head.name, items);
        Ok(Decoded::Complete { consumed: at, is_quiet: head.flags & NO_REPLY != 0, request })
    }

    fn head<'a>(&self, magic: u8, input: &'a [u8]) -> Result<Option<Head<'a>>, BinaryError> {
        let mut reader = Reader(&input[1..]);
        let mut number = || reader.take().map(u32::from_be_bytes);
        let (layout, make): (_, fn(&'a [u8], Items<'a>) -> Request<'a>) = match magic {
            0xb1 => (Layout::Key, |_, _| Request::Replication),
            0xb4 => (Layout::Pair, |name, pairs| Request::PlayScript { name, pairs }),
            0xb8 => (Layout::Record, |_, items| Request::SetBulk(items)),
            0xb9 => (Layout::Key, |_, items| Request::RemoveBulk(items)),
            0xba => (Layout::Key, |_, items| Request::GetBulk(items)),
            _ => return Err(BinaryError::Magic(magic)),
        };
        let Some(flags) = number() else { return Ok(None) };
        let (mut len, mut name) = (1 + 4 + 4, &b""[..]);
        let count = match magic {
            0xb1 => {
                len = 1 + 4 + 8 + 2;
                return Ok((input.len() >= len).then_some(Head {
                    len,
                    flags,
                    count: 0,
                    layout,
                    make,
                    name,
                }));
            }
            0xb4 => {
                let (Some(name_len), Some(count)) = (number(), number()) else { return Ok(None) };
                self.check_len(u64::from(name_len))?;
                let start = len + 4;
                len = start + name_len as usize;
                let Some(given) = input.get(start..len) else { return Ok(None) };
                name = given;
                count
            }
            _ => match number() {
                Some(count) => count,
                None => return Ok(None),
            },
        };
        Ok(Some(Head { len, flags, count, layout, make, name }))
    }

    fn check_len(&self, len: u64) -> Result<(), BinaryError> {
        let max = self.request_len_max;
        if len > max as u64 { Err(BinaryError::TooLong { max }) } else { Ok(()) }
    }
}

/// Writes the reply to `set_bulk` (B8) or `remove_bulk` (B9).
pub fn hits(magic: u8, hits: u32, output: &mut Vec<u8>) {
    output.push(magic);
    output.extend_from_slice(&hits.to_be_bytes());
}

/// Writes a list whose length is known only at its end: the reply to `get_bulk` or `play_script`.
#[derive(Debug)]
pub struct ListWriter {
    start: usize,
    count: u32,
}

impl ListWriter {
    /// Begins the reply to `get_bulk` (BA) or `play_script` (B4).
    pub fn begin(magic: u8, output: &mut Vec<u8>) -> Self {
        let start = output.len();
        hits(magic, 0, output);
        Self { start, count: 0 }
    }

    /// Adds a record, for `get_bulk`.
    pub fn record(&mut self, item: &Item<'_>, output: &mut Vec<u8>) {
        self.count += 1;
        let mut head = [0; Layout::Record.len()];
        head[..2].copy_from_slice(&item.database.to_be_bytes());
        head[2..10].copy_from_slice(&lengths(item));
        head[10..].copy_from_slice(&item.xt.to_be_bytes());
        output.reserve(head.len() + item.key.len() + item.value.len());
        output.extend_from_slice(&head);
        output.extend_from_slice(item.key);
        output.extend_from_slice(item.value);
    }

    /// Adds a pair, for `play_script`.
    pub fn pair(&mut self, key: &[u8], value: &[u8], output: &mut Vec<u8>) {
        self.count += 1;
        let item = Item { database: 0, key, value, xt: 0 };
        output.extend_from_slice(&lengths(&item));
        output.extend_from_slice(key);
        output.extend_from_slice(value);
    }

    /// Ends the list.
    pub fn end(self, output: &mut [u8]) {
        output[self.start + 1..][..4].copy_from_slice(&self.count.to_be_bytes());
    }
}

/// The lengths of key and value. Both come from requests and records, and so are below 4 GiB.
fn lengths(item: &Item<'_>) -> [u8; 8] {
    let [key, value] =
        [item.key, item.value].map(|part| u32::try_from(part.len()).unwrap_or(u32::MAX));
    (u64::from(key) << 32 | u64::from(value)).to_be_bytes()
}

#[cfg(test)]
mod tests;
