//! What procedures do to many records: all in one transaction, whether or not `atomic` was given.

use tokaido_store::{DatabaseId, Kind, ReadTransaction, WriteTransaction};
use tokaido_wire::kyoto::Pairs;

use super::{
    inputs::{Inputs, output, output_name},
    records::put,
    refusal::Refusal,
};

pub(super) fn set(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let records = inputs.records();
    let count = records.len();
    for (key, value) in records {
        put(tx, database, key, value, inputs.xt())?;
    }
    Ok(output("num", count.to_string()))
}

pub(super) fn remove(
    inputs: &Inputs,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let mut removed = 0_usize;
    for (key, _) in inputs.records() {
        removed += usize::from(tx.delete(database, key)?);
    }
    Ok(output("num", removed.to_string()))
}

pub(super) fn get(
    inputs: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let keys: Vec<&[u8]> = inputs.records().map(|(key, _)| key).collect();
    let (mut outputs, mut bytes) = (Pairs::new(), 0);
    tx.get_many(database, &keys, &mut |i, record| {
        // Records of other kinds have no value here, like missing ones.
        if let Some(record) = record.filter(|record| record.kind == Kind::Bytes) {
            bytes += record.value.len();
            if inputs.check_reply(bytes).is_ok() {
                outputs.insert(output_name(keys[i]), record.value.to_vec());
            }
        }
    })?;
    inputs.check_reply(bytes)?;
    let count = outputs.len();
    outputs.insert(b"num".to_vec(), count.to_string().into());
    Ok(outputs)
}
