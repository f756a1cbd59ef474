//! `get_many`: keys are gathered, read in one round trip, and handed out one by one. The arguments of
//! a command are gathered the same way.

use std::ops::ControlFlow;

use super::{
    context::{BUFFER_KEPT_MAX, Context, Fault, NO, YES, database},
    read::value_of,
};
use crate::Limits;

/// The input and output of one `get_many` or one combination of sets.
#[derive(Default)]
pub(crate) struct Many {
    /// The keys, or the arguments of a command.
    pub(super) list: List,
    /// The databases of those keys, if they differ.
    pub(super) indexes: Vec<i32>,
    pub(super) found: Found,
}

impl Many {
    /// After a call: frees memory that few calls need.
    pub(super) fn give_back(&mut self) {
        if self.list.bytes.capacity().max(self.found.values.capacity()) > BUFFER_KEPT_MAX {
            *self = Self::default();
        }
    }
}

/// Values for Lua to fetch one by one.
#[derive(Default)]
pub(crate) struct Found {
    values: Vec<u8>,
    /// Where each value is in `values`; `None` if there is none.
    places: Vec<Option<(usize, usize)>>,
    next: usize,
}

impl Found {
    /// Starts empty; the values may have that many bytes in all.
    pub(super) fn begin(&mut self, bytes_max: usize) -> Finding<'_> {
        self.next = 0;
        self.values.clear();
        self.places.clear();
        Finding { found: self, bytes_max, is_too_large: false }
    }
}

/// Values being found.
pub(super) struct Finding<'f> {
    found: &'f mut Found,
    bytes_max: usize,
    is_too_large: bool,
}

impl Finding<'_> {
    /// Takes the next value; breaks off if that is too much.
    pub(super) fn push(&mut self, value: Option<&[u8]>) -> ControlFlow<()> {
        let Found { values, places, .. } = &mut *self.found;
        let from = values.len();
        let value_len = value.map_or(0, <[u8]>::len);
        if self.is_too_large || from + value_len > self.bytes_max {
            self.is_too_large = true;
            return ControlFlow::Break(());
        }
        values.extend_from_slice(value.unwrap_or_default());
        places.push(value.map(|_| (from, values.len())));
        ControlFlow::Continue(())
    }

    /// How many have been found.
    pub(super) fn count(&self) -> usize {
        self.found.places.len()
    }

    /// Fails if the values were too much.
    pub(super) fn end(self) -> Result<i32, Fault> {
        match self.is_too_large {
            true => Err(too_large(self.bytes_max)),
            false => Ok(YES),
        }
    }
}

fn too_large(bytes_max: usize) -> Fault {
    Fault::Refused(format!("at most {bytes_max} bytes are brought at once; ask for less"))
}

/// Strings packed into one buffer.
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
    context.many.indexes.clear();
    Ok(YES)
}

/// Refuses more keys or arguments, or more bytes of them, than one call takes.
pub(super) fn check_list(limits: &Limits, count: usize, bytes: usize) -> Result<(), Fault> {
    let Limits { many_keys_max, many_bytes_max, .. } = *limits;
    if count > many_keys_max || bytes > many_bytes_max {
        return Err(Fault::Refused(format!(
            "at most {many_keys_max} keys or arguments of {many_bytes_max} bytes are taken at once"
        )));
    }
    Ok(())
}

/// Adds to the list.
pub(super) fn many_add(context: &mut Context, string: &[u8]) -> Result<i32, Fault> {
    let List { bytes, ends } = &mut context.many.list;
    check_list(&context.limits, ends.len() + 1, bytes.len() + string.len())?;
    bytes.extend_from_slice(string);
    ends.push(bytes.len());
    Ok(YES)
}

/// Reads all of them.
pub(super) fn many_run(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let bytes_max = context.limits.many_bytes_max;
    let transaction = context.read()?;
    let Many { list, found: Found { values, places, next }, .. } = &mut context.many;
    let keys = list.strings();
    (*next, *places) = (0, vec![None; keys.len()]);
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
        places[i] = Some((from, values.len()));
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

/// Reads every record under a key; the reply's number is how many there are.
pub(super) fn all_run(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Limits { many_keys_max, many_bytes_max, .. } = context.limits;
    let transaction = context.read()?;
    let Found { values, places, next } = &mut context.many.found;
    (*next, *places) = (0, Vec::new());
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
        if from + record.value.len() > many_bytes_max || places.len() == many_keys_max {
            too_large = true;
            return;
        }
        values.extend_from_slice(record.value);
        places.push(Some((from, values.len())));
    })?;
    if let Some(fault) = wrong {
        return Err(fault);
    }
    if too_large {
        return Err(Fault::Refused(format!(
            "get_all brings at most {many_keys_max} values of {many_bytes_max} bytes; go through them with scan"
        )));
    }
    context.reply.number = places.len() as f64;
    Ok(YES)
}

/// The next value, in the order of the keys; `NO` if there is none.
pub(super) fn many_next(context: &mut Context) -> Result<i32, Fault> {
    let Found { values, places, next } = &mut context.many.found;
    let place = places.get(*next).copied().flatten();
    *next += 1;
    let Some((from, to)) = place else { return Ok(NO) };
    context.reply.data(&values[from..to]);
    Ok(YES)
}
