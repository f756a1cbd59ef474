//! Who sends a request.

use hyper::{StatusCode, header, http::request::Parts};
use tokaido_wire::base64;

use super::error::HttpError;
use crate::access::{Denied, Policy, Principal};

/// Who sends a request: it gives the password as `Bearer`, or as `Basic` with any user name.
pub(super) fn principal(policy: &Policy, parts: &Parts) -> Principal {
    let newcomer = policy.newcomer();
    if newcomer != Principal::Anonymous {
        return newcomer;
    }
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|v| password(v.as_bytes()));
    given.and_then(|given| policy.authenticate(&given)).unwrap_or(newcomer)
}

/// 401, with the way to do better.
impl From<Denied> for HttpError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => {
                let message = "the password is missing or wrong: send it as \"authorization: Bearer …\", or as Basic with any user name";
                Self::new(StatusCode::UNAUTHORIZED, message)
                    .with_header(header::WWW_AUTHENTICATE, "Basic realm=\"tokaido\"")
            }
        }
    }
}

fn password(authorization: &[u8]) -> Option<Vec<u8>> {
    let (scheme, given) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    let given = given.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        Some(given.as_bytes().to_vec())
    } else if scheme.eq_ignore_ascii_case("basic") {
        let pair = base64::decode(given.as_bytes())?;
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
