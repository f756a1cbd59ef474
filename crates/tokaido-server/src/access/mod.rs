//! Users, their rules, and the one gate that the requests of all protocols pass.

mod channels;
mod error;
mod file;
mod gate;
mod log;
mod password;
mod patterns;
mod selector;
mod user;
mod users;

pub use error::AclFileError;
pub(crate) use error::RuleError;
pub(crate) use file::merge as merge_selectors;
pub(crate) use gate::{Denied, Keys, Permission, Principal, What, allow, reads_every_key};
pub(crate) use log::{ENTRIES_MAX as LOG_ENTRIES_MAX, Entry as LogEntry, Where};
pub(crate) use patterns::Rights;
pub(crate) use user::{Rules, User, has_blank};
pub use users::Users;
pub(crate) use users::{DEFAULT, Unloaded};
