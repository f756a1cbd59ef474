//! LCS: the longest common subsequence of two values.

use std::ops::Range;

use tokaido_store::{Kind, ReadTransaction};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(super) const COMMANDS: &[Command] = rows! {
"lcs" -3 Read(lcs), TWO_KEYS [] String "7.0.0"
    "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]"
    "Returns the longest common subsequence of two values, or its length, or its positions in both.";
};

/// Maximum product of both lengths, each plus one: the number of four-byte cells to fill, which take
/// as much memory as the longest value.
const CELLS_MAX: usize = 1 << 24;

/// The options of LCS.
#[derive(Default)]
struct Options {
    gives_len: bool,
    gives_places: bool,
    gives_match_lens: bool,
    match_len_min: usize,
}

impl Options {
    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut at = 3;
        while at < call.len() {
            if call.is_word(at, "IDX") {
                options.gives_places = true;
            } else if call.is_word(at, "LEN") {
                options.gives_len = true;
            } else if call.is_word(at, "WITHMATCHLEN") {
                options.gives_match_lens = true;
            } else if call.is_word(at, "MINMATCHLEN") && at + 1 < call.len() {
                at += 1;
                options.match_len_min = call.integer(at)?.max(0) as usize;
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        if options.gives_len && options.gives_places {
            return Err(Failure::other(
                "If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

fn lcs(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let a = string(call, tx, 1)?;
    let b = string(call, tx, 2)?;
    let options = Options::read(call)?;
    let cells = (a.len() + 1) * (b.len() + 1);
    if cells > CELLS_MAX {
        return Err(Failure::other(format!(
            "the values are too long for LCS: the product of their lengths may be {CELLS_MAX} at most"
        )));
    }
    /// Filling this many cells takes about as long as visiting an element of a collection.
    const CELLS_PER_ELEMENT: usize = 64;
    call.check_visit((cells / CELLS_PER_ELEMENT) as u64)?;
    let table = Table::of(&a, &b);
    if options.gives_places {
        tell_places(call, &table, &options);
    } else if options.gives_len {
        call.reply.integer(table.len() as i64);
    } else {
        let mut text = Vec::with_capacity(table.len());
        for (in_a, _) in table.matches().iter().rev() {
            text.extend_from_slice(&a[in_a.clone()]);
        }
        call.reply.bulk(&text);
    }
    Ok(())
}

fn string(call: &Call<'_>, tx: &mut dyn ReadTransaction, index: usize) -> Result<Vec<u8>, Failure> {
    match tx.get(call.database, call.arg(index))? {
        Some(record) if record.kind != Kind::Bytes => {
            Err(Failure::other("The specified keys must contain string values"))
        }
        found => Ok(found.map_or_else(Vec::new, |record| record.value.to_vec())),
    }
}

fn tell_places(call: &mut Call<'_>, table: &Table<'_>, options: &Options) {
    let mut matches = table.matches();
    matches.retain(|(in_a, _)| in_a.len() >= options.match_len_min);
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(matches.len());
    for (in_a, in_b) in &matches {
        call.reply.array(2 + usize::from(options.gives_match_lens));
        for range in [in_a, in_b] {
            call.reply.array(2);
            call.reply.integer(range.start as i64);
            call.reply.integer(range.end as i64 - 1);
        }
        if options.gives_match_lens {
            call.reply.integer(in_a.len() as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.integer(table.len() as i64);
}

/// The length of the longest common subsequence for every pair of prefixes of both values.
struct Table<'v> {
    a: &'v [u8],
    b: &'v [u8],
    cells: Vec<u32>,
}

impl<'v> Table<'v> {
    fn of(a: &'v [u8], b: &'v [u8]) -> Self {
        let width = b.len() + 1;
        let mut cells = vec![0; (a.len() + 1) * width];
        for (i, x) in a.iter().enumerate() {
            let (above, row) = cells[i * width..].split_at_mut(width);
            for (j, y) in b.iter().enumerate() {
                row[j + 1] = if x == y { above[j] + 1 } else { above[j + 1].max(row[j]) };
            }
        }
        Self { a, b, cells }
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * (self.b.len() + 1) + j]
    }

    fn len(&self) -> usize {
        self.at(self.a.len(), self.b.len()) as usize
    }

    /// The ranges in both values that make up the longest common subsequence, last one first.
    fn matches(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        let mut matches = Vec::new();
        while i > 0 && j > 0 {
            let (a_end, b_end) = (i, j);
            while i > 0 && j > 0 && self.a[i - 1] == self.b[j - 1] {
                i -= 1;
                j -= 1;
            }
            if i < a_end {
                matches.push((i..a_end, j..b_end));
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        matches
    }
}
