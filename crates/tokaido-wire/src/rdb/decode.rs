//! Decodes payloads into values.

use super::{
    PayloadError, Texts,
    packed::{self, Element, Visit},
    reader::{Reader, score_of},
    stream::{self, Form, StreamValue},
};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(Vec<u8>),
    /// The items of a list, in order.
    List(Texts),
    /// The members of a set. One may occur twice, but not in a payload that DUMP made.
    Set(Texts),
    /// The fields of a hash, each before its value. One may occur twice.
    Hash(Texts),
    /// The members of a sorted set, and as many scores. One may occur twice; no score is NaN.
    SortedSet(Texts, Vec<f64>),
    /// A stream, which may have no entries.
    Stream(StreamValue),
}

/// The type bytes before values, named as in Redis.
pub(super) mod kind {
    pub(in crate::rdb) const STRING: u8 = 0;
    pub(in crate::rdb) const LIST: u8 = 1;
    pub(in crate::rdb) const SET: u8 = 2;
    pub(in crate::rdb) const ZSET: u8 = 3;
    pub(in crate::rdb) const HASH: u8 = 4;
    pub(in crate::rdb) const ZSET_2: u8 = 5;
    pub(in crate::rdb) const HASH_ZIPMAP: u8 = 9;
    pub(in crate::rdb) const LIST_ZIPLIST: u8 = 10;
    pub(in crate::rdb) const SET_INTSET: u8 = 11;
    pub(in crate::rdb) const ZSET_ZIPLIST: u8 = 12;
    pub(in crate::rdb) const HASH_ZIPLIST: u8 = 13;
    pub(in crate::rdb) const LIST_QUICKLIST: u8 = 14;
    pub(in crate::rdb) const HASH_LISTPACK: u8 = 16;
    pub(in crate::rdb) const ZSET_LISTPACK: u8 = 17;
    pub(in crate::rdb) const LIST_QUICKLIST_2: u8 = 18;
    pub(in crate::rdb) const SET_LISTPACK: u8 = 20;
    pub(in crate::rdb) const STREAM_LISTPACKS: u8 = 15;
    pub(in crate::rdb) const STREAM_LISTPACKS_2: u8 = 19;
    pub(in crate::rdb) const STREAM_LISTPACKS_3: u8 = 21;
}

/// The forms of a quicklist node.
const NODE_PLAIN: u64 = 1;
const NODE_PACKED: u64 = 2;

/// Visits the elements of a packed form.
type Unpack = for<'p> fn(&'p [u8], Visit<'_, 'p>) -> Result<(), PayloadError>;

/// Decodes the value of a payload without its footer. The value takes at most twice `bytes_max` in
/// memory.
///
/// # Errors
/// [`PayloadError::Format`], also for an empty collection and for unsupported values of Redis, such
/// as those of modules; [`PayloadError::TooLarge`].
pub fn decode(body: &[u8], bytes_max: usize) -> Result<Value, PayloadError> {
    let mut decoder = Decoder { reader: Reader::new(body, bytes_max), bytes_max };
    let value = decoder.value()?;
    let is_empty = match &value {
        Value::String(_) | Value::Stream(_) => false,
        Value::List(texts)
        | Value::Set(texts)
        | Value::Hash(texts)
        | Value::SortedSet(texts, _) => texts.is_empty(),
    };
    if is_empty || !decoder.reader.is_at_end() { Err(PayloadError::Format) } else { Ok(value) }
}

struct Decoder<'p> {
    reader: Reader<'p>,
    bytes_max: usize,
}

