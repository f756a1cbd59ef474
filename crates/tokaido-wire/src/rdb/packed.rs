//! The packed forms of small collections: listpacks, their predecessors in older versions of Redis
//! (ziplists and zipmaps), and intsets, which hold only integers. Each is read from its start, and
//! refused unless it ends where its header says.

use super::{PayloadError, Texts, reader::Reader};

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element<'p> {
    Text(&'p [u8]),
    Integer(i64),
}

/// A callback for each element.
pub(super) type Visit<'v, 'p> = &'v mut dyn FnMut(Element<'p>) -> Result<(), PayloadError>;

/// The last byte of a listpack, a ziplist or a zipmap.
const END: u8 = 0xff;

/// Stands for an unknown number of elements.
const MANY: u16 = u16::MAX;

/// The two's complement number in the lowest `bits` bits.
fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

fn int_24(reader: &mut Reader<'_>) -> Result<i64, PayloadError> {
    let [a, b, c] = reader.array()?;
    Ok(signed(u64::from(u32::from_le_bytes([a, b, c, 0])), 24))
}

/// Visits each element of a listpack.
pub(super) fn listpack<'p>(bytes: &'p [u8], visit: Visit<'_, 'p>) -> Result<(), PayloadError> {
    let mut reader = Reader::new(bytes, 0);
    let len = u32::from_le_bytes(reader.array()?) as usize;
    let announced = u16::from_le_bytes(reader.array()?);
    if len != bytes.len() {
        return Err(PayloadError::Format);
    }
    let mut count = 0usize;
    loop {
        let first = reader.byte()?;
        if first == END {
            break;
        }
        // The length of the element, head included, follows it, for reading backwards.
        let (element, len) = listpack_element(&mut reader, first)?;
        check_back_length(&mut reader, len)?;
        visit(element)?;
        count += 1;
    }
    end(&reader, count, announced)
}

fn listpack_element<'p>(
    reader: &mut Reader<'p>,
    first: u8,
) -> Result<(Element<'p>, usize), PayloadError> {
    let integer = |value: i64, len: usize| Ok((Element::Integer(value), len));
    let (head_len, len) = match first {
        0x00..=0x7f => return integer(i64::from(first), 1),
        0x80..=0xbf => (1, usize::from(first & 0x3f)),
        0xc0..=0xdf => {
            let value = u64::from(first & 0x1f) << 8 | u64::from(reader.byte()?);
            return integer(signed(value, 13), 2);
        }
        0xe0..=0xef => (2, usize::from(first & 0x0f) << 8 | usize::from(reader.byte()?)),
        0xf0 => (5, u32::from_le_bytes(reader.array()?) as usize),
        0xf1 => return integer(i64::from(i16::from_le_bytes(reader.array()?)), 3),
        0xf2 => return integer(int_24(reader)?, 4),
        0xf3 => return integer(i64::from(i32::from_le_bytes(reader.array()?)), 5),
        0xf4 => return integer(i64::from_le_bytes(reader.array()?), 9),
        _ => return Err(PayloadError::Format),
    };
    Ok((Element::Text(reader.take(len)?), head_len + len))
}

fn check_back_length(reader: &mut Reader<'_>, len: usize) -> Result<(), PayloadError> {
    for byte in back_length(len) {
        if reader.byte()? != byte {
            return Err(PayloadError::Format);
        }
    }
    Ok(())
}

/// Seven bits per byte, the lowest in the last; all bytes but the first have the top bit set.
fn back_length(len: usize) -> impl Iterator<Item = u8> {
    let size = match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    (0..size).map(move |place| {
        let bits = (len >> (7 * (size - 1 - place)) & 0x7f) as u8;
        if place == 0 { bits } else { bits | 0x80 }
    })
}

/// Visits each element of a ziplist.
pub(super) fn ziplist<'p>(bytes: &'p [u8], visit: Visit<'_, 'p>) -> Result<(), PayloadError> {
    let mut reader = Reader::new(bytes, 0);
    let len = u32::from_le_bytes(reader.array()?) as usize;
    // The offset of the last element, which serves reading backwards.
    let _last: [u8; 4] = reader.array()?;
    let announced = u16::from_le_bytes(reader.array()?);
    if len != bytes.len() {
        return Err(PayloadError::Format);
    }
    let mut count = 0usize;
    loop {
        match reader.byte()? {
            END => break,
            // The length of the previous element, which is known.
            0xfe => drop(reader.take(4)?),
            _ => {}
        }
        visit(ziplist_element(&mut reader)?)?;
        count += 1;
    }
    end(&reader, count, announced)
}

