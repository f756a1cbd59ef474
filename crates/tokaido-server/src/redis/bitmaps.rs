//! Strings as bitmaps: SETBIT, GETBIT, BITCOUNT, BITPOS and BITOP. The first bit of a string is the most
//! significant bit of its first byte.

use std::ops::RangeInclusive;

use tokaido_store::{
    NewRecord, ReadTransaction, WriteTransaction,
    limits::{TRANSACTION_BYTES_MAX, VALUE_LEN_MAX},
};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(super) const COMMANDS: &[Command] = rows! {
"bitcount" -2 Read(bitcount), KEY [] Bitmap "2.6.0"
    "key [start end [BYTE | BIT]]"
    "Counts the bits that are set in a value, or in a range of its bytes or bits.";
"bitop" -4 Write(bitop), KEYS_BEHIND_A_WORD [DENYOOM] Bitmap "2.6.0"
    "<AND | OR | XOR | NOT> destkey key [key ...]"
    "Combines values bit by bit and stores the result; returns its length in bytes.";
"bitpos" -3 Read(bitpos), KEY [] Bitmap "2.8.7"
    "key bit [start [end [BYTE | BIT]]]"
    "Returns the position of the first bit that is set, or of the first that is not.";
"getbit" 3 Read(getbit), KEY [FAST] Bitmap "2.2.0"
    "key offset"
    "Returns a bit of a value; bits beyond its end are 0.";
"setbit" 4 Write(setbit), KEY [DENYOOM] Bitmap "2.2.0"
    "key offset value"
    "Sets or clears a bit of a value, padding a shorter value with zero bytes up to there; returns the old bit.";
};

/// Maximum number of bits of a value.
pub(super) const BITS_MAX: u64 = VALUE_LEN_MAX as u64 * 8;

/// Redis's error for an offset that is not a number or is beyond the end of the longest value.
pub(super) fn bad_offset() -> Failure {
    Failure::other("bit offset is not an integer or out of range")
}

/// The argument at `index` as the offset of a bit.
fn offset(call: &Call<'_>, index: usize) -> Result<usize, Failure> {
    let offset = call.integer(index).ok().and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|&offset| offset < BITS_MAX).map(|offset| offset as usize).ok_or_else(bad_offset)
}

/// The index of the byte that holds a bit, and the bit's mask in it.
fn place(offset: usize) -> (usize, u8) {
    (offset / 8, 0x80 >> (offset % 8))
}

/// Refuses to process this many bytes of values, if they are too many, where others wait for the thread.
pub(super) fn check_work(call: &Call<'_>, bytes: usize) -> Result<(), Failure> {
    /// Processing this many bytes takes about as long as visiting an element of a collection.
    const BYTES_PER_ELEMENT: usize = 1024;
    call.check_visit((bytes / BYTES_PER_ELEMENT) as u64)
}

/// The value under the first key, extended to at least `len` bytes, and its record without the value.
pub(super) fn with_room(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    len: usize,
) -> Result<(Vec<u8>, NewRecord<'static>), Failure> {
    let found = call.string(tx, call.arg(1))?;
    let (old, head) = found.map_or((&[][..], NewRecord::of(&[])), |r| (r.value, r.with_value(&[])));
    let mut value = Vec::with_capacity(len.max(old.len()));
    value.extend_from_slice(old);
    value.resize(len.max(old.len()), 0);
    Ok((value, head))
}

fn setbit(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (byte, mask) = place(offset(call, 2)?);
    let bit = call.integer(3).ok().filter(|bit| [0, 1].contains(bit));
    let bit = bit.ok_or_else(|| Failure::other("bit is not an integer or out of range"))?;
    let (mut value, head) = with_room(call, tx, byte + 1)?;
    let old = value[byte] & mask;
    value[byte] = if bit == 1 { value[byte] | mask } else { value[byte] & !mask };
    tx.put(call.database, call.arg(1), NewRecord { value: &value, ..head })?;
    call.reply.integer(i64::from(old != 0));
    Ok(())
}

fn getbit(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (byte, mask) = place(offset(call, 2)?);
    let value = call.string(tx, call.arg(1))?.map_or(&[][..], |record| record.value);
    let is_set = value.get(byte).is_some_and(|byte| byte & mask != 0);
    call.reply.integer(i64::from(is_set));
    Ok(())
}

/// Whether the argument at `index` says that a range counts bits instead of bytes.
fn counts_bits(call: &Call<'_>, index: usize) -> Result<bool, Failure> {
    match call.len() > index {
        true if call.is_word(index, "BIT") => Ok(true),
        true if !call.is_word(index, "BYTE") => Err(Failure::Syntax),
        _ => Ok(false),
    }
}

