//! Which rights a request needs.

use tokaido_wire::tyrant::{Effect, Verb};

use super::{
    misc::{Arguments, Misc, Work},
    refusal::Refusal,
};
use crate::access::{Denied, Keys, Permission, Principal, allow};

/// Checks that the principal may run a command on these keys. A procedure of the operator, or a
/// function of `misc`, is checked when it is called.
pub(crate) fn allow_verb<'k>(
    principal: &Principal,
    (verb, effect): (Verb, Effect),
    keys: impl IntoIterator<Item = &'k [u8]>,
) -> Result<(), Denied> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    let named: Vec<&[u8]> = keys.into_iter().collect();
    let keys = match verb {
        Verb::Vanish => return allow(principal, Permission::Clear),
        Verb::Ext | Verb::Misc => return allow(principal, Permission::Session),
        Verb::IterInit | Verb::IterNext | Verb::FwmKeys => Keys::All,
        Verb::Rnum | Verb::Size | Verb::Stat => return allow(principal, Permission::Inspect),
        _ => Keys::These(&named),
    };
    allow(
        principal,
        match effect {
            Effect::Read => Permission::Read(keys),
            Effect::Write => Permission::Write(keys),
            Effect::Call => Permission::Session,
            Effect::Administer | Effect::Replicate => Permission::Administer,
        },
    )
}

/// Checks that the principal may call a function of `misc`.
pub(crate) fn allow_misc(
    principal: &Principal,
    function: &Misc,
    arguments: &Arguments<'_>,
) -> Result<(), Denied> {
    if principal.is_unrestricted() {
        return Ok(());
    }
    let all = arguments.all();
    let pairs: Vec<&[u8]> = all.iter().copied().step_by(2).collect();
    let keys = match function.name {
        "put" | "putkeep" | "putcat" | "out" | "get" | "getpart" => {
            Keys::One(all.first().copied().unwrap_or_default())
        }
        "putlist" => Keys::These(&pairs),
        "outlist" | "getlist" => Keys::These(all),
        "vanish" => return allow(principal, Permission::Clear),
        "error" => return allow(principal, Permission::Session),
        "sync" | "optimize" | "defrag" | "cacheclear" => {
            return allow(principal, Permission::Administer);
        }
        _ => Keys::All,
    };
    let writes = matches!(function.work, Work::Write(_));
    allow(principal, if writes { Permission::Write(keys) } else { Permission::Read(keys) })
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self::invalid(denied.message())
    }
}
