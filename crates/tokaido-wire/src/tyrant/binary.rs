//! The binary protocol. A request begins with [`MAGIC`], the number of its command and the numbers that
//! the table of commands lists for it, all big-endian; then come the bytes whose lengths those gave,
//! and the items of a list, each after its length. A reply begins with a code: 0, or 1 for an error.

use super::commands::{Command, Field, of_id};

/// The first byte of each request.
pub const MAGIC: u8 = 0xc8;

/// The code of a reply to a successful request.
pub const DONE: u8 = 0;

/// The code of a reply to a failed request.
pub const FAILED: u8 = 1;

/// Maximum number of parts of a request.
pub(super) const PARTS_MAX: usize = 3;

/// Maximum number of numbers of a request that are not lengths.
pub(super) const NUMBERS_MAX: usize = 3;

/// Maximum length of a part or an item in bytes, as in Tokyo Tyrant.
const PART_LEN_MAX: u32 = 256 << 20;

/// Maximum length of a name.
const NAME_LEN_MAX: u32 = 1023;

/// Maximum number of items of a list.
const ITEMS_MAX: u32 = 1 << 20;

/// The size of an item's length field.
const ITEM_HEAD_LEN: usize = 4;

/// The magic byte and the command's number.
const START_LEN: usize = 2;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What it asks for.
    pub command: &'static Command,
    parts: [&'a [u8]; PARTS_MAX],
    numbers: [i64; NUMBERS_MAX],
    /// The items of its list.
    pub items: Items<'a>,
}

impl<'a> Request<'a> {
    /// The parts in order; missing ones are empty.
    #[must_use]
    pub fn parts(&self) -> [&'a [u8]; PARTS_MAX] {
        self.parts
    }

    /// The first part.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.parts[0]
    }

    /// The second part.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.parts[1]
    }

    /// The numbers that are not lengths, in order; missing ones are 0.
    #[must_use]
    pub fn numbers(&self) -> [i64; NUMBERS_MAX] {
        self.numbers
    }
}

/// The items of a list, in order.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    bytes: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, rest) = self.bytes.split_first_chunk::<ITEM_HEAD_LEN>()?;
        let (item, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        self.bytes = rest;
        Some(item)
    }
}

impl Items<'_> {
    /// How many items are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left as usize
    }
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
        /// The request.
        request: Request<'a>,
    },
}

/// The input is not the binary protocol, or exceeds the limit. Tokyo Tyrant then closes the
/// connection without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// No request begins with this byte.
    #[error("no request begins with {0:#04x}")]
    Magic(u8),
    /// No command has this number.
    #[error("no command has the number {0:#04x}")]
    Command(u8),
    /// A length or a number is out of range.
    #[error("{0} is no length or number that {1} can have")]
    Number(u32, &'static str),
    /// A request is longer than the limit.
    #[error("a request has at most {max} bytes here; send the records in several")]
    TooLong {
        /// The limit.
        max: usize,
    },
}

/// The contents of a request's head.
struct Head {
    command: &'static Command,
    /// The length of the head.
    len: usize,
    part_lens: [u32; PARTS_MAX],
    numbers: [i64; NUMBERS_MAX],
    items: u32,
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
        let Some(head) = read_head(input)? else { return Ok(Decoded::Incomplete) };
        let parts_len: u64 = head.part_lens.iter().copied().map(u64::from).sum();
        let items_at = head.len as u64 + parts_len;
        // A request that can never fit is refused before it arrives.
        self.check_len(items_at + u64::from(head.items) * ITEM_HEAD_LEN as u64)?;
        // It is within the limit, which is a `usize`.
        let items_at = items_at as usize;
        let (mut at, mut left) = self.checked.take().unwrap_or((items_at, head.items));
        while left > 0 {
            let Some(len) = input.get(at..).and_then(<[u8]>::first_chunk::<ITEM_HEAD_LEN>) else {
                self.checked = Some((at, left));
                return Ok(Decoded::Incomplete);
            };
            let len = u32::from_be_bytes(*len);
            if len > PART_LEN_MAX {
                return Err(BinaryError::Number(len, head.command.name));
            }
            let end = at + ITEM_HEAD_LEN + len as usize;
            self.check_len(end as u64 + u64::from(left - 1) * ITEM_HEAD_LEN as u64)?;
            if end > input.len() {
                self.checked = Some((at, left));
                return Ok(Decoded::Incomplete);
            }
            (at, left) = (end, left - 1);
        }
        let (Some(mut parts_bytes), Some(items)) =
            (input.get(head.len..items_at), input.get(items_at..at))
        else {
            return Ok(Decoded::Incomplete);
        };
        let mut parts = [&b""[..]; PARTS_MAX];
        for (part, len) in parts.iter_mut().zip(head.part_lens) {
            (*part, parts_bytes) =
                parts_bytes.split_at_checked(len as usize).unwrap_or((parts_bytes, b""));
        }
        let items = Items { bytes: items, left: head.items };
        let request = Request { command: head.command, parts, numbers: head.numbers, items };
        Ok(Decoded::Complete { consumed: at, request })
    }

    fn check_len(&self, len: u64) -> Result<(), BinaryError> {
        let max = self.request_len_max;
        if len > max as u64 { Err(BinaryError::TooLong { max }) } else { Ok(()) }
    }
}

