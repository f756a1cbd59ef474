//! Streams: entries packed into listpacks, and consumer groups with their pending entries.

use std::collections::HashMap;

use super::{
    Encoder, PayloadError, Texts,
    packed::{self, Element, Packer},
    reader::Reader,
};

/// The id of an entry: a time in ms since the epoch, and a sequence number.
pub type EntryId = (u64, u64);

/// A stream without its entries; a decoded one has them, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamValue {
    /// The entries: the id of each, and the index in `texts` of its first field. Ids increase.
    pub entries: Vec<(EntryId, usize)>,
    /// Fields, each before its value.
    pub texts: Texts,
    /// The largest id that any entry ever had.
    pub last_id: EntryId,
    /// The id of the first entry; zero if there is none.
    pub first_id: EntryId,
    /// The largest id of an entry that was deleted.
    pub max_deleted_id: EntryId,
    /// How many entries were ever added.
    pub added: u64,
    /// The consumer groups.
    pub groups: Vec<GroupValue>,
}

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupValue {
    /// Its name.
    pub name: Vec<u8>,
    /// The id of the last entry that was delivered.
    pub last_id: EntryId,
    /// How many entries had been added up to and including that one, if known.
    pub entries_read: Option<u64>,
    /// The consumers: the name of each, and when it was last seen, in ms since the epoch.
    pub consumers: Vec<(Vec<u8>, u64)>,
    /// The pending entries, ordered by id.
    pub pending: Vec<PendingValue>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingValue {
    /// The id of the entry, which may have been deleted.
    pub id: EntryId,
    /// The index of its consumer within the group.
    pub consumer: usize,
    /// When it was delivered, in ms since the epoch.
    pub delivered_at_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

impl StreamValue {
    /// The fields and values of the entry at `place`, counted from 0.
    pub fn fields(&self, place: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        let start = |place: usize| self.entries.get(place).map(|(_, start)| *start);
        let end = start(place + 1).unwrap_or(self.texts.len());
        let begin = start(place).unwrap_or(end);
        (begin..end).map(|text| self.texts.get(text).unwrap_or_default())
    }
}

/// Stands for an unknown number of entries.
const UNKNOWN: u64 = u64::MAX;

/// Flags of an entry: it was deleted; it has the same fields as its listpack's master entry.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// The formats of a stream: those of Redis 5, 7.0 and 7.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Form {
    First,
    Second,
    Third,
}

/// Decodes a stream. It takes at most a few times `bytes_max` in memory.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    form: Form,
    bytes_max: usize,
) -> Result<StreamValue, PayloadError> {
    let mut stream = StreamValue::default();
    for _ in 0..reader.count()? {
        let master = reader.text()?;
        let master = id_of(master.as_ref().try_into().map_err(|_| PayloadError::Format)?);
        let pack = reader.text()?;
        decode_node(&mut stream, master, &pack, bytes_max)?;
    }
    let len = reader.number()?;
    stream.last_id = id(reader)?;
    stream.first_id = stream.entries.first().map(|(id, _)| *id).unwrap_or_default();
    stream.added = len;
    if form >= Form::Second {
        // The id of the first entry is known.
        id(reader)?;
        stream.max_deleted_id = id(reader)?;
        stream.added = reader.number()?;
    }
    let last = stream.entries.last().map(|(id, _)| *id).unwrap_or_default();
    if len != stream.entries.len() as u64 || last > stream.last_id || stream.added < len {
        return Err(PayloadError::Format);
    }
    for _ in 0..reader.count()? {
        let group = decode_group(reader, form)?;
        if stream.groups.iter().any(|other| other.name == group.name) {
            return Err(PayloadError::Format);
        }
        stream.groups.push(group);
    }
    Ok(stream)
}

fn id(reader: &mut Reader<'_>) -> Result<EntryId, PayloadError> {
    Ok((reader.number()?, reader.number()?))
}

/// An id as it precedes a listpack, and as pending entries have it.
fn id_of(bytes: [u8; 16]) -> EntryId {
    let both = u128::from_be_bytes(bytes);
    ((both >> 64) as u64, both as u64)
}

/// The elements of a listpack, in order.
struct Elements<'p>(std::vec::IntoIter<Element<'p>>);

impl<'p> Elements<'p> {
    fn next(&mut self) -> Result<Element<'p>, PayloadError> {
        self.0.next().ok_or(PayloadError::Format)
    }

    fn integer(&mut self) -> Result<i64, PayloadError> {
        match self.next()? {
            Element::Integer(integer) => Ok(integer),
            Element::Text(_) => Err(PayloadError::Format),
        }
    }

    /// A number of elements that follow.
    fn count(&mut self) -> Result<usize, PayloadError> {
        let count = usize::try_from(self.integer()?).ok();
        count.filter(|&count| count <= self.0.len()).ok_or(PayloadError::Format)
    }
}