fn ziplist_element<'p>(reader: &mut Reader<'p>) -> Result<Element<'p>, PayloadError> {
    let first = reader.byte()?;
    let len = match first {
        0x00..=0x3f => usize::from(first),
        0x40..=0x7f => usize::from(first & 0x3f) << 8 | usize::from(reader.byte()?),
        0x80..=0xbf => u32::from_be_bytes(reader.array()?) as usize,
        _ => {
            return Ok(Element::Integer(match first {
                0xc0 => i64::from(i16::from_le_bytes(reader.array()?)),
                0xd0 => i64::from(i32::from_le_bytes(reader.array()?)),
                0xe0 => i64::from_le_bytes(reader.array()?),
                0xf0 => int_24(reader)?,
                0xfe => i64::from(i8::from_le_bytes(reader.array()?)),
                0xf1..=0xfd => i64::from(first & 0x0f) - 1,
                _ => return Err(PayloadError::Format),
            }));
        }
    };
    reader.take(len).map(Element::Text)
}

/// Checks that nothing follows, and that the number of elements is as announced.
fn end(reader: &Reader<'_>, count: usize, announced: u16) -> Result<(), PayloadError> {
    let is_right = announced == MANY || usize::from(announced) == count;
    if reader.is_at_end() && is_right { Ok(()) } else { Err(PayloadError::Format) }
}

/// Adds an element to texts.
pub(super) fn push(
    texts: &mut Texts,
    element: Element<'_>,
    bytes_max: usize,
) -> Result<(), PayloadError> {
    match element {
        Element::Text(text) => texts.push(text, bytes_max),
        Element::Integer(integer) => {
            texts.push(itoa::Buffer::new().format(integer).as_bytes(), bytes_max)
        }
    }
}

/// Writes a listpack.
#[derive(Debug, Default)]
pub(super) struct Packer {
    elements: Vec<u8>,
    count: usize,
}

impl Packer {
    /// The number of bytes written.
    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn integer(&mut self, value: i64) {
        match u8::try_from(value) {
            Ok(small @ 0..=0x7f) => self.element(&[small], &[]),
            _ => self.element(&[&[0xf4][..], &value.to_le_bytes()].concat(), &[]),
        }
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        match text.len() {
            len @ 0..=0x3f => self.element(&[0x80 | len as u8], text),
            len @ 0x40..=0xfff => self.element(&(0xe000 | len as u16).to_be_bytes(), text),
            len => self.element(&[&[0xf0][..], &(len as u32).to_le_bytes()].concat(), text),
        }
    }

    fn element(&mut self, head: &[u8], text: &[u8]) {
        self.elements.extend_from_slice(head);
        self.elements.extend_from_slice(text);
        self.elements.extend(back_length(head.len() + text.len()));
        self.count += 1;
    }

    /// The listpack of the elements of `self`, followed by those of `rest`.
    pub(super) fn end_with(&self, rest: &Self) -> Vec<u8> {
        const HEAD_LEN: usize = 6;
        let len = HEAD_LEN + self.len() + rest.len() + 1;
        let count = u16::try_from(self.count + rest.count).unwrap_or(MANY);
        let head = [&(len as u32).to_le_bytes()[..], &count.to_le_bytes()].concat();
        [&head, &self.elements, &rest.elements, &[END][..]].concat()
    }
}

/// Visits each key of a zipmap, and then its value.
pub(super) fn zipmap<'p>(bytes: &'p [u8], visit: Visit<'_, 'p>) -> Result<(), PayloadError> {
    let mut reader = Reader::new(bytes, 0);
    // The number of keys, or 254 if it is unknown.
    let _count = reader.byte()?;
    let length = |reader: &mut Reader<'p>| match reader.byte()? {
        END => Ok(None),
        0xfe => Ok(Some(u32::from_le_bytes(reader.array()?) as usize)),
        len => Ok(Some(usize::from(len))),
    };
    while let Some(len) = length(&mut reader)? {
        visit(Element::Text(reader.take(len)?))?;
        let len = length(&mut reader)?.ok_or(PayloadError::Format)?;
        let free = reader.byte()?;
        visit(Element::Text(reader.take(len)?))?;
        reader.take(usize::from(free))?;
    }
    if reader.is_at_end() { Ok(()) } else { Err(PayloadError::Format) }
}

