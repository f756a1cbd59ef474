//! FUNCTION DUMP and RESTORE: libraries in Redis's format.

use tokaido_wire::rdb;

use super::library::Libraries;
use crate::redis::{call::Call, failure::Failure};

/// What to do with existing libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Remove them all.
    Flush,
    /// Keep them, and reject new ones of the same name.
    Append,
    /// Replace those of the same name.
    Replace,
}

/// The policy named by the argument at 3.
pub(super) fn policy(call: &Call<'_>) -> Result<Policy, Failure> {
    match call.len() {
        3 => Ok(Policy::Append),
        4 if call.is_word(3, "APPEND") => Ok(Policy::Append),
        4 if call.is_word(3, "REPLACE") => Ok(Policy::Replace),
        4 if call.is_word(3, "FLUSH") => Ok(Policy::Flush),
        4 => Err(Failure::other(
            "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        )),
        _ => Err(too_many(call)),
    }
}

/// The error for too many arguments.
pub(super) fn too_many(call: &Call<'_>) -> Failure {
    let name = String::from_utf8_lossy(call.arg(1));
    Failure::other(format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
    ))
}

/// The code of each library in the payload at argument 2.
pub(super) fn libraries(call: &Call<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let refused = |error: rdb::PayloadError| match error {
        rdb::PayloadError::Format => Failure::other("failed loading the given functions payload"),
        error => Failure::other(error.to_string()),
    };
    let body = rdb::unseal(call.arg(2)).map_err(refused)?;
    let max = call.shared.limits().redis_functions_bytes_max;
    rdb::decode_libraries(body, max).map_err(refused)
}

/// The payload with all libraries.
pub(super) fn dump(libraries: &Libraries) -> Vec<u8> {
    let mut payload = Vec::new();
    for (_, library) in libraries.iter() {
        rdb::encode_library(&mut payload, &library.code);
    }
    rdb::seal(&mut payload);
    payload
}
