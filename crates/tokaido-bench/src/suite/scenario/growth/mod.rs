//! What becomes slower or larger with the number of records: [`measure`] fills stores step by step, and measures at each
//! step; `subject` is a store that grows.

mod measure;
mod subject;

pub(super) use measure::measure;
