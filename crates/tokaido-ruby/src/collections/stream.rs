//! Operations on streams. Their arguments were gathered: the number of the call, the key, and the
//! rest. Ids are passed in both directions as texts, `ms-number`.

use std::ops::RangeInclusive;

use tokaido_collections::{Fields, Stream, StreamId, Trim};
use tokaido_script::{Fault, Value};
use tokaido_store::{Direction, ReadTransaction, WriteError, limits::VALUE_LEN_MAX};

use super::{Call, Page, answer_boolean, answer_count, pair, stream_group, text};
use crate::context::{Context, database_of, text_of};

const COUNT: i64 = 0;
const LAST_ID: i64 = 1;
const GET: i64 = 2;
const PAGE: i64 = 3;
const ADD: i64 = 4;
const DELETE: i64 = 5;
const TRIM: i64 = 6;

/// Maximum overhead of a field or a value in an entry, in bytes.
const FIELD_HEAD_BYTES_MAX: usize = 10;

/// The arguments of a call, after its number and the key.
pub(super) struct Given(Vec<Value>);

impl Given {
    fn at(&self, place: usize) -> Value {
        self.0.get(place).cloned().unwrap_or(Value::Nil)
    }

    pub(super) fn text(&self, place: usize, what: &str) -> Result<Vec<u8>, Fault> {
        text_of(self.at(place), what)
    }

    /// Like [`text`](Self::text), but nil stands for none.
    pub(super) fn optional_text(&self, place: usize, what: &str) -> Result<Option<Vec<u8>>, Fault> {
        match self.at(place) {
            Value::Nil => Ok(None),
            value => text_of(value, what).map(Some),
        }
    }

    pub(super) fn count(&self, place: usize, what: &str) -> Result<u64, Fault> {
        match self.at(place) {
            Value::Integer(count) if count >= 0 => Ok(count.unsigned_abs()),
            _ => Err(Fault::Refused(format!("{what} is an integer from 0 up"))),
        }
    }

    /// Like [`count`](Self::count), but nil stands for no limit.
    pub(super) fn optional_count(&self, place: usize, what: &str) -> Result<u64, Fault> {
        match self.at(place) {
            Value::Nil => Ok(u64::MAX),
            _ => self.count(place, what),
        }
    }

    fn is_true(&self, place: usize) -> bool {
        self.at(place) == Value::Boolean(true)
    }

    /// Parses an id; without a sequence number it is the first one of its time.
    pub(super) fn id(&self, place: usize) -> Result<StreamId, Fault> {
        parse(&self.text(place, "an id")?, 0)
    }

    fn optional_id(&self, place: usize) -> Result<Option<StreamId>, Fault> {
        let text = self.optional_text(place, "an id")?;
        text.map(|text| parse(&text, 0)).transpose()
    }

    /// The range of ids in the arguments from `place` on: the lowest and the highest, each with
    /// whether it is excluded. `None` if the range is empty.
    pub(super) fn ids(&self, place: usize) -> Result<Option<RangeInclusive<StreamId>>, Fault> {
        let low = match self.optional_id(place)? {
            None => Some(StreamId::MIN),
            Some(low) if self.is_true(place + 1) => low.next(),
            low => low,
        };
        let high = match self.optional_text(place + 2, "an id")? {
            None => Some(StreamId::MAX),
            Some(high) if self.is_true(place + 3) => parse(&high, 0)?.previous(),
            Some(high) => Some(parse(&high, u64::MAX)?),
        };
        Ok(low.zip(high).map(|(low, high)| low..=high))
    }
}

fn parse(text: &[u8], missing: u64) -> Result<StreamId, Fault> {
    StreamId::parse(text, missing).ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        Fault::Refused(format!("{text:?} is no id; an id is like \"1700000000000-0\""))
    })
}

/// The fields of an entry.
pub(super) fn fields_of(mut fields: Fields<'_>) -> Value {
    let mut pairs = Vec::with_capacity(fields.len() / 2);
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        pairs.push((text(field), text(value)));
    }
    Value::Map(pairs)
}

/// An entry: its id and its fields.
pub(super) fn entry(id: StreamId, fields: Fields<'_>) -> Value {
    pair(id.to_string().as_bytes(), fields_of(fields))
}

/// The fields of the entry with this id.
pub(super) fn find(
    tx: &mut (impl ReadTransaction + ?Sized),
    stream: Stream<'_>,
    id: StreamId,
) -> Result<Option<Value>, Fault> {
    let (Some(state), mut found) = (stream.state(tx)?, None) else { return Ok(None) };
    stream.visit_one(tx, &state, id, |fields| found = Some(fields_of(fields)))?;
    Ok(found)
}

