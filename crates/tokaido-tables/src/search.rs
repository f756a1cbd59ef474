//! Searches: what a query finds in a table.

use std::{cmp::Ordering, collections::BinaryHeap, ops::ControlFlow};

use tokaido_store::{DatabaseId, Direction, ReadTransaction};

use crate::{
    Bounds, Index, Order, Query, Row, TableError,
    condition::lossy,
    declaration::Declaration,
    entries,
    plan::{Plan, Way},
    range::Range,
    walk::{self, EntryWalk, Shown},
};

/// What a search is to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The keys of the rows.
    Keys,
    /// Only how many rows there are.
    Count,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The keys of the rows, unless only their number was wanted.
    pub keys: Vec<Vec<u8>>,
    /// How many rows were found, within the limit of the query.
    pub count: usize,
    /// How the search was executed, in lines of plain text.
    pub hint: String,
}

/// Searches a table. A database that is not declared as one works, too, but has no indexes.
///
/// # Errors
/// [`TableError::TooLarge`] and [`TableError::Stopped`]; otherwise only if the engine fails.
pub fn search(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    query: &Query,
    wanted: Wanted,
    bounds: Bounds,
) -> Result<Found, TableError> {
    let declaration = Declaration::read(tx, database)?.unwrap_or_default();
    let rows = tx.statistics(database)?.records;
    let mut query = query.clone();
    if wanted == Wanted::Count {
        query.order = None;
    }
    let plan = Plan::choose(&query, &declaration, rows);
    let mut search =
        Search { database, query: &query, found: Collector::new(&query, &plan, wanted, bounds) };
    let mut hint = describe(&plan);
    if search.run(tx, &plan)? == Outcome::Unordered {
        // The index still leads to the rows, but does not give their order.
        let plan = Plan { is_ordered: false, ..Plan::choose(&query, &declaration, rows) };
        let way = match plan.way {
            Way::Order(_) => Way::Rows(vec![Range::ALL]),
            way => way,
        };
        let plan = Plan { way, ..plan };
        search.found = Collector::new(&query, &plan, wanted, bounds);
        search.run(tx, &plan)?;
        hint.push_str("the index has only the beginnings of long values: begun again\n");
    }
    let mut found = search.found.finish(&query);
    hint.push_str(&format!("rows found: {}\n", found.count));
    found.hint = hint;
    Ok(found)
}

fn describe(plan: &Plan<'_>) -> String {
    let way = match &plan.way {
        Way::Rows(ranges) if *ranges == [Range::ALL] => "scanning the whole table".to_owned(),
        Way::Rows(_) => "using the keys of the table".to_owned(),
        Way::Index { index, .. } => format!("using an index: \"{}\"", lossy(&index.column)),
        Way::Order(index) => format!("using an index: \"{}\" (order)", lossy(&index.column)),
    };
    let order = if plan.is_ordered { "" } else { "sorting what was found\n" };
    format!("{way}\n{order}")
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The index does not have the rows in order.
    Unordered,
}

struct Search<'q> {
    database: DatabaseId,
    query: &'q Query,
    found: Collector<'q>,
}

impl Search<'_> {
    fn run(
        &mut self,
        tx: &mut dyn ReadTransaction,
        plan: &Plan<'_>,
    ) -> Result<Outcome, TableError> {
        if self.query.max == 0 {
            return Ok(Outcome::Done);
        }
        let database = self.database;
        match &plan.way {
            Way::Index { index, ranges, may_repeat } => {
                Ok(self.walk(tx, plan, index, ranges, *may_repeat)?.0)
            }
            Way::Rows(ranges) => {
                let mut visit = |key: &[u8], row: Row<'_>| self.look_at(key, row);
                let _ = walk::rows(tx, database, ranges, plan.direction, &mut visit)?;
                Ok(Outcome::Done)
            }
            Way::Order(index) => {
                let all = [Range::beginning(entries::prefix(index))];
                let (outcome, flow) = self.walk(tx, plan, index, &all, false)?;
                if outcome == Outcome::Done && flow.is_continue() {
                    let bounds = self.found.bounds;
                    let mut visit = |key: &[u8], row: Row<'_>| self.look_at(key, row);
                    let _ = rows_without(
                        tx,
                        database,
                        &index.column,
                        plan.direction,
                        bounds,
                        &mut visit,
                    )?;
                }
                Ok(outcome)
            }
        }
    }

    /// Looks at the rows behind the entries of an index.
    fn walk(
        &mut self,
        tx: &mut dyn ReadTransaction,
        plan: &Plan<'_>,
        index: &Index,
        ranges: &[Range],
        may_repeat: bool,
    ) -> Result<(Outcome, ControlFlow<()>), TableError> {
        let (database, direction) = (self.database, plan.direction);
        // Rows that are sorted later need no order.
        let needs_order = self.query.order.is_some() && plan.is_ordered;
        let mut outcome = Outcome::Done;
        let walk = EntryWalk { database, index, ranges, direction, may_repeat };
        let flow = walk.run(tx, &mut |key, row, is_cut| {
            if is_cut && needs_order {
                outcome = Outcome::Unordered;
                return Ok(ControlFlow::Break(()));
            }
            self.look_at(key, row)
        })?;
        Ok((outcome, flow))
    }

    fn look_at(&mut self, key: &[u8], row: Row<'_>) -> Shown {
        self.found.bounds.check_stop()?;
        if self.query.holds(key, row) {
            self.found.add(key, row)
        } else {
            Ok(ControlFlow::Continue(()))
        }
    }
}

