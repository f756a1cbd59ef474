//! Which rights a request needs.

use tokaido_wire::kyoto::{Effect, Procedure, Verb, binary::Request};

use super::{
    inputs::Inputs,
    refusal::{Kind, Refusal},
};
use crate::access::{Denied, Keys, Permission, Principal, allow};

/// Checks that the principal may call a procedure with these inputs. A procedure of the operator
/// is checked when it is called.
pub(crate) fn allow_call(
    principal: &Principal,
    procedure: &Procedure,
    inputs: &Inputs,
) -> Result<(), Denied> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    let bulk: Vec<&[u8]> = inputs.records().map(|(key, _)| key).collect();
    let keys = match procedure.verb {
        Verb::Clear => return allow(principal, Permission::Clear),
        Verb::Report => return allow(principal, Permission::Inspect),
        Verb::Status | Verb::Vacuum | Verb::Synchronize | Verb::CurDelete => Keys::None,
        Verb::SetBulk | Verb::RemoveBulk | Verb::GetBulk => Keys::These(&bulk),
        Verb::Set
        | Verb::Add
        | Verb::Replace
        | Verb::Append
        | Verb::Increment
        | Verb::IncrementDouble
        | Verb::Cas
        | Verb::Remove
        | Verb::Get
        | Verb::Check
        | Verb::Seize => Keys::One(inputs.get("key").unwrap_or_default()),
        // A search or a cursor may reach any record.
        _ => Keys::All,
    };
    let permission = match procedure.effect {
        Effect::Session | Effect::Call => Permission::Session,
        Effect::Read => Permission::Read(keys),
        Effect::Write => Permission::Write(keys),
        Effect::Administer => Permission::Administer,
    };
    allow(principal, permission)
}

/// As [`allow_call`], for a request of the binary protocol.
pub(super) fn allow_binary(principal: &Principal, request: &Request<'_>) -> Result<(), Denied> {
    let (Request::GetBulk(items) | Request::SetBulk(items) | Request::RemoveBulk(items)) = request
    else {
        let is_call = matches!(request, Request::PlayScript { .. });
        let needed = if is_call { Permission::Session } else { Permission::Administer };
        return allow(principal, needed);
    };
    if principal.is_unrestricted() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = items.clone().map(|item| item.key).collect();
    let is_read = matches!(request, Request::GetBulk(_));
    let keys = Keys::These(&keys);
    allow(principal, if is_read { Permission::Read(keys) } else { Permission::Write(keys) })
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self::new(Kind::Forbidden, denied.message())
    }
}
