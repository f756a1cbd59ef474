//! Who asks, and what they may do: the one gate of all protocols.
//!
//! A session, or a request of HTTP, has a [`Principal`]. Each protocol says what a request needs, as
//! a [`Permission`], and asks [`allow`] before anything of it is done. The policy is the password:
//! whoever has given it may do everything, and others next to nothing.

use std::hint::black_box;

use tokaido_store::DatabaseId;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Unknown: a password is needed and was not given.
    Anonymous,
    /// Whoever gave the password, or anyone if there is none.
    User,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission<'a> {
    /// Nothing: whoever reaches the server may ask for it.
    None,
    /// To be authenticated, and no more: it concerns the client's own session, or what every client
    /// may know.
    Session,
    /// To read data.
    Read(Scope<'a>),
    /// To read and write data.
    Write(Scope<'a>),
    /// To call procedures, which may do with all databases what they were written for. The commands
    /// that they run pass the gate on their own, as their caller's.
    Call,
    /// To look into the server itself, and at its other clients.
    Administer,
}

/// The databases that a permission is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// One.
    Database(DatabaseId),
    /// One that need not be there, by its name.
    Named(&'a str),
    /// All of them.
    All,
}

/// A request is not allowed. Each protocol has its own words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The client must authenticate first.
    Unauthenticated,
}

/// Decides whether a principal may do what needs this permission.
pub(crate) fn allow(principal: Principal, permission: Permission<'_>) -> Result<(), Denied> {
    match (principal, permission) {
        (Principal::User, _) | (Principal::Anonymous, Permission::None) => Ok(()),
        (Principal::Anonymous, _) => Err(Denied::Unauthenticated),
    }
}

/// How clients authenticate.
pub(crate) struct Policy {
    password: Option<String>,
}

impl Policy {
    /// With this password, or with none.
    pub(crate) fn new(password: Option<String>) -> Self {
        Self { password }
    }

    /// Whether clients must give a password.
    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Who a client is before it has said anything.
    pub(crate) fn newcomer(&self) -> Principal {
        if self.has_password() { Principal::Anonymous } else { Principal::User }
    }

    /// Who a client is that gives this password; `None` if it is wrong. Any will do where none is
    /// needed. It takes as long for a wrong one as for the right one.
    pub(crate) fn authenticate(&self, given: &[u8]) -> Option<Principal> {
        let secret = self.password.as_ref().map(String::as_bytes);
        secret.is_none_or(|secret| equal(secret, given)).then_some(Principal::User)
    }
}

/// Looks at every byte that was given, whatever the first ones are, so that the time tells nothing
/// but the length of what was given. A difference in length is a difference.
fn equal(secret: &[u8], given: &[u8]) -> bool {
    let mut difference = secret.len() ^ given.len();
    for (i, &byte) in given.iter().enumerate() {
        let expected = secret.get(i).copied().unwrap_or(0);
        difference |= usize::from(black_box(expected ^ byte));
    }
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_equal_or_not() {
        assert!(equal(b"", b""));
        assert!(equal(b"hakone", b"hakone"));
        for other in ["", "h", "hakone ", "Hakone", "hakonf", "hakonehakone"] {
            assert!(!equal(b"hakone", other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn the_password_authenticates() {
        let policy = Policy::new(Some("hakone".to_owned()));
        assert_eq!(policy.newcomer(), Principal::Anonymous);
        assert_eq!(policy.authenticate(b"hakone"), Some(Principal::User));
        assert_eq!(policy.authenticate(b"odawara"), None);
        let open = Policy::new(None);
        assert_eq!(open.newcomer(), Principal::User);
        assert_eq!(open.authenticate(b"anything"), Some(Principal::User));
    }

    #[test]
    fn an_anonymous_client_may_do_what_needs_nothing() {
        use Permission::{Administer, Call, None, Read, Session, Write};
        let some = [Session, Read(Scope::All), Write(Scope::Named("main")), Call, Administer];
        for permission in some {
            assert_eq!(allow(Principal::User, permission), Ok(()));
            let denied = Err(Denied::Unauthenticated);
            assert_eq!(allow(Principal::Anonymous, permission), denied, "{permission:?}");
        }
        assert_eq!(allow(Principal::Anonymous, None), Ok(()));
    }
}
