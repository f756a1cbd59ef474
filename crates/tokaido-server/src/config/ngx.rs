//! `[ngx]`: what handlers of OpenResty's may use.

use serde::{Deserialize, Serialize};

use crate::sockets::AllowedPeer;

/// What handlers of OpenResty's may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NgxConfig {
    /// The peers that their sockets may connect to.
    pub socket_allow: Vec<AllowedPeer>,
}