impl Decoder<'_> {
    fn value(&mut self) -> Result<Value, PayloadError> {
        use packed::{intset, listpack, ziplist, zipmap};
        Ok(match self.reader.byte()? {
            kind::STRING => Value::String(self.reader.text()?.into_owned()),
            kind::LIST => Value::List(self.texts(1)?),
            kind::SET => Value::Set(self.texts(1)?),
            kind::HASH => Value::Hash(self.texts(2)?),
            kind::ZSET => self.sorted_set(|reader| reader.score_in_digits())?,
            kind::ZSET_2 => self.sorted_set(|reader| reader.score())?,
            kind::HASH_ZIPMAP => Value::Hash(self.packed(zipmap)?),
            kind::LIST_ZIPLIST => Value::List(self.packed(ziplist)?),
            kind::SET_INTSET => Value::Set(self.packed(intset)?),
            kind::SET_LISTPACK => Value::Set(self.packed(listpack)?),
            kind::ZSET_ZIPLIST => self.packed_sorted_set(ziplist)?,
            kind::ZSET_LISTPACK => self.packed_sorted_set(listpack)?,
            kind::HASH_ZIPLIST => Value::Hash(even(self.packed(ziplist)?)?),
            kind::HASH_LISTPACK => Value::Hash(even(self.packed(listpack)?)?),
            kind::LIST_QUICKLIST => self.quicklist(false)?,
            kind::LIST_QUICKLIST_2 => self.quicklist(true)?,
            kind::STREAM_LISTPACKS => self.stream(Form::First)?,
            kind::STREAM_LISTPACKS_2 => self.stream(Form::Second)?,
            kind::STREAM_LISTPACKS_3 => self.stream(Form::Third)?,
            _ => return Err(PayloadError::Format),
        })
    }

    fn stream(&mut self, form: Form) -> Result<Value, PayloadError> {
        stream::decode(&mut self.reader, form, self.bytes_max).map(Value::Stream)
    }

    /// A count, and then `each` times as many texts.
    fn texts(&mut self, each: usize) -> Result<Texts, PayloadError> {
        let mut texts = Texts::default();
        for _ in 0..self.reader.count()?.saturating_mul(each) {
            texts.push(&self.reader.text()?, self.bytes_max)?;
        }
        Ok(texts)
    }

    fn sorted_set(
        &mut self,
        score: fn(&mut Reader<'_>) -> Result<f64, PayloadError>,
    ) -> Result<Value, PayloadError> {
        let (mut members, mut scores) = (Texts::default(), Vec::new());
        for _ in 0..self.reader.count()? {
            members.push(&self.reader.text()?, self.bytes_max)?;
            scores.push(number(score(&mut self.reader)?)?);
        }
        Ok(Value::SortedSet(members, scores))
    }

    fn packed(&mut self, unpack: Unpack) -> Result<Texts, PayloadError> {
        let mut texts = Texts::default();
        let pack = self.reader.text()?;
        unpack(&pack, &mut |element| packed::push(&mut texts, element, self.bytes_max))?;
        Ok(texts)
    }

    /// Members, each before its score.
    fn packed_sorted_set(&mut self, unpack: Unpack) -> Result<Value, PayloadError> {
        let (mut members, mut scores) = (Texts::default(), Vec::new());
        let mut is_score = false;
        let pack = self.reader.text()?;
        unpack(&pack, &mut |element| {
            if is_score {
                scores.push(number(match element {
                    Element::Integer(score) => score as f64,
                    Element::Text(digits) => score_of(digits)?,
                })?);
            } else {
                packed::push(&mut members, element, self.bytes_max)?;
            }
            is_score = !is_score;
            Ok(())
        })?;
        if is_score { Err(PayloadError::Format) } else { Ok(Value::SortedSet(members, scores)) }
    }

    /// Nodes, each of them packed or a single item.
    fn quicklist(&mut self, says_form: bool) -> Result<Value, PayloadError> {
        let mut items = Texts::default();
        for _ in 0..self.reader.count()? {
            let form = if says_form { Some(self.reader.number()?) } else { None };
            let node = self.reader.text()?;
            let mut add = |element: Element<'_>| packed::push(&mut items, element, self.bytes_max);
            match form {
                None => packed::ziplist(&node, &mut add)?,
                Some(NODE_PACKED) => packed::listpack(&node, &mut add)?,
                Some(NODE_PLAIN) => add(Element::Text(&node))?,
                Some(_) => return Err(PayloadError::Format),
            }
        }
        Ok(Value::List(items))
    }
}

fn even(texts: Texts) -> Result<Texts, PayloadError> {
    if texts.len().is_multiple_of(2) { Ok(texts) } else { Err(PayloadError::Format) }
}

fn number(score: f64) -> Result<f64, PayloadError> {
    if score.is_nan() { Err(PayloadError::Format) } else { Ok(score) }
}
