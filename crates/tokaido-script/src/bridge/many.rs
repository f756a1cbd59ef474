//! `get_many`: keys are gathered, read in one round trip, and handed out one by one. The arguments of
//! a command are gathered in the same way.

use super::{
    context::{BUFFER_KEPT_MAX, Context, Fault, NO, YES, database},
    read::value_of,
};
use crate::Limits;

/// The keys and values of one `get_many`.
#[derive(Default)]
pub(crate) struct Many {
    /// The keys, or the arguments of a command.
    pub(super) list: List,
    values: Vec<u8>,
    /// Where each value stands in `values`.
    found: Vec<Option<(usize, usize)>>,
    next: usize,
}

impl Many {
    /// After a call: gives memory back that few calls need.
    pub(super) fn give_back(&mut self) {
        if self.list.bytes.capacity().max(self.values.capacity()) > BUFFER_KEPT_MAX {
            *self = Self::default();
        }
    }
}

/// Strings, packed into one buffer.
#[derive(Default)]
pub(crate) struct List {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl List {
    pub(super) fn strings(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let place = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
        self.ends.iter().map(place).collect()
    }
}

/// Begins a list.
pub(super) fn many_begin(context: &mut Context) -> Result<i32, Fault> {
    let List { bytes, ends } = &mut context.many.list;
    bytes.clear();
    ends.clear();
    Ok(YES)
}

/// Adds to the list.
pub(super) fn many_add(context: &mut Context, string: &[u8]) -> Result<i32, Fault> {
    let Limits { many_keys_max, many_bytes_max, .. } = context.limits;
    let List { bytes, ends } = &mut context.many.list;
    if ends.len() == many_keys_max || bytes.len() + string.len() > many_bytes_max {
        return Err(Fault::Refused(format!(
            "at most {many_keys_max} keys or arguments of {many_bytes_max} bytes are taken at once"
        )));
    }
    bytes.extend_from_slice(string);
    ends.push(bytes.len());
    Ok(YES)
}

/// Reads all of them.
pub(super) fn many_run(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let bytes_max = context.limits.many_bytes_max;
    let transaction = context.read()?;
    let Many { list, values, found, next } = &mut context.many;
    let keys = list.strings();
    (*next, *found) = (0, vec![None; keys.len()]);
    values.clear();
    let Some(id) = database(index)? else { return Ok(YES) };
    let (mut too_large, mut wrong) = (false, None);
    transaction.get_many(id, &keys, &mut |i, record| {
        let Some(record) = record else { return };
        if let Err(fault) = value_of(&record) {
            wrong = Some(fault);
            return;
        }
        if values.len() + record.value.len() > bytes_max {
            too_large = true;
            return;
        }
        let from = values.len();
        values.extend_from_slice(record.value);
        found[i] = Some((from, values.len()));
    })?;
    if let Some(fault) = wrong {
        return Err(fault);
    }
    if too_large {
        return Err(Fault::Refused(format!(
            "get_many brings at most {bytes_max} bytes; ask for fewer keys"
        )));
    }
    Ok(YES)
}

/// Reads every record under a key; how many there are is the reply's number.
pub(super) fn all_run(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Limits { many_keys_max, many_bytes_max, .. } = context.limits;
    let transaction = context.read()?;
    let Many { values, found, next, .. } = &mut context.many;
    (*next, *found) = (0, Vec::new());
    values.clear();
    context.reply.number = 0.0;
    let Some(id) = database(index)? else { return Ok(YES) };
    let (mut too_large, mut wrong) = (false, None);
    transaction.get_all(id, key, &mut |record| {
        if let Err(fault) = value_of(&record) {
            wrong = Some(fault);
            return;
        }
        let from = values.len();
        if from + record.value.len() > many_bytes_max || found.len() == many_keys_max {
            too_large = true;
            return;
        }
        values.extend_from_slice(record.value);
        found.push(Some((from, values.len())));
    })?;
    if let Some(fault) = wrong {
        return Err(fault);
    }
    if too_large {
        return Err(Fault::Refused(format!(
            "get_all brings at most {many_keys_max} values of {many_bytes_max} bytes; go through them with scan"
        )));
    }
    context.reply.number = found.len() as f64;
    Ok(YES)
}

/// The next value, in the order of the keys; `NO` where there is none.
pub(super) fn many_next(context: &mut Context) -> Result<i32, Fault> {
    let Many { values, found, next, .. } = &mut context.many;
    let place = found.get(*next).copied().flatten();
    *next += 1;
    let Some((from, to)) = place else { return Ok(NO) };
    context.reply.data(&values[from..to]);
    Ok(YES)
}
