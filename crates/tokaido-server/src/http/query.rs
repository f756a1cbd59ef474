//! The query of a URL.

use tokaido_script::percent;

use super::error::HttpError;

/// Decodes names and values, in order.
///
/// # Errors
/// 400 for broken percent-encoding.
pub(super) fn parse(query: Option<&str>) -> Result<Vec<(String, Vec<u8>)>, HttpError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let broken = || HttpError::bad_request(format!("broken percent-encoding in {pair:?}"));
            let name = percent::decode_query(name).ok_or_else(broken)?;
            let name = String::from_utf8(name).map_err(|_| broken())?;
            Ok((name, percent::decode_query(value).ok_or_else(broken)?))
        })
        .collect()
}
