//! The results of a run of the suite, for people: [`markdown`] for a terminal and for documents,
//! [`html`] as one page with charts, and [`Comparison`] of two runs.

mod cells;
mod chart;
mod compare;
mod html;
mod markdown;

pub use chart::{Chart, ChartError, chart, picture};
pub use compare::{Change, Comparison};
pub use html::html;
pub use markdown::{item_table, markdown};

#[cfg(test)]
mod tests;
