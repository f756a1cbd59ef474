//! BITFIELD and BITFIELD_RO: integers of any width at any offset of a value.

use tokaido_store::{NewRecord, ReadTransaction, WriteTransaction};

use super::{
    bitmaps::{BITS_MAX, bad_offset, with_room},
    call::Call,
    command::{Command, rows},
    failure::Failure,
    number::parse_integer,
    reply::Reply,
};

pub(super) const COMMANDS: &[Command] = rows! {
"bitfield" -2 Write(bitfield), KEY [DENYOOM] Bitmap "3.2.0"
    "key [GET encoding offset] [OVERFLOW <WRAP | SAT | FAIL>] [SET encoding offset value] [INCRBY encoding offset increment]"
    "Reads, sets and increments any number of integers at bit offsets of a value; `u8` is an encoding, `#2` the third integer of its width.";
"bitfield_ro" -2 Read(bitfield_ro), KEY [FAST] Bitmap "6.0.0"
    "key [GET encoding offset [GET encoding offset ...]]"
    "Reads integers at bit offsets of a value.";
};

/// How a number is encoded: its width in bits, signed or unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Encoding {
    is_signed: bool,
    width: u32,
}

impl Encoding {
    fn parse(text: &[u8]) -> Result<Self, Failure> {
        let parsed = match text {
            [b'i', width @ ..] => parse_integer(width).map(|width| (true, width, 64)),
            [b'u', width @ ..] => parse_integer(width).map(|width| (false, width, 63)),
            _ => None,
        };
        match parsed {
            Some((is_signed, width, most)) if (1..=most).contains(&width) => {
                Ok(Self { is_signed, width: width as u32 })
            }
            _ => Err(Failure::other(
                "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
                 i64 is.",
            )),
        }
    }

    /// The smallest and the largest number.
    fn ends(self) -> (i128, i128) {
        let half = 1i128 << (self.width - 1);
        if self.is_signed { (-half, half - 1) } else { (0, 2 * half - 1) }
    }

    /// Truncates a number to the width.
    fn wrap(self, number: i128) -> i128 {
        let low = number & ((1i128 << self.width) - 1);
        let (_, max) = self.ends();
        if low > max { low - (1i128 << self.width) } else { low }
    }

    /// The number at `offset`, in bits. Bits beyond the end of the value are zero.
    fn read(self, value: &[u8], offset: u64) -> i128 {
        let bit = |at: u64| {
            let byte = value.get((at / 8) as usize).copied().unwrap_or(0);
            i128::from(byte >> (7 - at % 8) & 1)
        };
        let bits = offset..offset + u64::from(self.width);
        self.wrap(bits.fold(0, |number, at| number << 1 | bit(at)))
    }

    /// Writes a number in two's complement. The value must be long enough.
    fn write(self, value: &mut [u8], offset: u64, number: i128) {
        for place in 0..u64::from(self.width) {
            let at = offset + place;
            let mask = 0x80 >> (at % 8);
            let is_set = number >> (u64::from(self.width) - 1 - place) & 1 == 1;
            let byte = &mut value[(at / 8) as usize];
            *byte = if is_set { *byte | mask } else { *byte & !mask };
        }
    }
}

