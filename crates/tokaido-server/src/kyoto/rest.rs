//! The REST interface: what its requests do to a record.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};

use super::{
    records,
    refusal::{DatabaseError, Kind, Refusal},
};

/// A record as the interface shows it.
pub(crate) struct Found {
    pub(crate) value: Vec<u8>,
    pub(crate) expires_at: Option<SystemTime>,
}

/// When to put a record, by the header `X-Kt-Mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Always.
    Set,
    /// If there is none.
    Add,
    /// If there is one.
    Replace,
}

impl Mode {
    pub(crate) fn read(header: Option<&str>) -> Self {
        match header {
            Some(mode) if mode.eq_ignore_ascii_case("add") => Self::Add,
            Some(mode) if mode.eq_ignore_ascii_case("replace") => Self::Replace,
            _ => Self::Set,
        }
    }
}

pub(crate) fn get(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    key: &[u8],
) -> Result<Found, Refusal> {
    let record = records::of_bytes(tx.get(database, key)?)?;
    let record = record.ok_or_else(|| DatabaseError::Missing.refusal())?;
    let expires_at = record.expires_at_ms.map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
    Ok(Found { value: record.value.to_vec(), expires_at })
}

/// Puts a record that expires at `xt`, in seconds since the epoch.
pub(crate) fn put(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
    mode: Mode,
    xt: Option<i64>,
) -> Result<(), Refusal> {
    let is_there = tx.get(database, key)?.is_some();
    match mode {
        Mode::Add if is_there => return Err(DatabaseError::Duplicate.refusal()),
        Mode::Replace if !is_there => return Err(DatabaseError::Missing.refusal()),
        _ => {}
    }
    records::put(tx, database, key, value, xt.map_or(i64::MAX, |xt| -xt))
}

pub(crate) fn remove(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
) -> Result<(), Refusal> {
    let removed = tx.delete(database, key)?;
    if removed { Ok(()) } else { Err(DatabaseError::Missing.refusal()) }
}

/// The time in the header `X-Kt-Xt`, in seconds since the epoch: a number, an HTTP date (RFC
/// 9110), or a W3CDTF date in UTC, such as `2026-11-22T12:00:00Z`.
pub(crate) fn parse_time(text: &str) -> Result<i64, Refusal> {
    let text = text.trim();
    if let Ok(seconds @ 1..) = text.parse::<i64>() {
        return Ok(seconds);
    }
    let date = httpdate::parse_http_date(text).ok();
    let date = date.or_else(|| humantime::parse_rfc3339_weak(text).ok());
    let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_secs()).ok()).ok_or_else(|| {
        let message = "x-kt-xt is a date, or seconds since the epoch";
        Refusal::new(Kind::Invalid, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_forms() {
        for text in [
            "946684800",
            "Sat, 01 Jan 2000 00:00:00 GMT",
            "2000-01-01T00:00:00Z",
            "2000-01-01 00:00:00",
        ] {
            assert_eq!(parse_time(text), Ok(946_684_800), "{text}");
        }
        for text in ["", "soon", "0", "-5", "2000-13-01T00:00:00Z"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
