//! The gate as the commands of Redis pass it: with what is told to clients, and noted for ACL LOG.

use tokaido_wire::resp::Request;

use super::{client, command::Command, failure::Failure, session::Session, uses};
use crate::{
    Shared,
    access::{self, Denied, Permission, Principal, Where},
};

/// Why a request is not let in.
pub(super) enum Refused {
    /// By the rules.
    Denied(Denied),
    /// It has this option of SORT, which reads keys that nobody can tell before.
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

/// What is told of an option of SORT that is denied.
pub(super) fn denied_option(option: &str) -> String {
    format!("{option} option of SORT denied due to insufficient ACL permissions")
}

/// Decides whether a principal may do what needs this permission.
pub(super) fn check(principal: &Principal, permission: Permission<'_>) -> Result<(), Refused> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    access::allow(principal, permission).map_err(Refused::Denied)?;
    // SORT reads keys that its patterns make of the elements.
    if let Permission::Command(command, request) = permission
        && let Some(option) = uses::option_with_patterns(command, request)
        && !access::reads_every_key(principal, command, request)
    {
        return Err(Refused::Option(option));
    }
    Ok(())
}

/// As [`check`], for a session, which is told so, as is the operator.
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

/// As [`admit`], for a command that a script runs for a session.
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

/// As [`admit`], for a command that a procedure runs for whoever has called it.
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
