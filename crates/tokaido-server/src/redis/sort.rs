//! SORT and SORT_RO: the elements of a list, a set or a sorted set, ordered by themselves or by other values.

use std::{cmp::Ordering, ops::Range};

use tokaido_collections::{End, Hash, List, Set, SortedSet, Span};
use tokaido_store::{
    Direction, Kind, ReadTransaction, WriteTransaction,
    limits::{FIELD_LEN_MAX, KEY_LEN_MAX},
};

use super::{
    call::{Call, Room},
    command::{Command, rows},
    failure::Failure,
    number::parse_double,
};

pub(super) const COMMANDS: &[Command] = rows! {
"sort" -2 Write(sort), KEY [DENYOOM MOVABLE_KEYS DANGEROUS] Generic "1.0.0"
    "key [BY by-pattern] [LIMIT offset count] [GET get-pattern] [ASC | DESC] [ALPHA] [STORE destination]"
    "Returns or stores the elements of a list, set or sorted set in sorted order. GET may be repeated.";
"sort_ro" -2 Read(sort_ro), KEY [MOVABLE_KEYS DANGEROUS] Generic "7.0.0"
    "key [BY by-pattern] [LIMIT offset count] [GET get-pattern] [ASC | DESC] [ALPHA]"
    "Returns the elements of a list, set or sorted set in sorted order. GET may be repeated.";
};

/// The options of SORT.
struct Options<'c> {
    by: Option<&'c [u8]>,
    gets: Vec<&'c [u8]>,
    offset: i64,
    /// Negative: all.
    count: i64,
    is_descending: bool,
    is_alphabetic: bool,
    store: Option<&'c [u8]>,
}

impl<'c> Options<'c> {
    fn read(call: &Call<'c>, may_store: bool) -> Result<Self, Failure> {
        let mut options = Self {
            by: None,
            gets: Vec::new(),
            offset: 0,
            count: -1,
            is_descending: false,
            is_alphabetic: false,
            store: None,
        };
        let mut at = 2;
        while at < call.len() {
            let left = call.len() - at - 1;
            at += if call.is_word(at, "ASC") {
                options.is_descending = false;
                1
            } else if call.is_word(at, "DESC") {
                options.is_descending = true;
                1
            } else if call.is_word(at, "ALPHA") {
                options.is_alphabetic = true;
                1
            } else if call.is_word(at, "LIMIT") && left >= 2 {
                (options.offset, options.count) = (call.integer(at + 1)?, call.integer(at + 2)?);
                3
            } else if call.is_word(at, "STORE") && left >= 1 && may_store {
                options.store = Some(call.arg(at + 1));
                2
            } else if call.is_word(at, "BY") && left >= 1 {
                options.by = Some(call.arg(at + 1));
                2
            } else if call.is_word(at, "GET") && left >= 1 {
                options.gets.push(call.arg(at + 1));
                2
            } else {
                return Err(Failure::Syntax);
            };
        }
        Ok(options)
    }

    /// The range that LIMIT selects of `len` elements.
    fn range(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.offset.max(0)).unwrap_or(len).min(len);
        let count = usize::try_from(self.count).unwrap_or(len);
        start..start.saturating_add(count).min(len)
    }
}

fn sort(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let options = Options::read(call, true)?;
    let mut room = call.room();
    let rows = rows_of(call, tx, &options, &mut room)?;
    let Some(key) = options.store else {
        tell(call, &rows);
        return Ok(());
    };
    tx.delete(call.database, key)?;
    if !rows.is_empty() {
        let items = rows.iter().map(|text| text.as_deref().unwrap_or_default());
        List::new(call.database, key).push(tx, call.packing(), End::Back, items)?;
    }
    call.reply.integer(rows.len() as i64);
    Ok(())
}

fn sort_ro(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let options = Options::read(call, false)?;
    let mut room = call.room();
    let rows = rows_of(call, tx, &options, &mut room)?;
    tell(call, &rows);
    Ok(())
}

fn tell(call: &mut Call<'_>, rows: &[Option<Vec<u8>>]) {
    call.reply.array(rows.len());
    for text in rows {
        call.reply.bulk_or_null(text.as_deref());
    }
}

