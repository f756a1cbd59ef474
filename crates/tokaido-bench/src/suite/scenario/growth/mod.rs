//! What becomes slower or larger as the number of records grows. [`measure`] fills stores step by
//! step, and measures at each step; `subject` is a growing store.

mod measure;
mod subject;

pub(super) use measure::measure;
