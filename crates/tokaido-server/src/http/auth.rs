//! Who sends a request.

use hyper::{StatusCode, header, http::request::Parts};
use tokaido_wire::base64;

use super::error::HttpError;
use crate::access::{DEFAULT, Denied, Principal, Users};

/// The sender of a request: it gives a name and a password as `Basic`, or the default user's
/// password as `Bearer`.
pub(super) fn principal(users: &Users, parts: &Parts) -> Principal {
    let authorization = parts.headers.get(header::AUTHORIZATION);
    let authenticated = match authorization.and_then(|value| credentials(value.as_bytes())) {
        None => return users.newcomer(),
        Some((None, password)) => users.authenticate(DEFAULT.as_bytes(), &password),
        Some((Some(name), password)) => users.authenticate_any(&name, &password),
    };
    authenticated.unwrap_or(Principal::Anonymous)
}

/// 401, which says how to authenticate; or 403.
impl From<Denied> for HttpError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => {
                let message = "the password is missing or wrong: send it as \"authorization: Bearer …\", or as Basic with the name of a user";
                Self::new(StatusCode::UNAUTHORIZED, message)
                    .with_header(header::WWW_AUTHENTICATE, "Basic realm=\"tokaido\"")
            }
            Denied::Forbidden(forbidden) => Self::new(StatusCode::FORBIDDEN, forbidden.message()),
        }
    }
}

/// The user name, if there is one, and the password.
fn credentials(authorization: &[u8]) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    let (scheme, given) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    let given = given.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        Some((None, given.as_bytes().to_vec()))
    } else if scheme.eq_ignore_ascii_case("basic") {
        let pair = base64::decode(given.as_bytes())?;
        let colon = memchr::memchr(b':', &pair)?;
        Some((Some(pair[..colon].to_vec()), pair[colon + 1..].to_vec()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_found_in_both_schemes() {
        let bearer = Some((None, b"sesame".to_vec()));
        assert_eq!(credentials(b"Bearer sesame"), bearer);
        assert_eq!(credentials(b"bearer  sesame "), bearer);
        let basic = Some((Some(b"user".to_vec()), b"ses:ame".to_vec()));
        assert_eq!(credentials(b"Basic dXNlcjpzZXM6YW1l"), basic);
        for broken in
            [&b"sesame"[..], b"", b"Digest sesame", b"Basic !", b"Basic dXNlcg==", b"\xff"]
        {
            assert_eq!(credentials(broken), None, "{broken:?}");
        }
    }
}