/// What the command returns: the elements in order, or the results of GET for each of them.
fn rows_of(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    options: &Options<'_>,
    room: &mut Room,
) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    let (kind, mut elements) = elements(call, tx, room)?;
    let is_constant = options.by.is_some_and(|pattern| !pattern.contains(&b'*'));
    if !is_constant {
        elements = in_order(call, tx, elements, options, room)?;
    } else if kind == Kind::Set && options.store.is_some() {
        elements.sort_unstable();
        if options.is_descending {
            elements.reverse();
        }
    } else if options.is_descending && kind != Kind::Set {
        elements.reverse();
    }
    let range = options.range(elements.len());
    let chosen = elements.into_iter().skip(range.start).take(range.len());
    if options.gets.is_empty() {
        return Ok(chosen.map(Some).collect());
    }
    let mut rows = Vec::new();
    for element in chosen {
        for pattern in &options.gets {
            let found = look_up(call, tx, pattern, &element)?;
            let _ = room.take(found.as_ref().map_or(0, Vec::len));
            call.check_room(room)?;
            rows.push(found);
        }
    }
    Ok(rows)
}

/// All elements, in the collection's own order.
fn elements(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    room: &mut Room,
) -> Result<(Kind, Vec<Vec<u8>>), Failure> {
    let (database, key) = (call.database, call.arg(1));
    let kind = tx.get(database, key)?.map_or(Kind::List, |record| record.kind);
    let mut elements = Vec::new();
    let mut keep = |element: &[u8]| {
        elements.push(element.to_vec());
        room.take(element.len())
    };
    match kind {
        Kind::List => {
            let list = List::new(database, key);
            let len = list.len(tx)?;
            call.check_visit(len)?;
            list.visit(tx, 0..len, Direction::Forward, |_, item| keep(item))?;
        }
        Kind::Set => {
            let set = Set::new(database, key);
            call.check_visit(set.len(tx)?)?;
            set.visit(tx, keep)?;
        }
        Kind::SortedSet => {
            let set = SortedSet::new(database, key);
            call.check_visit(set.len(tx)?)?;
            set.visit(tx, &Span::all(), Direction::Forward, |member, _| keep(member))?;
        }
        _ => return Err(Failure::WrongKind),
    }
    call.check_room(room)?;
    Ok((kind, elements))
}

/// What an element is sorted by.
enum Weight {
    Number(f64),
    /// A missing text sorts before all others.
    Text(Option<Vec<u8>>),
}

impl Weight {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

fn in_order(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
    room: &mut Room,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let found = look_up(call, tx, options.by.unwrap_or(b"#"), &element)?;
        let weight = if options.is_alphabetic {
            let _ = room.take(found.as_ref().map_or(0, Vec::len));
            call.check_room(room)?;
            Weight::Text(found)
        } else {
            Weight::Number(found.map_or(Ok(0.0), |text| score(&text))?)
        };
        weighed.push((weight, element));
    }
    weighed.sort_by(|(a, element), (b, other)| {
        let by_weight = a.compare(b);
        // Equal texts keep their order; equal numbers are ordered by their elements.
        let order = match a {
            Weight::Number(_) => by_weight.then_with(|| element.cmp(other)),
            Weight::Text(_) => by_weight,
        };
        if options.is_descending { order.reverse() } else { order }
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

/// Parses a number as C does, with leading spaces. An empty text is 0.
fn score(text: &[u8]) -> Result<f64, Failure> {
    if text.is_empty() {
        return Ok(0.0);
    }
    let number = parse_double(text.trim_ascii_start());
    number.ok_or_else(|| Failure::other("One or more scores can't be converted into double"))
}

/// The value that a pattern refers to, with the element in place of its star: that of a key, or of a field
/// after `->`. `#` is the element itself.
fn look_up(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    pattern: &[u8],
    element: &[u8],
) -> Result<Option<Vec<u8>>, Failure> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else { return Ok(None) };
    let (before, behind) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = behind.windows(2).position(|two| two == b"->");
    let arrow = arrow.filter(|arrow| arrow + 2 < behind.len());
    let key = [before, element, &behind[..arrow.unwrap_or(behind.len())]].concat();
    let field = arrow.map(|arrow| &behind[arrow + 2..]);
    let is_too_long = key.len() > KEY_LEN_MAX || field.is_some_and(|f| f.len() > FIELD_LEN_MAX);
    if is_too_long || key.is_empty() {
        return Ok(None);
    }
    let Some(record) = tx.get(call.database, &key)? else { return Ok(None) };
    match (field, record.kind) {
        (None, Kind::Bytes) => Ok(Some(record.value.to_vec())),
        (Some(field), Kind::Hash) => {
            let mut found = None;
            let hash = Hash::new(call.database, &key);
            hash.look_up(tx, [field], |value| found = value.map(<[u8]>::to_vec))?;
            Ok(found)
        }
        _ => Ok(None),
    }
}
