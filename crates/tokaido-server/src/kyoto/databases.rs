//! Which database a client means.

use tokaido_wire::lenient::integer;

use super::{inputs::Inputs, refusal::Refusal};
use crate::{Shared, selected::Selected};

/// The database with that number, in the order of the configuration.
pub(super) fn numbered(shared: &Shared, number: usize) -> Option<&str> {
    shared.kyoto.databases().get(number).map(String::as_str)
}

/// The database that a text names: a leading digit means a number, an empty text the first one.
pub(crate) fn named(shared: &Shared, text: &[u8]) -> Result<Selected, Refusal> {
    let name = match text.first() {
        None => numbered(shared, 0),
        Some(b'0'..=b'9') => {
            usize::try_from(integer(text)).ok().and_then(|number| numbered(shared, number))
        }
        Some(_) => std::str::from_utf8(text).ok(),
    };
    let selected = name.map(|name| Selected::new(&**shared.store(), name));
    selected.and_then(Result::ok).ok_or_else(Refusal::no_database)
}

impl Inputs {
    /// The database that a call is about.
    pub(crate) fn database(&self, shared: &Shared) -> Result<Selected, Refusal> {
        named(shared, self.get("DB").unwrap_or_default())
    }
}