/// Visits each integer of an intset.
pub(super) fn intset<'p>(bytes: &'p [u8], visit: Visit<'_, 'p>) -> Result<(), PayloadError> {
    let mut reader = Reader::new(bytes, 0);
    let width = u32::from_le_bytes(reader.array()?);
    let count = u32::from_le_bytes(reader.array()?);
    for _ in 0..count {
        visit(Element::Integer(match width {
            2 => i64::from(i16::from_le_bytes(reader.array()?)),
            4 => i64::from(i32::from_le_bytes(reader.array()?)),
            8 => i64::from_le_bytes(reader.array()?),
            _ => return Err(PayloadError::Format),
        }))?;
    }
    if reader.is_at_end() { Ok(()) } else { Err(PayloadError::Format) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = for<'p> fn(&'p [u8], Visit<'_, 'p>) -> Result<(), PayloadError>;

    fn read(read: Read, bytes: &[u8]) -> Result<Vec<String>, PayloadError> {
        let mut elements = Vec::new();
        read(bytes, &mut |element| {
            elements.push(match element {
                Element::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Element::Integer(integer) => integer.to_string(),
            });
            Ok(())
        })?;
        Ok(elements)
    }

    /// A listpack or ziplist with `head` before its elements.
    fn with_head(head: &[u8], elements: &[u8]) -> Vec<u8> {
        let len = (4 + head.len() + elements.len() + 1) as u32;
        [&len.to_le_bytes(), head, elements, &[END]].concat()
    }

    #[test]
    fn every_form_in_a_listpack_is_read() {
        let elements = b"\x05\x01\x82ab\x03\xdf\xff\x02\xe0\x01c\x03\xf0\x01\x00\x00\x00d\x06\
            \xf1\x00\x80\x03\xf2\xff\xff\xff\x04\xf3\x01\x00\x00\x00\x05\
            \xf4\xff\xff\xff\xff\xff\xff\xff\x7f\x09";
        let pack = with_head(b"\x09\0", elements);
        let expected = ["5", "ab", "-1", "c", "d", "-32768", "-1", "1", "9223372036854775807"];
        assert_eq!(read(listpack, &pack).unwrap(), expected);
    }

    #[test]
    fn every_form_in_a_ziplist_is_read() {
        let elements = b"\x00\x02ab\x04\x40\x01c\x03\x80\0\0\0\x01d\x07\xc0\x00\x80\
            \x04\xd0\x01\0\0\0\x06\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x0a\xf0\xff\xff\xff\
            \xfe\x05\0\0\0\xfe\x80\x03\xf1\x02\xfd";
        let pack = with_head(b"\0\0\0\0\x0a\0", elements);
        let expected = ["ab", "c", "d", "-32768", "1", "-1", "-1", "-128", "0", "12"];
        assert_eq!(read(ziplist, &pack).unwrap(), expected);
    }

    #[test]
    fn zipmaps_and_intsets_are_read() {
        let map = b"\x02\x01a\x01\x00x\xfe\x02\0\0\0bb\x01\x02yzz\xff";
        assert_eq!(read(zipmap, map).unwrap(), ["a", "x", "bb", "y"]);
        let set = b"\x02\0\0\0\x02\0\0\0\xff\xff\x05\0";
        assert_eq!(read(intset, set).unwrap(), ["-1", "5"]);
    }

    #[test]
    fn what_is_cut_short_or_goes_on_is_refused() {
        let packs: [(Read, Vec<u8>); 4] = [
            (listpack, with_head(b"\x02\0", b"\x05\x01\x82ab\x03")),
            (ziplist, with_head(b"\0\0\0\0\x01\0", b"\x00\x02ab")),
            (zipmap, b"\x01\x01a\x01\x00x\xff".to_vec()),
            (intset, b"\x02\0\0\0\x01\0\0\0\xff\xff".to_vec()),
        ];
        for (kind, pack) in packs {
            assert!(read(kind, &pack).is_ok());
            for len in 0..pack.len() {
                assert!(read(kind, &pack[..len]).is_err(), "{:?}", &pack[..len]);
            }
            assert!(read(kind, &[&pack[..], b"\0"].concat()).is_err());
        }
    }
}