/// The bits from `start` to `end` of a value of this length. Negative positions count from its end.
fn bits(
    start: i64,
    end: Option<i64>,
    value_len: usize,
    counts_bits: bool,
) -> Option<RangeInclusive<usize>> {
    let len = if counts_bits { value_len * 8 } else { value_len } as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (place(start), end.map_or(len - 1, place).min(len - 1));
    if start > end {
        return None;
    }
    let (start, end) = (start as usize, end as usize);
    Some(if counts_bits { start..=end } else { start * 8..=end * 8 + 7 })
}

/// The bytes that a range of bits touches, with their indices. Bits outside the range are 0 in them; `flip`
/// inverts the bits inside.
fn bytes(
    value: &[u8],
    bits: &RangeInclusive<usize>,
    flip: bool,
) -> impl Iterator<Item = (usize, u8)> {
    let (first, last) = (bits.start() / 8, bits.end() / 8);
    let (head, tail) = (0xff_u8 >> (bits.start() % 8), 0xff_u8 << (7 - bits.end() % 8));
    let flip = if flip { 0xff } else { 0 };
    value[first..=last].iter().zip(first..).map(move |(&byte, at)| {
        let head = if at == first { head } else { 0xff };
        let tail = if at == last { tail } else { 0xff };
        (at, (byte ^ flip) & head & tail)
    })
}

/// Replies for a missing key or an empty range before reading the other arguments.
fn bitcount(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let Some(record) = call.string(tx, call.arg(1))? else {
        call.reply.integer(0);
        return Ok(());
    };
    let range = match call.len() {
        2 => bits(0, None, record.value.len(), false),
        4 | 5 => {
            let (start, end) = (call.integer(2)?, call.integer(3)?);
            if start < 0 && end < 0 && start > end {
                None
            } else {
                bits(start, Some(end), record.value.len(), counts_bits(call, 4)?)
            }
        }
        _ => return Err(Failure::Syntax),
    };
    let Some(range) = range else {
        call.reply.integer(0);
        return Ok(());
    };
    check_work(call, (range.end() - range.start()) / 8)?;
    let count: u64 =
        bytes(record.value, &range, false).map(|(_, b)| u64::from(b.count_ones())).sum();
    call.reply.integer(count as i64);
    Ok(())
}

fn bitpos(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let wanted = match call.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Failure::other("The bit argument must be 1 or 0.")),
    };
    let Some(record) = call.string(tx, call.arg(1))? else {
        call.reply.integer(if wanted { -1 } else { 0 });
        return Ok(());
    };
    if call.len() > 6 {
        return Err(Failure::Syntax);
    }
    let start = if call.len() > 3 { call.integer(3)? } else { 0 };
    let counts_bits = counts_bits(call, 5)?;
    let end = if call.len() > 4 { Some(call.integer(4)?) } else { None };
    let Some(range) = bits(start, end, record.value.len(), counts_bits) else {
        call.reply.integer(-1);
        return Ok(());
    };
    check_work(call, (range.end() - range.start()) / 8)?;
    let found = bytes(record.value, &range, !wanted).find(|&(_, byte)| byte != 0);
    let found = match found {
        Some((at, byte)) => at as i64 * 8 + i64::from(byte.leading_zeros()),
        // Without an explicit end, a value continues with zeros.
        None if !wanted && end.is_none() => record.value.len() as i64 * 8,
        None => -1,
    };
    call.reply.integer(found);
    Ok(())
}

/// Reads the values one after another, so that only two are held at a time, however many there are.
fn bitop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    type Combine = fn(u8, u8) -> u8;
    let operations: [(&str, Combine); 4] =
        [("AND", |a, b| a & b), ("OR", |a, b| a | b), ("XOR", |a, b| a ^ b), ("NOT", |a, _| !a)];
    let named = operations.into_iter().find(|(name, _)| call.is_word(1, name));
    let Some((name, combine)) = named else { return Err(Failure::Syntax) };
    if name == "NOT" && call.len() != 4 {
        return Err(Failure::other("BITOP NOT must be called with a single source key."));
    }
    let mut result: Vec<u8> = Vec::new();
    let mut read = 0;
    for (number, key) in call.request.arguments_from(3).enumerate() {
        let value = call.string(tx, key)?.map_or(&[][..], |record| record.value);
        read += value.len();
        if read > TRANSACTION_BYTES_MAX {
            return Err(Failure::other("the values are too long to be combined; take fewer keys"));
        }
        if number == 0 {
            result = value.to_vec();
            if name == "NOT" {
                result.iter_mut().for_each(|byte| *byte = combine(*byte, 0));
            }
            continue;
        }
        result.resize(result.len().max(value.len()), 0);
        let (common, rest) = result.split_at_mut(value.len());
        common.iter_mut().zip(value).for_each(|(a, &b)| *a = combine(*a, b));
        rest.iter_mut().for_each(|a| *a = combine(*a, 0));
    }
    if result.is_empty() {
        tx.delete(call.database, call.arg(2))?;
    } else {
        tx.put(call.database, call.arg(2), NewRecord::of(&result))?;
    }
    call.reply.integer(result.len() as i64);
    Ok(())
}
