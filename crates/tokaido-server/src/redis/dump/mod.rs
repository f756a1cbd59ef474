//! DUMP and RESTORE: records in Redis's format.

mod read;
mod streams;
mod write;

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};
use tokaido_store::ReadTransaction;

pub(super) use read::payload;

pub(super) const COMMANDS: &[Command] = rows! {
"dump" 2 Read(dump), KEY [] Generic "2.6.0"
    "key"
    "Returns a value in Redis' own format, for RESTORE.";
"restore" -4 Write(write::restore), KEY [DENYOOM DANGEROUS] Generic "2.6.0"
    "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"
    "Stores a value returned by DUMP under a key, with a time to live in milliseconds; 0 means no expiry.";
};

fn dump(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let payload = read::payload(call, tx, call.arg(1))?;
    call.reply.bulk_or_null(payload.as_deref());
    Ok(())
}
