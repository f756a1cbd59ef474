//! Checks which site a request belongs to. A page in a browser can reach whatever its user's
//! machine can reach, a server on loopback, too, and may send passwords that the browser keeps.
//! So the server's own paths are only for its own site: under its names, and for its own pages.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::{
    StatusCode, Version,
    header::{self, HeaderValue},
    http::request::Parts,
};

use super::error::HttpError;
use crate::config::{Address, Config};

/// Stands for any host name.
const ANY: &str = "*";

/// The bytes that a host name may contain.
const OF_NAME: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut place) = (b"-._~%!$&'()*+,;=", 0);
    while place < others.len() {
        table[others[place] as usize] = true;
        place += 1;
    }
    table
};

/// The names under which the server answers. Addresses always count: DNS rebinding, which makes a
/// browser take another site's page for the server's, needs a name for the server's address.
pub(crate) struct Hosts {
    names: Vec<String>,
}

/// A host, and the port after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Authority<'t> {
    host: &'t str,
    port: Option<u16>,
}

impl Hosts {
    /// `localhost`, the names that are listened on, and those that the operator has given.
    pub(crate) fn new(config: &Config) -> Self {
        let mut names = vec!["localhost".to_owned()];
        names.extend(config.hosts.iter().cloned());
        names.extend(config.listen.iter().filter_map(|listen| match &listen.address {
            Address::Tcp { host, .. } => Some(host.clone()),
            Address::Unix(_) => None,
        }));
        Self { names }
    }

    fn have(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        is_address(host)
            || self.names.iter().any(|name| name == ANY || name.eq_ignore_ascii_case(host))
    }
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

impl<'t> Authority<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (address, rest) = inner.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (&text[..address.len() + 2], rest)
            }
            None => {
                let colon = text.bytes().position(|byte| byte == b':');
                text.split_at(colon.unwrap_or(text.len()))
            }
        };
        let is_of_name = |byte: u8| OF_NAME[usize::from(byte)];
        let is_host = host.starts_with('[') || (!host.is_empty() && host.bytes().all(is_of_name));
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
            Some(_) => return None,
        };
        let has_port = rest.len() > 1;
        (is_host && has_port == port.is_some()).then_some(Self { host, port })
    }

    /// Whether a page of `origin` belongs to this authority.
    fn is_of(self, origin: &HeaderValue) -> bool {
        let parsed = origin.to_str().ok().and_then(|text| {
            let (scheme, authority) = text.split_once("://")?;
            let port = match scheme {
                "http" => 80,
                "https" => 443,
                _ => return None,
            };
            Some((Authority::parse(authority)?, port))
        });
        parsed.is_some_and(|(of, port)| {
            of.host.eq_ignore_ascii_case(self.host)
                && of.port.unwrap_or(port) == self.port.unwrap_or(port)
        })
    }
}

/// The authority that a request is for: that of its target, or else that of `Host`.
///
/// # Errors
/// 400 unless there is exactly one `Host`, which HTTP/1.0 may leave out, and it is valid.
pub(super) fn authority(parts: &Parts) -> Result<Option<Authority<'_>>, HttpError> {
    let mut given = parts.headers.get_all(header::HOST).iter();
    let host = match (given.next(), given.next()) {
        (None, _) if parts.version < Version::HTTP_11 => None,
        (Some(host), None) => host.to_str().ok().and_then(Authority::parse),
        _ => {
            return Err(HttpError::bad_request("a request has one Host, that of its URL"));
        }
    };
    let is_wrong = host.is_none() && parts.headers.contains_key(header::HOST);
    let target = parts.uri.authority().map(|authority| Authority::parse(authority.as_str()));
    match target {
        _ if is_wrong => Err(not_a_host()),
        None => Ok(host),
        Some(None) => Err(not_a_host()),
        Some(target) => Ok(target),
    }
}

fn not_a_host() -> HttpError {
    HttpError::bad_request("Host is a name or an address, and a port, as in localhost:7653")
}

/// Refuses requests for another site, or from a page of another site.
///
/// # Errors
/// 421 for a name that is not the server's, 403 for a page that is not its own.
pub(super) fn check_own(
    hosts: Option<&Hosts>,
    authority: Option<Authority<'_>>,
    parts: &Parts,
) -> Result<(), HttpError> {
    if let (Some(hosts), Some(Authority { host, .. })) = (hosts, authority)
        && !hosts.have(host)
    {
        let message =
            format!("this server does not answer as {host:?}; see hosts in its configuration");
        return Err(HttpError::new(StatusCode::MISDIRECTED_REQUEST, message));
    }
    let is_own = |origin| authority.is_some_and(|authority| authority.is_of(origin));
    let mut fetch_sites = parts.headers.get_all("sec-fetch-site").iter();
    let is_foreign = parts.headers.get_all(header::ORIGIN).iter().any(|origin| !is_own(origin))
        || fetch_sites.any(|site| site != "same-origin" && site != "none");
    if is_foreign {
        let message = "pages of other sites may not use this; call it from a page of this server";
        return Err(HttpError::new(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_and_a_port() {
        let parsed = |text| Authority::parse(text).map(|a| (a.host, a.port));
        assert_eq!(parsed("localhost"), Some(("localhost", None)));
        assert_eq!(parsed("a.example:80"), Some(("a.example", Some(80))));
        assert_eq!(parsed("a:"), Some(("a", None)));
        assert_eq!(parsed("[::1]:7653"), Some(("[::1]", Some(7653))));
        assert_eq!(parsed("[::1]"), Some(("[::1]", None)));
        for broken in [
            "", ":80", "a:b", "a:+1", "a:65536", "a b", "a/b", "a@b", "::1", "[::1", "[a]",
            "[::1]a", "a:80:80", "日本", "a\"", "[]",
        ] {
            assert_eq!(parsed(broken), None, "{broken}");
        }
    }

    #[test]
    fn addresses_and_the_names_that_are_listened_on_are_the_servers() {
        let config = Config {
            listen: vec!["db.example:0".parse().expect("an address")],
            hosts: vec!["Tokaido".to_owned()],
            ..Config::default()
        };
        let hosts = Hosts::new(&config);
        for own in
            ["localhost", "LOCALHOST.", "127.0.0.1", "10.0.0.1", "[::1]", "db.example", "tokaido"]
        {
            assert!(hosts.have(own), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "a.localhost", "1.2.3", "*", ""] {
            assert!(!hosts.have(foreign), "{foreign}");
        }
        let any = Hosts::new(&Config { hosts: vec!["*".to_owned()], ..Config::default() });
        assert!(any.have("evil.example"));
    }

    #[test]
    fn a_page_is_of_the_same_host_and_port() {
        let is_of = |host, origin| {
            Authority::parse(host).expect(host).is_of(&HeaderValue::from_static(origin))
        };
        assert!(is_of("localhost:7653", "http://localhost:7653"));
        assert!(is_of("db.example", "https://DB.example"));
        assert!(is_of("db.example:443", "https://db.example"));
        for foreign in [
            "http://localhost:3000",
            "http://localhost",
            "http://127.0.0.1:7653",
            "null",
            "",
            "file://localhost:7653",
            "http://localhost:7653/",
            "localhost:7653",
        ] {
            assert!(!is_of("localhost:7653", foreign), "{foreign}");
        }
    }
}
