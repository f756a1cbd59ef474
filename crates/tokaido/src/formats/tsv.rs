//! TAB-separated columns. No quotes, no escapes: every other byte stands for itself.

use super::columns::Columns;

/// Splits one line.
pub(crate) fn split(line: &[u8], columns: &mut Columns) {
    columns.clear();
    for column in line.split(|&b| b == b'\t') {
        columns.extend(column);
        columns.end_column();
    }
}
