//! What the crash tests write, and what must be found afterwards.
//!
//! Transactions are numbered, and a seed determines what each of them does: it moves an amount between two
//! accounts, writes its own number, changes some ballast, adds an entry to a second database, which is cleared
//! or dropped now and then, and makes a database that the next transaction drops. So the seed and the number
//! of the last transaction determine everything that a store must hold, byte by byte.

use std::collections::BTreeSet;

use tokaido_store::{
    DatabaseId, NewRecord, ScanRange, Scanner, Store, WriteError, WriteTransaction, counter,
    tree::Reader,
};

use crate::random::Random;

const ACCOUNTS: usize = 8;
const BALLASTS: usize = 5;

/// The contents of the store after a transaction.
#[derive(Clone, Default)]
struct State {
    balances: [i64; ACCOUNTS],
    /// The transaction that wrote each, and its length; with length zero, it does not exist.
    ballast: [(u64, usize); BALLASTS],
    /// The transaction that last cleared the second database.
    cleared: u64,
}

enum Write {
    Main(String, Vec<u8>),
    Delete(String),
    ClearOther,
    DropOther,
    Other(Vec<u8>),
    /// Drops the brief database of the previous transaction, and makes one for this one.
    Brief(u64),
}

pub(crate) struct Ledger {
    seed: u64,
    /// The first is the state before the first transaction.
    states: Vec<State>,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, states: vec![State::default()] }
    }

    /// The number of its last transaction.
    pub(crate) fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// Forgets everything after transaction `last`.
    pub(crate) fn truncate(&mut self, last: u64) {
        self.states.truncate(last as usize + 1);
    }

    /// The ledger up to transaction `last`.
    pub(crate) fn up_to(seed: u64, last: u64) -> Self {
        let mut ledger = Self::new(seed);
        while ledger.last() < last {
            ledger.plan();
        }
        ledger
    }

    /// Decides on the next transaction.
    fn plan(&mut self) -> Vec<Write> {
        let mut state = self.states.last().cloned().unwrap_or_default();
        let number = self.last() + 1;
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let amount = random.below(100) as i64;
        state.balances[from] -= amount;
        state.balances[to] += amount;
        let mut writes: Vec<Write> = [from, to]
            .map(|account| {
                let balance = state.balances[account].to_string().into_bytes();
                Write::Main(format!("account{account}"), balance)
            })
            .into();
        writes.push(Write::Main("number".to_owned(), number.to_string().into_bytes()));
        let at = random.below(BALLASTS);
        // Now and then it takes overflow pages in the base, or is deleted.
        let len = [0, 20_000, random.below(3000) + 1][random.below(8).min(2)];
        state.ballast[at] = (number, len);
        writes.push(match len {
            0 => Write::Delete(format!("ballast{at}")),
            len => Write::Main(format!("ballast{at}"), ballast(number, len)),
        });
        if random.below(9) == 0 {
            state.cleared = number;
            writes.push(match number % 2 {
                0 => Write::ClearOther,
                _ => Write::DropOther,
            });
        }
        writes.push(Write::Other(entry(number)));
        writes.push(Write::Brief(number));
        self.states.push(state);
        writes
    }

    /// Writes the next transaction.
    pub(crate) fn write(
        &mut self,
        tx: &mut dyn WriteTransaction,
        databases: Databases,
    ) -> Result<(), WriteError> {
        let Databases { main, other } = databases;
        for write in self.plan() {
            match write {
                Write::Main(key, value) => {
                    tx.put(main, key.as_bytes(), NewRecord::of(&value))?;
                }
                Write::Delete(key) => {
                    tx.delete(main, key.as_bytes())?;
                }
                Write::ClearOther => tx.clear(other)?,
                Write::DropOther => drop(tx.drop_database(other)?),
                Write::Brief(number) => {
                    let before = tx.open_database(&brief(number - 1), usize::MAX)?;
                    tx.drop_database(before)?;
                    let database = tx.open_database(&brief(number), usize::MAX)?;
                    tx.put(database, b"number", NewRecord::of(number.to_string().as_bytes()))?;
                }
                Write::Other(key) => tx.put(other, &key, NewRecord::of(b"here"))?,
            }
        }
        Ok(())
    }

    /// The number of the last transaction that a store holds. It must hold all of it and of those
    /// before it, and nothing else.
    pub(crate) fn check(&self, store: &dyn Store) -> u64 {
        let Databases { main, other } = Databases::of(store);
        let mut snapshot = store.snapshot().unwrap();
        let mut number = |key: &str| {
            let record = snapshot.get(main, key.as_bytes()).unwrap();
            record.map_or(0, |record| counter::parse(record.value).unwrap())
        };
        let last = number("number") as u64;
        let balances: Vec<i64> = (0..ACCOUNTS).map(|a| number(&format!("account{a}"))).collect();
        // Only the killed process knew of its last writes.
        let longer;
        let ledger = if last > self.last() {
            longer = Self::up_to(self.seed, last);
            &longer
        } else {
            self
        };
        let state = &ledger.states[last as usize];
        assert_eq!(balances, state.balances, "transaction {last} is there by half");
        for (at, (number, len)) in state.ballast.iter().enumerate() {
            let found = snapshot.get(main, format!("ballast{at}").as_bytes()).unwrap();
            let expected = (*len > 0).then(|| ballast(*number, *len));
            assert_eq!(
                found.map(|record| record.value.to_vec()),
                expected,
                "of transaction {last}"
            );
        }
        let mut scan = Scanner::new(other, ScanRange::all(), usize::MAX);
        let mut found = BTreeSet::new();
        while let Some(entry) = scan.next(&mut *snapshot).unwrap() {
            found.insert(entry.key.to_vec());
        }
        let expected = (state.cleared.max(1)..=last).map(entry).collect();
        assert_eq!(found, expected, "entries after transaction {last}");
        let mut briefs = store.databases();
        briefs.retain(|(_, name)| name.starts_with("brief"));
        let expected: Vec<_> = (last > 0).then(|| brief(last)).into_iter().collect();
        assert_eq!(briefs.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>(), expected);
        for (database, _) in briefs {
            let found = snapshot.get(database, b"number").unwrap().map(|r| r.value.to_vec());
            assert_eq!(found, Some(last.to_string().into_bytes()), "of transaction {last}");
        }
        let records = snapshot.statistics(other).unwrap().records;
        assert_eq!(records, found.len() as u64, "the count after transaction {last}");
        last
    }

    /// Like [`check`](Self::check), for a store whose files are read.
    pub(crate) fn check_reader(&self, reader: &Reader) -> u64 {
        let find = |database: &str, key: &[u8]| {
            let mut database = reader.database(database).unwrap()?;
            database.get(key).unwrap().map(|record| record.value.to_vec())
        };
        let number = |key: &str| {
            find("main", key.as_bytes()).map_or(0, |value| counter::parse(&value).unwrap())
        };
        let last = number("number") as u64;
        let ledger = Self::up_to(self.seed, last);
        let state = &ledger.states[last as usize];
        let balances: Vec<i64> = (0..ACCOUNTS).map(|a| number(&format!("account{a}"))).collect();
        assert_eq!(balances, state.balances, "transaction {last} is there by half");
        for (at, (number, len)) in state.ballast.iter().enumerate() {
            let expected = (*len > 0).then(|| ballast(*number, *len));
            let found = find("main", format!("ballast{at}").as_bytes());
            assert_eq!(found, expected, "of transaction {last}");
        }
        for number in 1..=last {
            let is_there = find("other", &entry(number)).is_some();
            assert_eq!(is_there, number >= state.cleared, "entry {number} of {last}");
        }
        last
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Databases {
    main: DatabaseId,
    other: DatabaseId,
}

impl Databases {
    pub(crate) fn of(store: &dyn Store) -> Self {
        Self { main: store.database("main").unwrap(), other: store.database("other").unwrap() }
    }
}

fn ballast(number: u64, len: usize) -> Vec<u8> {
    number.to_string().into_bytes().into_iter().cycle().take(len).collect()
}

/// The name of a database that one transaction makes and the next one drops. Names repeat.
fn brief(number: u64) -> String {
    format!("brief{}", number % 7)
}

/// Every third key is so long that it shares a bucket with others.
fn entry(number: u64) -> Vec<u8> {
    let head = if number.is_multiple_of(3) { "k".repeat(600) } else { String::new() };
    format!("{head}{number:06}").into_bytes()
}

/// Runs groups of one to five transactions, and reports each group once it is durable.
pub(crate) fn run(
    store: &dyn Store,
    ledger: &mut Ledger,
    random: &mut Random,
    groups: usize,
    mut acknowledge: impl FnMut(u64),
) {
    let databases = Databases::of(store);
    let mut writer = store.writer().unwrap();
    for _ in 0..groups {
        for _ in 0..=random.below(4) {
            ledger.write(writer.begin().unwrap(), databases).unwrap();
            writer.commit().unwrap();
        }
        writer.flush().unwrap();
        acknowledge(ledger.last());
    }
}
