//! Who may ask.

use hyper::{StatusCode, header, http::request::Parts};

use super::{base64, error::HttpError};
use crate::Shared;

/// Lets a request pass that carries the password, as `Bearer` or as `Basic` with any user name.
///
/// # Errors
/// 401, with the way to do better.
pub(super) fn check(shared: &Shared, parts: &Parts) -> Result<(), HttpError> {
    if !shared.needs_password() {
        return Ok(());
    }
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|v| password(v.as_bytes()));
    if given.is_some_and(|given| shared.is_password(&given)) {
        return Ok(());
    }
    let message = "the password is missing or wrong: send it as \"authorization: Bearer …\", or as Basic with any user name";
    Err(HttpError::new(StatusCode::UNAUTHORIZED, message)
        .with_header(header::WWW_AUTHENTICATE, "Basic realm=\"tokaido\""))
}

/// Refuses what a page of another site makes a browser send: the browser may reach this server,
/// and may add the password, though whoever wrote the page could do neither.
///
/// # Errors
/// 403.
pub(super) fn check_same_site(parts: &Parts) -> Result<(), HttpError> {
    match parts.headers.get("sec-fetch-site") {
        Some(site) if site == "cross-site" => {
            Err(HttpError::new(StatusCode::FORBIDDEN, "pages of other sites may not use this API"))
        }
        _ => Ok(()),
    }
}

fn password(authorization: &[u8]) -> Option<Vec<u8>> {
    let (scheme, given) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    let given = given.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        Some(given.as_bytes().to_vec())
    } else if scheme.eq_ignore_ascii_case("basic") {
        let pair = base64::decode(given)?;
        let colon = memchr::memchr(b':', &pair)?;
        Some(pair[colon + 1..].to_vec())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_found_in_both_schemes() {
        assert_eq!(password(b"Bearer sesame").as_deref(), Some(&b"sesame"[..]));
        assert_eq!(password(b"bearer  sesame ").as_deref(), Some(&b"sesame"[..]));
        assert_eq!(password(b"Basic dXNlcjpzZXM6YW1l").as_deref(), Some(&b"ses:ame"[..]));
        for broken in
            [&b"sesame"[..], b"", b"Digest sesame", b"Basic !", b"Basic dXNlcg==", b"\xff"]
        {
            assert_eq!(password(broken), None, "{broken:?}");
        }
    }
}
