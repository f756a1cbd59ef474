//! Queries: conditions that all have to hold, an order, and how many rows are wanted.

use crate::{
    Condition, QueryError, Row,
    condition::{integer_of, lossy},
    limits::CONDITIONS_MAX,
    number::Number,
};

/// How a column orders rows. The numbers are those that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderBy {
    /// As texts, the least first.
    TextAscending = 0,
    /// As texts, the greatest first.
    TextDescending = 1,
    /// As numbers, the least first.
    NumberAscending = 2,
    /// As numbers, the greatest first.
    NumberDescending = 3,
}

/// Every order with its names, in the order of the numbers.
pub const ORDERS: [(OrderBy, &[&str]); 4] = [
    (OrderBy::TextAscending, &["STRASC", "STR", "ASC"]),
    (OrderBy::TextDescending, &["STRDESC", "DESC"]),
    (OrderBy::NumberAscending, &["NUMASC", "NUM"]),
    (OrderBy::NumberDescending, &["NUMDESC"]),
];

/// The order of results. Rows of equal rank are ordered by key, in the same direction; rows without
/// the column come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column; if empty, the key.
    pub column: Vec<u8>,
    /// How to order by it.
    pub by: OrderBy,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// All of them have to hold.
    pub conditions: Vec<Condition>,
    /// Without one, rows come as they are met.
    pub order: Option<Order>,
    /// Maximum number of rows.
    pub max: usize,
    /// How many rows are skipped before them.
    pub skip: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self { conditions: Vec::new(), order: None, max: usize::MAX, skip: 0 }
    }
}

impl Query {
    /// Adds a condition.
    ///
    /// # Errors
    /// [`QueryError::TooManyConditions`].
    pub fn add(&mut self, condition: Condition) -> Result<(), QueryError> {
        if self.conditions.len() == CONDITIONS_MAX {
            return Err(QueryError::TooManyConditions);
        }
        self.conditions.push(condition);
        Ok(())
    }

    /// How many rows have to be found, including those that are skipped.
    pub(crate) fn wanted(&self) -> usize {
        self.max.saturating_add(self.skip)
    }

    /// Whether a row satisfies all conditions.
    pub(crate) fn holds(&self, key: &[u8], row: Row<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(key, row))
    }
}

impl Order {
    /// The order by a column.
    ///
    /// # Errors
    /// [`QueryError::Order`] if no order has that name or number.
    pub fn new(column: &[u8], by: &[u8]) -> Result<Self, QueryError> {
        let number = integer_of(by);
        let found = ORDERS.iter().find(|(order, names)| match number {
            Some(number) => *order as i64 == number,
            None => names.iter().any(|name| by.eq_ignore_ascii_case(name.as_bytes())),
        });
        let by = found.ok_or_else(|| QueryError::Order { name: lossy(by) })?.0;
        Ok(Self { column: column.to_vec(), by })
    }

    pub(crate) fn is_descending(&self) -> bool {
        matches!(self.by, OrderBy::TextDescending | OrderBy::NumberDescending)
    }

    pub(crate) fn is_of_numbers(&self) -> bool {
        matches!(self.by, OrderBy::NumberAscending | OrderBy::NumberDescending)
    }

    /// Whether the keys of the table are in this order.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.column.is_empty() && !self.is_of_numbers()
    }

    /// The sort key of a row, as bytes in ascending order; `None` without the column.
    pub(crate) fn rank(&self, key: &[u8], row: Row<'_>) -> Option<Vec<u8>> {
        let value = if self.column.is_empty() { Some(key) } else { row.column(&self.column) };
        value.map(|value| match self.is_of_numbers() {
            true => Number::parse(value).into_bytes(),
            false => value.to_vec(),
        })
    }
}