/// Decodes the entries of a listpack: first the number of entries, the number of deleted ones and
/// the master entry's fields; then each entry, as a difference from the master entry.
fn decode_node(
    stream: &mut StreamValue,
    master: EntryId,
    pack: &[u8],
    bytes_max: usize,
) -> Result<(), PayloadError> {
    let mut elements = Vec::new();
    packed::listpack(pack, &mut |element| {
        elements.push(element);
        if elements.len().saturating_mul(size_of::<Element<'_>>()) > bytes_max {
            return Err(PayloadError::TooLarge);
        }
        Ok(())
    })?;
    let mut elements = Elements(elements.into_iter());
    let (valid, deleted) = (elements.integer()?, elements.integer()?);
    let mut fields = Vec::new();
    for _ in 0..elements.count()? {
        fields.push(elements.next()?);
    }
    if elements.integer()? != 0 {
        return Err(PayloadError::Format);
    }
    let (mut found_valid, mut found_deleted) = (0, 0);
    while elements.0.len() > 0 {
        let flags = elements.integer()?;
        let ms = master.0.wrapping_add_signed(elements.integer()?);
        let seq = master.1.wrapping_add_signed(elements.integer()?);
        let is_same = flags & SAME_FIELDS != 0;
        let count = if is_same { fields.len() } else { elements.count()? };
        let is_deleted = flags & DELETED != 0;
        if !is_deleted {
            add_id(stream, (ms, seq), bytes_max)?;
        }
        for place in 0..count {
            let field = match fields.get(place).filter(|_| is_same) {
                Some(&field) => field,
                None => elements.next()?,
            };
            let value = elements.next()?;
            if !is_deleted {
                packed::push(&mut stream.texts, field, bytes_max)?;
                packed::push(&mut stream.texts, value, bytes_max)?;
            }
        }
        // The number of the entry's elements before this one, for reading backwards.
        let expected = if is_same { count + 3 } else { 2 * count + 4 };
        if elements.integer()? != expected as i64 {
            return Err(PayloadError::Format);
        }
        *(if is_deleted { &mut found_deleted } else { &mut found_valid }) += 1;
    }
    if (valid, deleted) == (found_valid, found_deleted) {
        Ok(())
    } else {
        Err(PayloadError::Format)
    }
}

/// Adds an entry without fields, whose id must be larger than all previous ones.
fn add_id(stream: &mut StreamValue, id: EntryId, bytes_max: usize) -> Result<(), PayloadError> {
    let last = stream.entries.last().map(|(id, _)| *id).unwrap_or_default();
    if id <= last {
        return Err(PayloadError::Format);
    }
    if (stream.entries.len() + 1).saturating_mul(size_of::<(EntryId, usize)>()) > bytes_max {
        return Err(PayloadError::TooLarge);
    }
    stream.entries.push((id, stream.texts.len()));
    Ok(())
}

fn decode_group(reader: &mut Reader<'_>, form: Form) -> Result<GroupValue, PayloadError> {
    let name = reader.text()?.into_owned();
    let last_id = id(reader)?;
    let entries_read = if form >= Form::Second { reader.number()? } else { UNKNOWN };
    let entries_read = Some(entries_read).filter(|read| *read != UNKNOWN);
    let mut group = GroupValue { name, last_id, entries_read, ..GroupValue::default() };
    /// Not assigned to a consumer yet.
    const NOBODY: usize = usize::MAX;
    let mut places = HashMap::new();
    for _ in 0..reader.count()? {
        let id = id_of(reader.array()?);
        let delivered_at_ms = u64::from_le_bytes(reader.array()?);
        let deliveries = reader.number()?;
        let pending = PendingValue { id, consumer: NOBODY, delivered_at_ms, deliveries };
        if places.insert(id, group.pending.len()).is_some() {
            return Err(PayloadError::Format);
        }
        group.pending.push(pending);
    }
    for consumer in 0..reader.count()? {
        let name = reader.text()?.into_owned();
        let seen_at_ms = u64::from_le_bytes(reader.array()?);
        if form >= Form::Third {
            // When it last received an entry.
            let _active_at_ms: [u8; 8] = reader.array()?;
        }
        for _ in 0..reader.count()? {
            let place = places.get(&id_of(reader.array()?));
            let pending = place.and_then(|&place| group.pending.get_mut(place));
            match pending.filter(|pending| pending.consumer == NOBODY) {
                Some(pending) => pending.consumer = consumer,
                None => return Err(PayloadError::Format),
            }
        }
        group.consumers.push((name, seen_at_ms));
    }
    let mut names: Vec<_> = group.consumers.iter().map(|(name, _)| name).collect();
    names.sort();
    let is_twice = names.windows(2).any(|pair| pair[0] == pair[1]);
    let has_orphans = group.pending.iter().any(|pending| pending.consumer == NOBODY);
    if is_twice || has_orphans {
        return Err(PayloadError::Format);
    }
    group.pending.sort_by_key(|pending| pending.id);
    Ok(group)
}

