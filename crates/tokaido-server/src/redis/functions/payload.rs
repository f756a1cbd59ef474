//! FUNCTION DUMP and RESTORE: libraries in Redis' own form.

use tokaido_wire::rdb;

use super::library::Libraries;
use crate::redis::{call::Call, failure::Failure};

/// What becomes of the libraries that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// They go.
    Flush,
    /// They stay, and none of the same name is taken.
    Append,
    /// Those of the same name go.
    Replace,
}

/// The policy that the argument at 3 names.
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

/// The error for arguments behind the last one that there can be.
pub(super) fn too_many(call: &Call<'_>) -> Failure {
    let name = String::from_utf8_lossy(call.arg(1));
    Failure::other(format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
    ))
}

/// The code of each library of the payload at 2.
pub(super) fn libraries(call: &Call<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let refused = |error: rdb::PayloadError| match error {
        rdb::PayloadError::Format => Failure::other("failed loading the given functions payload"),
        error => Failure::other(error.to_string()),
    };
    let body = rdb::unseal(call.arg(2)).map_err(refused)?;
    let max = call.shared.limits().redis_functions_bytes_max;
    rdb::decode_libraries(body, max).map_err(refused)
}

/// The payload of all libraries.
pub(super) fn dump(libraries: &Libraries) -> Vec<u8> {
    let mut payload = Vec::new();
    for (_, library) in libraries.iter() {
        rdb::encode_library(&mut payload, &library.code);
    }
    rdb::seal(&mut payload);
    payload
}
