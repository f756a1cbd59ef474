//! The access check for Redis commands: tells the client of a denial and records it for ACL LOG.

use tokaido_wire::resp::Request;

use super::{client, command::Command, failure::Failure, session::Session, uses};
use crate::{
    Shared,
    access::{self, Denied, Permission, Principal, Where},
};

/// Why a request is refused.
pub(super) enum Refused {
    /// By the rules of the user.
    Denied(Denied),
    /// It has this option of SORT, which reads keys that are not known beforehand.
    Option(&'static str),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Denied(denied) => denied.into(),
            Refused::Option(option) => Self::other(denied_option(option)),
        }
    }
}

/// The error message for an option of SORT that is denied.
pub(super) fn denied_option(option: &str) -> String {
    format!("{option} option of SORT denied due to insufficient ACL permissions")
}

/// Decides whether a principal has this permission.
pub(super) fn check(principal: &Principal, permission: Permission<'_>) -> Result<(), Refused> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    access::allow(principal, permission).map_err(Refused::Denied)?;
    // SORT reads keys that it builds from its patterns and the elements.
    if let Permission::Command(command, request) = permission
        && let Some(option) = uses::option_with_patterns(command, request)
        && !access::reads_every_key(principal, command, request)
    {
        return Err(Refused::Option(option));
    }
    Ok(())
}

/// Like [`check`], for a session. A denial is reported to the session and to the operator.
pub(super) fn admit(
    session: &Session,
    permission: Permission<'_>,
    place: Where,
) -> Result<(), Failure> {
    check(&session.principal, permission).map_err(|refused| {
        if let Refused::Denied(Denied::Forbidden(forbidden)) = &refused {
            let client = client::describe(session.client());
            session.shared().users().note_denied(forbidden, place, client.trim_end().to_owned());
        }
        Failure::from(refused)
    })
}

/// Like [`admit`], for a command that a script runs for a session.
pub(super) fn admit_script(
    session: &Session,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Failure> {
    let checked = check(&session.principal, Permission::Command(command, request));
    checked.map_err(|refused| {
        let client = || client::describe(session.client()).trim_end().to_owned();
        in_script(session.shared(), refused, client)
    })
}

/// Like [`admit`], for a command that a procedure runs for its caller.
pub(super) fn admit_call(
    shared: &Shared,
    principal: &Principal,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Failure> {
    let checked = check(principal, Permission::Command(command, request));
    checked.map_err(|refused| in_script(shared, refused, String::new))
}

fn in_script(shared: &Shared, refused: Refused, client: impl FnOnce() -> String) -> Failure {
    let Refused::Denied(Denied::Forbidden(forbidden)) = refused else { return refused.into() };
    shared.users().note_denied(&forbidden, Where::Script, client());
    Failure::Forbidden(format!("ACL failure in script: {}", forbidden.message()))
}