/// Maximum number of entries of a listpack, and of bytes before the next entry begins a new one.
const NODE_ENTRIES_MAX: i64 = 100;
const NODE_BYTES_MAX: usize = 4096;

/// The entries of a stream, packed for an [`Encoder`].
#[derive(Debug, Default)]
pub struct PackedEntries {
    /// Listpacks, each after the id of its first entry.
    nodes: Vec<u8>,
    node_count: u64,
    len: u64,
    /// The id of the first entry of the last listpack.
    master: EntryId,
    entries: i64,
    pack: Packer,
}

impl PackedEntries {
    /// Adds an entry after all others: its fields, each before its value.
    pub fn add<'f>(&mut self, id: EntryId, fields: impl ExactSizeIterator<Item = &'f [u8]>) {
        if self.entries >= NODE_ENTRIES_MAX || self.pack.len() >= NODE_BYTES_MAX {
            self.end_node();
        }
        if self.entries == 0 {
            self.master = id;
        }
        let count = fields.len() as i64 / 2;
        self.pack.integer(0);
        self.pack.integer(id.0.wrapping_sub(self.master.0) as i64);
        self.pack.integer(id.1.wrapping_sub(self.master.1) as i64);
        self.pack.integer(count);
        fields.for_each(|text| self.pack.text(text));
        self.pack.integer(2 * count + 4);
        self.entries += 1;
        self.len += 1;
    }

    /// Their size in memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.len() + self.pack.len()
    }

    fn end_node(&mut self) {
        if self.entries == 0 {
            return;
        }
        // The number of entries, none deleted, and no shared fields.
        let mut head = Packer::default();
        [self.entries, 0, 0, 0].into_iter().for_each(|number| head.integer(number));
        let pack = head.end_with(&std::mem::take(&mut self.pack));
        let mut encoder = Encoder::new(&mut self.nodes);
        encoder.text(&bytes_of(self.master));
        encoder.text(&pack);
        self.node_count += 1;
        self.entries = 0;
    }
}

fn bytes_of((ms, seq): EntryId) -> [u8; 16] {
    (u128::from(ms) << 64 | u128::from(seq)).to_be_bytes()
}

impl Encoder<'_> {
    /// Writes a stream: all of `stream` except its entries, and `entries` in their place.
    pub fn stream(&mut self, mut entries: PackedEntries, stream: &StreamValue) {
        entries.end_node();
        self.begin_stream(entries.node_count);
        self.raw(&entries.nodes);
        self.length(entries.len);
        for id in [stream.last_id, stream.first_id, stream.max_deleted_id] {
            self.id(id);
        }
        self.length(stream.added);
        self.length(stream.groups.len() as u64);
        stream.groups.iter().for_each(|group| self.group(group));
    }

    fn id(&mut self, (ms, seq): EntryId) {
        self.length(ms);
        self.length(seq);
    }

    fn group(&mut self, group: &GroupValue) {
        self.text(&group.name);
        self.id(group.last_id);
        self.length(group.entries_read.unwrap_or(UNKNOWN));
        self.length(group.pending.len() as u64);
        let mut owned = vec![Vec::new(); group.consumers.len()];
        for pending in &group.pending {
            self.raw(&bytes_of(pending.id));
            self.raw(&pending.delivered_at_ms.to_le_bytes());
            self.length(pending.deliveries);
            if let Some(owned) = owned.get_mut(pending.consumer) {
                owned.push(pending.id);
            }
        }
        self.length(group.consumers.len() as u64);
        for ((name, seen_at_ms), owned) in group.consumers.iter().zip(owned) {
            self.text(name);
            self.raw(&seen_at_ms.to_le_bytes());
            self.length(owned.len() as u64);
            owned.into_iter().for_each(|id| self.raw(&bytes_of(id)));
        }
    }
}
