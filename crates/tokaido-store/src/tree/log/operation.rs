//! What a transaction has done, as recorded in the log.
//!
//! ```text
//! put      1 u8, tree u32, key length u16, record length u32, key, record
//! delete   2 u8, tree u32, key length u16, key
//! ```

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) struct Operation<'l> {
    pub tree: u32,
    pub key: &'l [u8],
    /// The stored record; `None` for a deletion.
    pub record: Option<&'l [u8]>,
}

const PUT: u8 = 1;
const DELETE: u8 = 2;

impl Operation<'_> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(if self.record.is_some() { PUT } else { DELETE });
        out.extend_from_slice(&self.tree.to_le_bytes());
        out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        if let Some(record) = self.record {
            out.extend_from_slice(&(record.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.record.unwrap_or_default());
    }
}

/// The operations of one transaction; `None` where the bytes are invalid.
pub(in crate::tree) fn operations(bytes: &[u8]) -> impl Iterator<Item = Option<Operation<'_>>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let operation = take(&mut rest);
        if operation.is_none() {
            rest = &[];
        }
        Some(operation)
    })
}

fn take<'l>(rest: &mut &'l [u8]) -> Option<Operation<'l>> {
    let (kind, tail) = rest.split_first()?;
    let (tree, tail) = tail.split_first_chunk::<4>()?;
    let (key_len, mut tail) = tail.split_first_chunk::<2>()?;
    let record_len = match *kind {
        PUT => {
            let (len, after) = tail.split_first_chunk::<4>()?;
            tail = after;
            Some(u32::from_le_bytes(*len) as usize)
        }
        DELETE => None,
        _ => return None,
    };
    let (key, tail) = tail.split_at_checked(u16::from_le_bytes(*key_len) as usize)?;
    let (record, tail) = tail.split_at_checked(record_len.unwrap_or(0))?;
    *rest = tail;
    Some(Operation { tree: u32::from_le_bytes(*tree), key, record: record_len.map(|_| record) })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(changes: Vec<(u32, Vec<u8>, Option<Vec<u8>>)>) {
            let mut bytes = Vec::new();
            let expected: Vec<_> = changes
                .iter()
                .map(|(tree, key, record)| Operation { tree: *tree, key, record: record.as_deref() })
                .collect();
            for operation in &expected {
                operation.encode(&mut bytes);
            }
            let decoded: Option<Vec<_>> = operations(&bytes).collect();
            proptest::prop_assert_eq!(decoded, Some(expected));
        }

        #[test]
        fn garbage_is_no_operation_and_no_panic(bytes: Vec<u8>) {
            operations(&bytes).for_each(drop);
        }
    }
}
