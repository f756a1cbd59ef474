//! Loads rows into a database in batches, and counts the outcomes.

use std::sync::Arc;

use tokaido_store::{DatabaseId, NewRecord, Store, WriteError, Writer, transact};
use tokaido_wire::resp::{Reply, encode_command};

use crate::{client::Client, error::Error, formats::Row};

/// Maximum number of rows of one transaction, or of one pipeline to a server.
const BATCH_ROWS_MAX: usize = 10_000;

/// A batch ends with the row that brings it to this size in bytes.
const BATCH_BYTES: usize = 16 << 20;

/// The destination of rows.
pub(crate) enum Sink {
    /// A store in this process. Each batch is one durable transaction.
    Store { writer: Box<dyn Writer>, database: DatabaseId, _store: Arc<dyn Store> },
    /// A server, in the database that its connection has selected. Each row is a transaction.
    Server(Client),
}

impl Sink {
    /// Acquires the right to write to a store.
    pub(crate) fn store(store: Arc<dyn Store>, database: &str) -> Result<Self, Error> {
        let database = store.database(database)?;
        let writer = store.writer()?;
        Ok(Self::Store { writer, database, _store: store })
    }

    /// Stores a batch; returns how many rows replaced another.
    fn write(&mut self, batch: &Batch) -> Result<u64, Error> {
        match self {
            Self::Store { writer, database, .. } => Ok(transact(&mut **writer, |transaction| {
                let mut overwritten = 0;
                for (key, record) in batch.rows() {
                    overwritten += u64::from(transaction.get(*database, key)?.is_some());
                    transaction.put(*database, key, record)?;
                }
                Ok::<u64, WriteError>(overwritten)
            })?),
            Self::Server(client) => send(client, batch),
        }
    }
}

/// `SET … GET` returns the previous value.
fn send(client: &mut Client, batch: &Batch) -> Result<u64, Error> {
    let mut requests = Vec::with_capacity(batch.bytes.len() + batch.rows.len() * 48);
    for (key, record) in batch.rows() {
        match record.expires_at_ms {
            None => encode_command(&mut requests, &[b"SET", key, record.value, b"GET"]),
            Some(at) => {
                let at = at.clamp(1, i64::MAX as u64).to_string();
                let command = [b"SET", key, record.value, b"GET", b"PXAT", at.as_bytes()];
                encode_command(&mut requests, &command);
            }
        }
    }
    let mut overwritten = 0;
    client.pipeline(&requests, batch.rows.len(), |_, reply| {
        overwritten += u64::from(reply != Reply::Null);
        Ok::<(), Error>(())
    })?;
    Ok(overwritten)
}

/// Rows that wait to be stored together, in one buffer.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<BatchRow>,
}

struct BatchRow {
    key_end: usize,
    value_end: usize,
    flags: u32,
    expires_at_ms: Option<u64>,
}

impl Batch {
    fn push(&mut self, row: &Row) {
        self.bytes.extend_from_slice(&row.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(&row.value);
        let value_end = self.bytes.len();
        let (flags, expires_at_ms) = (row.flags, row.expires_at_ms);
        self.rows.push(BatchRow { key_end, value_end, flags, expires_at_ms });
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS_MAX || self.bytes.len() >= BATCH_BYTES
    }

    fn rows(&self) -> impl Iterator<Item = (&[u8], NewRecord<'_>)> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let key = &self.bytes[start..row.key_end];
            let value = &self.bytes[row.key_end..row.value_end];
            start = row.value_end;
            let (flags, expires_at_ms) = (row.flags, row.expires_at_ms);
            (key, NewRecord { flags, expires_at_ms, ..NewRecord::of(value) })
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
}

/// Stores rows in batches.
pub(crate) struct Loader {
    sink: Sink,
    batch: Batch,
    stored: u64,
    overwritten: u64,
}

impl Loader {
    pub(crate) fn new(sink: Sink) -> Self {
        Self { sink, batch: Batch::default(), stored: 0, overwritten: 0 }
    }

    /// Adds a row. It is stored when its batch is full, or at [`flush`](Self::flush).
    pub(crate) fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.batch.push(row);
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    /// Stores the waiting rows.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if !self.batch.rows.is_empty() {
            self.overwritten += self.sink.write(&self.batch)?;
            self.stored += self.batch.rows.len() as u64;
            self.batch.clear();
        }
        Ok(())
    }

    /// Number of rows that are certainly stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// How many of them replaced an existing record, from this load or earlier.
    pub(crate) fn overwritten(&self) -> u64 {
        self.overwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_until_full(value_len: usize) -> usize {
        let row = Row { key: b"k".to_vec(), value: vec![0; value_len], ..Row::default() };
        let mut batch = Batch::default();
        while !batch.is_full() {
            batch.push(&row);
        }
        batch.rows.len()
    }

    #[test]
    fn a_batch_is_bounded_in_rows_and_in_bytes() {
        assert_eq!(rows_until_full(1), BATCH_ROWS_MAX);
        assert_eq!(rows_until_full(BATCH_BYTES / 4), 4);
    }

    #[test]
    fn a_batch_gives_back_its_rows() {
        let rows = [("a", "1"), ("b", ""), ("c", "333")].map(|(key, value)| Row {
            key: key.into(),
            value: value.into(),
            flags: 7,
            expires_at_ms: Some(9),
            ..Row::default()
        });
        let mut batch = Batch::default();
        rows.iter().for_each(|row| batch.push(row));
        let given: Vec<_> = batch
            .rows()
            .map(|(key, record)| Row {
                key: key.to_vec(),
                value: record.value.to_vec(),
                flags: record.flags,
                expires_at_ms: record.expires_at_ms,
                kind: record.kind,
            })
            .collect();
        assert_eq!(given, rows);
    }
}
