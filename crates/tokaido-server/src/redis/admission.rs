//! The gate as the commands of Redis pass it: with what is told to clients, and noted for ACL LOG.

use tokaido_wire::resp::Request;

use super::{client, command::Command, failure::Failure, session::Session, uses};
use crate::{
    Shared,
    access::{self, Denied, Forbidden, Permission, Principal, Where},
};

/// Decides whether a principal may run a command with these arguments.
pub(super) fn check(
    principal: &Principal,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Denied> {
    access::allow(principal, Permission::Command(command, request))
}

/// As [`check`], for a session, which is told so, as is the operator.
pub(super) fn admit(
    session: &Session,
    permission: Permission<'_>,
    place: Where,
) -> Result<(), Failure> {
    if session.principal.is_unrestricted() {
        return Ok(());
    }
    access::allow(&session.principal, permission).map_err(|denied| {
        if let Denied::Forbidden(forbidden) = &denied {
            let client = client::describe(session.client());
            session.shared().users().note_denied(forbidden, place, client.trim_end().to_owned());
        }
        Failure::from(denied)
    })?;
    match permission {
        Permission::Command(command, request) => {
            check_patterns(&session.principal, command, request)
        }
        _ => Ok(()),
    }
}

/// As [`admit`], for a command that a script runs for a session.
pub(super) fn admit_script(
    session: &Session,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Failure> {
    if session.principal.is_unrestricted() {
        return Ok(());
    }
    match check(&session.principal, command, request) {
        Err(Denied::Forbidden(forbidden)) => {
            let client = client::describe(session.client()).trim_end().to_owned();
            session.shared().users().note_denied(&forbidden, Where::Script, client);
            return Err(in_script(&forbidden));
        }
        answer => answer?,
    }
    check_patterns(&session.principal, command, request)
}

/// As [`admit`], for a command that a procedure runs for whoever has called it.
pub(super) fn admit_call(
    shared: &Shared,
    principal: &Principal,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Failure> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    match check(principal, command, request) {
        Err(Denied::Forbidden(forbidden)) => {
            shared.users().note_denied(&forbidden, Where::Script, String::new());
            return Err(in_script(&forbidden));
        }
        answer => answer?,
    }
    check_patterns(principal, command, request)
}

fn in_script(forbidden: &Forbidden) -> Failure {
    Failure::Forbidden(format!("ACL failure in script: {}", forbidden.message()))
}

/// SORT reads keys that its patterns make of the elements, so nobody can tell them before.
fn check_patterns(
    principal: &Principal,
    command: &'static Command,
    request: Request<'_>,
) -> Result<(), Failure> {
    let Some(option) = uses::option_with_patterns(command, request) else { return Ok(()) };
    if access::reads_every_key(principal, command, request) {
        return Ok(());
    }
    Err(Failure::other(format!(
        "{option} option of SORT denied due to insufficient ACL permissions"
    )))
}
