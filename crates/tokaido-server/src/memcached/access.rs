//! Which rights a request needs.

use tokaido_wire::memcached::{BinaryRequest, Effect, Request};

use crate::access::{Denied, Keys, Permission, Principal, allow};

/// Checks that this request is allowed.
pub(super) fn allow_text(
    principal: &Principal,
    effect: Effect,
    request: &Request<'_>,
) -> Result<(), Denied> {
    let keys: Vec<&[u8]> = match request {
        _ if principal.is_unrestricted() => return Ok(()),
        Request::Get { keys, .. } => keys.collect(),
        Request::Store(store) => vec![store.key],
        Request::Delete { key } | Request::Count { key, .. } | Request::Touch { key, .. } => {
            vec![key]
        }
        Request::MetaSet(meta, _)
        | Request::MetaGet(meta)
        | Request::MetaDelete(meta)
        | Request::MetaArithmetic(meta)
        | Request::MetaDebug(meta) => vec![meta.key.bytes()],
        Request::FlushAll { .. } => return allow(principal, Permission::Clear),
        Request::Refused { forget, .. } => forget.iter().map(|key| key.bytes()).collect(),
        Request::Stats { .. }
        | Request::Verbosity { .. }
        | Request::Version
        | Request::Quit
        | Request::MetaNoop => Vec::new(),
    };
    allow(principal, permission(effect, &keys))
}

/// As [`allow_text`], for the binary protocol.
pub(super) fn allow_binary(
    principal: &Principal,
    effect: Effect,
    request: &BinaryRequest<'_>,
) -> Result<(), Denied> {
    let keys: Vec<&[u8]> = match request {
        _ if principal.is_unrestricted() => return Ok(()),
        BinaryRequest::Get { key, .. }
        | BinaryRequest::Touch { key, .. }
        | BinaryRequest::Delete { key, .. }
        | BinaryRequest::Count { key, .. } => vec![key],
        BinaryRequest::Store(store) => vec![store.key],
        BinaryRequest::Flush { .. } => return allow(principal, Permission::Clear),
        BinaryRequest::Refused { forget, .. } => forget.iter().copied().collect(),
        BinaryRequest::Stat { .. } | BinaryRequest::Authenticate { .. } | BinaryRequest::Plain => {
            Vec::new()
        }
    };
    allow(principal, permission(effect, &keys))
}

fn permission<'k>(effect: Effect, keys: &'k [&'k [u8]]) -> Permission<'k> {
    match effect {
        Effect::Open => Permission::None,
        Effect::Session => Permission::Session,
        Effect::Read => Permission::Read(Keys::These(keys)),
        Effect::Write => Permission::Write(Keys::These(keys)),
        Effect::Administer => Permission::Inspect,
    }
}
