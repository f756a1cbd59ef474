//! How many records a file has, how long they are, and how well its hash tables spread them.

use std::fmt;

use super::{
    error::Damaged,
    format::{self, TABLES},
    view::View,
};

/// The number of distance counters; the last one counts all larger distances.
const DISTANCES: usize = 11;

/// The minimum, average and maximum of some lengths; all 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// The shortest.
    pub min: u64,
    /// The average, rounded.
    pub average: u64,
    /// The longest.
    pub max: u64,
}

/// What a cdb file holds. Its [`Display`](fmt::Display) form is the output of `cdb -s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Records, including duplicates and those that were filled with zeros.
    pub records: u64,
    /// Bytes of the keys.
    pub keys: Lengths,
    /// Bytes of the values.
    pub values: Lengths,
    /// Hash tables that have slots.
    pub tables: u64,
    /// Slots of all hash tables.
    pub slots: u64,
    /// Slots of the tables that have any.
    pub table_slots: Lengths,
    /// How many records are 0 to 9, and 10 or more, slots away from where the search for their key
    /// begins.
    pub distances: [u64; DISTANCES],
}

impl Statistics {
    pub(super) fn of(view: &View<'_>) -> Result<Self, Damaged> {
        let (mut keys, mut values, mut table_slots) = (Sum::new(), Sum::new(), Sum::new());
        for record in view.iter() {
            let record = record?;
            keys.add(record.key.len() as u64);
            values.add(record.value.len() as u64);
        }
        let mut distances = [0; DISTANCES];
        for number in 0..TABLES {
            let slots = view.table(number)?;
            if slots.is_empty() {
                continue;
            }
            table_slots.add(slots.len() as u64);
            for (slot, &pair) in slots.iter().enumerate() {
                let (hash, position) = format::decode_pair(pair);
                if position != 0 {
                    let first = format::first_slot(hash, slots.len());
                    let distance = (slot + slots.len() - first) % slots.len();
                    distances[distance.min(DISTANCES - 1)] += 1;
                }
            }
        }
        Ok(Self {
            records: keys.count,
            keys: keys.lengths(),
            values: values.lengths(),
            tables: table_slots.count,
            slots: table_slots.total,
            table_slots: table_slots.lengths(),
            distances,
        })
    }

    /// Records that are not where the search for their key begins.
    pub fn collisions(&self) -> u64 {
        self.records.saturating_sub(self.distances[0])
    }
}

struct Sum {
    count: u64,
    total: u64,
    min: u64,
    max: u64,
}

impl Sum {
    fn new() -> Self {
        Self { count: 0, total: 0, min: u64::MAX, max: 0 }
    }

    fn add(&mut self, len: u64) {
        self.count += 1;
        self.total += len;
        self.min = self.min.min(len);
        self.max = self.max.max(len);
    }

    fn lengths(&self) -> Lengths {
        if self.count == 0 {
            return Lengths::default();
        }
        let average = (self.total + self.count / 2) / self.count;
        Lengths { min: self.min, average, max: self.max }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.min, self.average, self.max)
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "number of records: {}", self.records)?;
        writeln!(f, "key min/avg/max length: {}", self.keys)?;
        writeln!(f, "val min/avg/max length: {}", self.values)?;
        let (tables, slots, collisions) = (self.tables, self.slots, self.collisions());
        writeln!(f, "hash tables/entries/collisions: {tables}/{slots}/{collisions}")?;
        writeln!(f, "hash table min/avg/max length: {}", self.table_slots)?;
        writeln!(f, "hash table distances:")?;
        for (distance, &count) in self.distances.iter().enumerate() {
            let percent = (count * 100).checked_div(self.records).unwrap_or(0);
            let (mark, distance) = match distance {
                10.. => ('>', 9),
                _ => ('d', distance),
            };
            writeln!(f, " {mark}{distance}: {count:6} {percent:2}%")?;
        }
        Ok(())
    }
}