/// Runs the gathered call.
pub(crate) fn run(context: &mut Context, this: i64) -> Result<(), Fault> {
    let Value::Array(mut values) = context.gathering.take() else { return Ok(()) };
    let rest = values.split_off(values.len().min(2));
    let Ok([Value::Integer(number), key]) = <[Value; 2]>::try_from(values) else {
        return Err(Fault::refused("a call of a stream has a number and a key"));
    };
    let key = text_of(key, "a key")?;
    let call = Call { database: database_of(this)?, key: &key, arguments: &[] };
    let given = Given(rest);
    match number {
        ADD..=TRIM => write(context, number, &call, &given),
        COUNT..=PAGE => read(context, number, &call, &given),
        _ => stream_group::run(context, number, &call, &given),
    }
}

fn read(context: &mut Context, number: i64, call: &Call<'_>, given: &Given) -> Result<(), Fault> {
    let target = call.to_read(context)?.map(|(tx, id)| (tx, Stream::new(id, call.key)));
    match number {
        COUNT | LAST_ID => {
            let state = match target {
                Some((tx, stream)) => stream.state(tx)?,
                None => None,
            };
            match (number, state) {
                (COUNT, state) => answer_count(context, state.map_or(0, |state| state.len)),
                (_, Some(state)) => context.answer_bytes(state.last_id.to_string().into_bytes()),
                (_, None) => {}
            }
        }
        GET => {
            let id = given.id(0)?;
            if let Some((tx, stream)) = target {
                let found = find(tx, stream, id)?;
                found.into_iter().for_each(|fields| context.answer_value(fields));
            }
        }
        // A page of a range, in one direction.
        _ => {
            let ids = given.ids(0)?;
            let direction = match given.is_true(4) {
                true => Direction::Backward,
                false => Direction::Forward,
            };
            let entries = usize::try_from(given.count(5, "a number of entries")?).unwrap_or(1);
            let mut page = Page::begin(entries.max(1));
            if let (Some((tx, stream)), Some(ids)) = (target, ids)
                && let Some(state) = stream.state(tx)?
            {
                stream.visit(tx, &state, ids, direction, &mut |id, fields| {
                    let bytes = fields.clone().map(<[u8]>::len).sum();
                    page.push(entry(id, fields), bytes)
                })?;
            }
            page.answer(context);
        }
    }
    Ok(())
}

fn write(context: &mut Context, number: i64, call: &Call<'_>, given: &Given) -> Result<(), Fault> {
    let limits = context.limits;
    let (tx, database) = call.to_write(context)?;
    let stream = Stream::new(database, call.key);
    match number {
        ADD => {
            let id = given.optional_id(0)?;
            let Value::Array(fields) = given.at(1) else { return Ok(()) };
            let fields = fields.into_iter().map(|text| text_of(text, "a field or a value"));
            let fields = fields.collect::<Result<Vec<_>, _>>()?;
            let len = fields.iter().map(|text| text.len() + FIELD_HEAD_BYTES_MAX).sum();
            if len > VALUE_LEN_MAX {
                return Err(Fault::refused(WriteError::ValueLength { len, max: VALUE_LEN_MAX }));
            }
            let found = stream.state(tx)?;
            let last = found.map_or(StreamId::MIN, |state| state.last_id);
            let id = id.or_else(|| StreamId::after(last, tx.now_ms())).filter(|id| *id > last);
            let id = id.ok_or_else(|| {
                Fault::Refused(format!(
                    "an entry's id is larger than that of all before it, here than {last}"
                ))
            })?;
            let mut state = match found {
                Some(state) => state,
                None => stream.open(tx).map_err(Fault::half_done)?,
            };
            let fields = fields.iter().map(Vec::as_slice);
            stream.append(tx, &mut state, id, fields).map_err(Fault::half_done)?;
            context.answer_bytes(id.to_string().into_bytes());
        }
        DELETE => {
            let id = given.id(0)?;
            let deleted = match stream.state(tx)? {
                Some(mut state) => {
                    stream.delete(tx, &mut state, [id]).map_err(Fault::half_done)? > 0
                }
                None => false,
            };
            answer_boolean(context, deleted);
        }
        // Trims as many entries as one call may: all but the last `len`, and those before `min_id`.
        // Answers with their number, and whether there may be more.
        _ => {
            let max = limits.many_keys_max as u64;
            let (len, min_id) = (given.optional_count(0, "max_count")?, given.optional_id(1)?);
            let mut trimmed = 0;
            if let Some(mut state) = stream.state(tx)? {
                let to_len = stream.trim(tx, &mut state, Trim::ToLen(len), max);
                trimmed = to_len.map_err(Fault::half_done)?;
                if let Some(last) = min_id.and_then(StreamId::previous) {
                    let up_to = stream.trim(tx, &mut state, Trim::UpTo(last), max - trimmed);
                    trimmed += up_to.map_err(Fault::half_done)?;
                }
            }
            let is_more = Value::Boolean(trimmed == max);
            let trimmed = Value::Integer(i64::try_from(trimmed).unwrap_or(i64::MAX));
            context.answer_value(Value::Array(vec![trimmed, is_more]));
        }
    }
    Ok(())
}