/// What to do with a number that is too large or too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    /// The number to write, or `None` if it does not fit and must not be written.
    fn fit(self, encoding: Encoding, number: i128) -> Option<i128> {
        let (min, max) = encoding.ends();
        match self {
            _ if (min..=max).contains(&number) => Some(number),
            Self::Wrap => Some(encoding.wrap(number)),
            Self::Saturate => Some(number.clamp(min, max)),
            Self::Fail => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

/// One number to read or write.
#[derive(Clone, Copy, Debug)]
struct Operation {
    action: Action,
    encoding: Encoding,
    /// The offset of its first bit.
    offset: u64,
    overflow: Overflow,
}

impl Operation {
    /// Reads all operations from the arguments.
    fn read_all(call: &Call<'_>) -> Result<Vec<Self>, Failure> {
        let mut operations = Vec::new();
        let mut overflow = Overflow::Wrap;
        let mut at = 2;
        while at < call.len() {
            let left = call.len() - at - 1;
            if call.is_word(at, "OVERFLOW") && left >= 1 {
                overflow = overflow_at(call, at + 1)?;
                at += 2;
                continue;
            }
            let is_get = call.is_word(at, "GET") && left >= 2;
            let is_set = call.is_word(at, "SET") && left >= 3;
            let is_increment = call.is_word(at, "INCRBY") && left >= 3;
            if !is_get && !is_set && !is_increment {
                return Err(Failure::Syntax);
            }
            let encoding = Encoding::parse(call.arg(at + 1))?;
            let offset = offset_at(call, at + 2, encoding)?;
            let action = match is_get {
                true => Action::Get,
                false if is_set => Action::Set(call.integer(at + 3)?),
                false => Action::Increment(call.integer(at + 3)?),
            };
            operations.push(Self { action, encoding, offset, overflow });
            at += if is_get { 3 } else { 4 };
        }
        Ok(operations)
    }

    /// How many bytes the value must have for the number to be written.
    fn bytes_needed(&self) -> usize {
        match self.action {
            Action::Get => 0,
            _ => (self.offset + u64::from(self.encoding.width)).div_ceil(8) as usize,
        }
    }

    fn tell(&self, reply: &mut dyn Reply, number: i128) {
        // Fits: at most 64 bits signed, or 63 unsigned.
        reply.integer(self.encoding.wrap(number) as i64);
    }

    fn run(&self, value: &mut [u8], reply: &mut dyn Reply) {
        let old = self.encoding.read(value, self.offset);
        let (new, gives_old) = match self.action {
            Action::Get => return self.tell(reply, old),
            Action::Set(number) if self.encoding.is_signed => (i128::from(number), true),
            // As in Redis, a negative number stands for a very large one here.
            Action::Set(number) => (i128::from(number as u64), true),
            Action::Increment(by) => (old + i128::from(by), false),
        };
        match self.overflow.fit(self.encoding, new) {
            None => reply.null(),
            Some(new) => {
                self.encoding.write(value, self.offset, new);
                self.tell(reply, if gives_old { old } else { new });
            }
        }
    }
}

fn overflow_at(call: &Call<'_>, index: usize) -> Result<Overflow, Failure> {
    [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)]
        .into_iter()
        .find_map(|(word, overflow)| call.is_word(index, word).then_some(overflow))
        .ok_or_else(|| Failure::other("Invalid OVERFLOW type specified"))
}

/// An offset in bits, or after `#` in multiples of the encoding's width. The whole number must fit into
/// the longest value.
fn offset_at(call: &Call<'_>, index: usize, encoding: Encoding) -> Result<u64, Failure> {
    let (text, width) = match call.arg(index) {
        [b'#', text @ ..] => (text, u64::from(encoding.width)),
        text => (text, 1),
    };
    let number = parse_integer(text).and_then(|number| u64::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(width)).ok_or_else(bad_offset)?;
    if offset > BITS_MAX - u64::from(encoding.width) {
        return Err(bad_offset());
    }
    Ok(offset)
}

fn bitfield(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let operations = Operation::read_all(call)?;
    let len = operations.iter().map(Operation::bytes_needed).max().unwrap_or(0);
    if len == 0 {
        return read(call, tx, &operations);
    }
    let (mut value, head) = with_room(call, tx, len)?;
    call.reply.array(operations.len());
    for operation in &operations {
        operation.run(&mut value, call.reply);
    }
    tx.put(call.database, call.arg(1), NewRecord { value: &value, ..head })?;
    Ok(())
}

fn bitfield_ro(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let operations = Operation::read_all(call)?;
    if operations.iter().any(|operation| operation.action != Action::Get) {
        return Err(Failure::other("BITFIELD_RO only supports the GET subcommand"));
    }
    read(call, tx, &operations)
}

fn read(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    operations: &[Operation],
) -> Result<(), Failure> {
    let value = call.string(tx, call.arg(1))?.map_or(&[][..], |record| record.value);
    call.reply.array(operations.len());
    for operation in operations {
        operation.tell(call.reply, operation.encoding.read(value, operation.offset));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_changes(
            is_signed: bool, width in 1u32..=63, offset in 0u64..40, number: i64, byte: u8,
        ) {
            let encoding = Encoding { is_signed, width };
            let mut value = vec![byte; 16];
            let number = encoding.wrap(i128::from(number));
            let before = value.clone();
            encoding.write(&mut value, offset, number);
            proptest::prop_assert_eq!(encoding.read(&value, offset), number);
            let other = Encoding { is_signed: false, width: 1 };
            for at in (0..128).filter(|at| !(offset..offset + u64::from(width)).contains(at)) {
                proptest::prop_assert_eq!(other.read(&value, at), other.read(&before, at));
            }
        }
    }
}