/// Visits the rows that lack a column.
fn rows_without(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    column: &[u8],
    direction: Direction,
    bounds: Bounds,
    visit: &mut dyn FnMut(&[u8], Row<'_>) -> Shown,
) -> Shown {
    if column.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    walk::rows(tx, database, &[Range::ALL], direction, &mut |key, row| match row.column(column) {
        Some(_) => bounds.check_stop().map(ControlFlow::Continue),
        None => visit(key, row),
    })
}

/// The rows found so far: all as they come, or the first ones in order if they must be sorted.
struct Collector<'q> {
    /// Unless the rows come in order already.
    order: Option<&'q Order>,
    wanted: Wanted,
    bounds: Bounds,
    rows_max: usize,
    bytes: usize,
    count: usize,
    keys: Vec<Vec<u8>>,
    /// The last in the order is on top.
    sorted: BinaryHeap<Ranked>,
}

impl<'q> Collector<'q> {
    fn new(query: &'q Query, plan: &Plan<'_>, wanted: Wanted, bounds: Bounds) -> Self {
        Self {
            order: query.order.as_ref().filter(|_| !plan.is_ordered),
            wanted,
            bounds,
            rows_max: query.wanted(),
            bytes: 0,
            count: 0,
            keys: Vec::new(),
            sorted: BinaryHeap::new(),
        }
    }

    fn add(&mut self, key: &[u8], row: Row<'_>) -> Shown {
        self.count += 1;
        if self.wanted == Wanted::Keys {
            match self.order {
                Some(order) => self.rank(order, key, row),
                None => {
                    self.bytes += key.len();
                    self.keys.push(key.to_vec());
                }
            }
            self.bounds.check_bytes(self.bytes)?;
        }
        let is_enough = self.order.is_none() && self.count >= self.rows_max;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn rank(&mut self, order: &Order, key: &[u8], row: Row<'_>) {
        let ranked = Ranked::new(order, key.to_vec(), row);
        self.bytes += ranked.bytes();
        self.sorted.push(ranked);
        if self.sorted.len() > self.rows_max {
            self.bytes -= self.sorted.pop().map_or(0, |last| last.bytes());
        }
    }

    fn finish(self, query: &Query) -> Found {
        let count = self.count.min(self.rows_max).saturating_sub(query.skip);
        let keys = match self.order {
            Some(_) => self.sorted.into_sorted_vec().into_iter().map(|ranked| ranked.key).collect(),
            None => self.keys,
        };
        let keys = keys.into_iter().skip(query.skip).collect();
        Found { keys, count, hint: String::new() }
    }
}

/// A row with its sort key.
#[derive(PartialEq, Eq)]
pub(crate) struct Ranked {
    rank: Option<Vec<u8>>,
    pub(crate) key: Vec<u8>,
    is_descending: bool,
}

impl Ranked {
    pub(crate) fn new(order: &Order, key: Vec<u8>, row: Row<'_>) -> Self {
        Self { rank: order.rank(&key, row), key, is_descending: order.is_descending() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rank.as_ref().map_or(0, Vec::len) + self.key.len()
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let values = (&self.rank, &self.key).cmp(&(&other.rank, &other.key));
        let values = if self.is_descending { values.reverse() } else { values };
        // Rows without the column come last in either direction.
        self.rank.is_none().cmp(&other.rank.is_none()).then(values)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
