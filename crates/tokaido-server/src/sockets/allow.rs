//! The list of peers that handlers may connect to.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// A pattern of that list: `HOST:PORT`, either of which may be `*`, or `unix:PATH`.
///
/// It is compared with what a handler names. A name is allowed whatever addresses it has, and an
/// address is not allowed because some name has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedPeer {
    text: String,
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    Address(IpAddr),
    /// In lower case.
    Name(String),
    /// With the leading dot, in lower case.
    NameBelow(String),
    Path(String),
}

/// A text is not such a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no peer; write HOST:PORT, where the host is a name, *.DOMAIN, an address or *, and the port a number or *, or unix:PATH"
)]
pub struct AllowedPeerError(String);

impl FromStr for AllowedPeer {
    type Err = AllowedPeerError;

    fn from_str(text: &str) -> Result<Self, AllowedPeerError> {
        let error = || AllowedPeerError(text.to_owned());
        let pattern = |host, port| Ok(Self { text: text.to_owned(), host, port });
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = path.starts_with('/');
            return if is_path { pattern(Host::Path(path.to_owned()), None) } else { Err(error()) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = match port {
            "*" => None,
            port => Some(port.parse().map_err(|_| error())?),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || ":[]*/".contains(c))
        };
        let host = match (host, bare.unwrap_or(host).parse(), host.strip_prefix('*')) {
            ("*", ..) => Host::Any,
            (_, Ok(IpAddr::V6(_)), _) if bare.is_none() => return Err(error()),
            (_, Ok(address), _) => Host::Address(address),
            (.., Some(below)) if below.starts_with('.') && is_name(below) => {
                Host::NameBelow(below.to_ascii_lowercase())
            }
            (name, ..) if is_name(name) => Host::Name(name.to_ascii_lowercase()),
            _ => return Err(error()),
        };
        pattern(host, port)
    }
}

impl TryFrom<String> for AllowedPeer {
    type Error = AllowedPeerError;

    fn try_from(text: String) -> Result<Self, AllowedPeerError> {
        text.parse()
    }
}

impl From<AllowedPeer> for String {
    fn from(peer: AllowedPeer) -> Self {
        peer.text
    }
}

impl fmt::Display for AllowedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl AllowedPeer {
    /// Whether it allows this host, which is a name or an address, with that port.
    pub(crate) fn allows(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|allowed| allowed != port) {
            return false;
        }
        match &self.host {
            Host::Any => true,
            Host::Address(address) => host.parse() == Ok(*address),
            Host::Name(name) => host.eq_ignore_ascii_case(name),
            Host::NameBelow(below) => host.to_ascii_lowercase().ends_with(below.as_str()),
            Host::Path(_) => false,
        }
    }

    /// Whether it allows the UNIX socket of that path.
    pub(crate) fn allows_path(&self, path: &str) -> bool {
        matches!(&self.host, Host::Path(allowed) if allowed == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, host: &str, port: u16) -> bool {
        pattern.parse::<AllowedPeer>().expect("a pattern").allows(host, port)
    }

    #[test]
    fn a_pattern_allows_what_it_names() {
        for (pattern, host, port) in [
            ("db.example:6379", "db.example", 6379),
            ("DB.example:*", "db.EXAMPLE", 1),
            ("*.example:80", "a.b.example", 80),
            ("127.0.0.1:80", "127.0.0.1", 80),
            ("[::1]:80", "::1", 80),
            ("[::1]:80", "0:0::1", 80),
            ("*:443", "anything", 443),
            ("*:*", "10.0.0.1", 9),
        ] {
            assert!(allows(pattern, host, port), "{pattern} {host}:{port}");
        }
    }

    #[test]
    fn a_pattern_allows_nothing_else() {
        for (pattern, host, port) in [
            ("db.example:6379", "db.example", 6380),
            ("db.example:6379", "db.example.", 6379),
            ("db.example:6379", "adb.example", 6379),
            ("*.example:80", "example", 80),
            ("*.example:80", "anexample", 80),
            ("127.0.0.1:80", "127.1", 80),
            ("127.0.0.1:80", "localhost", 80),
            ("127.0.0.1:80", "::ffff:127.0.0.1", 80),
            ("localhost:80", "127.0.0.1", 80),
            ("*:443", "anything", 80),
        ] {
            assert!(!allows(pattern, host, port), "{pattern} {host}:{port}");
        }
    }

    #[test]
    fn a_path_is_allowed_as_it_stands() {
        let pattern: AllowedPeer = "unix:/run/a.sock".parse().expect("a pattern");
        assert!(pattern.allows_path("/run/a.sock"));
        assert!(!pattern.allows_path("/run/../run/a.sock"));
        assert!(!pattern.allows("/run/a.sock", 0));
        assert!(!"*:*".parse::<AllowedPeer>().expect("a pattern").allows_path("/run/a.sock"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "", "a", ":80", "a:", "a:b", "a:70000", "::1:80", "unix:", "unix:a", "a b:1", "a*:1",
            "*.:1x",
        ] {
            let error = text.parse::<AllowedPeer>().unwrap_err();
            assert!(error.to_string().contains("write HOST:PORT"), "{error}");
        }
    }
}
