//! `[ngx]`: what OpenResty handlers may use.

use serde::{Deserialize, Serialize};

use crate::sockets::AllowedPeer;

/// What OpenResty handlers may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NgxConfig {
    /// The peers that their sockets may connect to.
    pub socket_allow: Vec<AllowedPeer>,
}