/// The head of a request, if it is complete.
fn read_head(input: &[u8]) -> Result<Option<Head>, BinaryError> {
    match input.first() {
        None => return Ok(None),
        Some(&MAGIC) => {}
        Some(&other) => return Err(BinaryError::Magic(other)),
    }
    let Some(&id) = input.get(1) else { return Ok(None) };
    let command = of_id(id).ok_or(BinaryError::Command(id))?;
    let mut head = Head {
        command,
        len: START_LEN,
        part_lens: [0; PARTS_MAX],
        numbers: [0; NUMBERS_MAX],
        items: 0,
    };
    let (mut parts, mut numbers) = (head.part_lens.iter_mut(), head.numbers.iter_mut());
    for field in command.fields {
        let Some(bytes) = input.get(head.len..).and_then(|rest| rest.get(..field.len())) else {
            return Ok(None);
        };
        head.len += field.len();
        if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
            numbers.next().into_iter().for_each(|place| *place = i64::from_be_bytes(bytes));
        }
        let Ok(bytes) = <[u8; 4]>::try_from(bytes) else { continue };
        let number = u32::from_be_bytes(bytes);
        let max = match field {
            Field::Part => PART_LEN_MAX,
            Field::Name => NAME_LEN_MAX,
            Field::Count => ITEMS_MAX,
            Field::Natural => i32::MAX as u32,
            Field::Int | Field::Long => u32::MAX,
        };
        if number > max {
            return Err(BinaryError::Number(number, command.name));
        }
        match field {
            Field::Part | Field::Name => {
                parts.next().into_iter().for_each(|place| *place = number);
            }
            Field::Count => head.items = number,
            Field::Int | Field::Natural | Field::Long => {
                let number = i32::from_be_bytes(bytes).into();
                numbers.next().into_iter().for_each(|place| *place = number);
            }
        }
    }
    Ok(Some(head))
}

/// Writes the length of `bytes`. They come from requests and records, which are below 4 GiB.
pub fn bytes_len(bytes: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
}

/// Writes `bytes` after their length.
pub fn bytes(bytes: &[u8], output: &mut Vec<u8>) {
    bytes_len(bytes, output);
    output.extend_from_slice(bytes);
}

/// Writes a list whose length is known only at its end, after a code.
#[derive(Debug)]
pub struct ListWriter {
    count_at: usize,
    count: u32,
}

impl ListWriter {
    /// Begins the reply to `mget`, `fwmkeys` or `misc`.
    pub fn begin(code: u8, output: &mut Vec<u8>) -> Self {
        output.push(code);
        let count_at = output.len();
        output.extend_from_slice(&[0; 4]);
        Self { count_at, count: 0 }
    }

    /// Adds an item.
    pub fn item(&mut self, item: &[u8], output: &mut Vec<u8>) {
        self.count += 1;
        bytes(item, output);
    }

    /// Adds a record, for `mget`.
    pub fn record(&mut self, key: &[u8], value: &[u8], output: &mut Vec<u8>) {
        self.count += 1;
        bytes_len(key, output);
        bytes_len(value, output);
        output.extend_from_slice(key);
        output.extend_from_slice(value);
    }

    /// Ends the list.
    pub fn end(self, output: &mut [u8]) {
        output[self.count_at..][..4].copy_from_slice(&self.count.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
