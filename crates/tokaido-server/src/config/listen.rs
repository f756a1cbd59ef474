//! `[[listen]]`: where the server listens, and what is spoken there.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{ConfigError, PORT_DEFAULT};
use crate::detect::{ProtocolName, ROWS};

/// One `[[listen]]` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// Where.
    pub address: Address,
    /// The protocols that are spoken there, the preferred one first; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<ProtocolName>,
    /// Who may connect to a UNIX socket; `None`: its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

impl Listen {
    /// The protocols that are spoken there, in the order that decides between them.
    pub(crate) fn allowed(&self) -> Arc<[ProtocolName]> {
        if self.protocols.is_empty() {
            ROWS.iter().map(|row| row.protocol).collect()
        } else {
            self.protocols.as_slice().into()
        }
    }

    /// Refuses combinations that make no sense.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let value = |option, message: String| Err(ConfigError::Value { option, message });
        if self.mode.is_some() && !matches!(self.address, Address::Unix(_)) {
            let message = format!("only a UNIX socket has one, and {} is none", self.address);
            return value("listen.mode", message);
        }
        let repeats = |(i, name): (usize, &ProtocolName)| self.protocols[..i].contains(name);
        if self.protocols.iter().enumerate().any(repeats) {
            return value("listen.protocols", format!("{} names one twice", self.address));
        }
        Ok(())
    }
}

/// An address where every protocol is spoken.
impl From<Address> for Listen {
    fn from(address: Address) -> Self {
        Self { address, protocols: Vec::new(), mode: None }
    }
}

impl FromStr for Listen {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse().map(Address::into)
    }
}

/// An address as an operator writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`, where the host is an IP address or a name. Port 0 takes a free one.
    Tcp {
        /// The host, an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:PATH`.
    Unix(PathBuf),
}

/// A text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no address; write HOST:PORT, as in 127.0.0.1:{PORT_DEFAULT}, or unix:PATH, as in unix:/run/tokaido.sock"
)]
pub struct AddressError(pub String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = in_brackets.unwrap_or(host);
        let is_bare_v6 = in_brackets.is_none() && host.contains(':');
        if host.is_empty() || is_bare_v6 || host.contains(['/', ' ', '@', '[', ']']) {
            return Err(bad());
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The permissions of a UNIX socket, in octal digits as `chmod` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        u32::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o777).map(Self).ok_or_else(|| {
            format!("{text:?} are no permissions; write octal digits, as in \"660\"")
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

/// Both are serialized as text.
macro_rules! serde_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(Address, Mode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_alike() {
        let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
        for (text, address) in [
            ("127.0.0.1:7653", tcp("127.0.0.1", 7653)),
            ("localhost:0", tcp("localhost", 0)),
            ("[::1]:7653", tcp("::1", 7653)),
            ("unix:/run/tokaido.sock", Address::Unix("/run/tokaido.sock".into())),
            ("unix:here.sock", Address::Unix("here.sock".into())),
        ] {
            assert_eq!(text.parse::<Address>(), Ok(address), "{text}");
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "localhost", ":1", "a:b", "a:65536", "::1:1", "[a:1", "redis://a:1", "unix:"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!("660".parse(), Ok(Mode(0o660)));
        assert_eq!(Mode(0o60).to_string(), "060");
        for text in ["", "668", "1777", "rw", "-1"] {
            assert!(text.parse::<Mode>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        let message = |text: &str| {
            let listen: Listen = toml::from_str(text).expect("it parses");
            listen.validate().expect_err(text).to_string()
        };
        let mode = message("address = \"a:1\"\nmode = \"660\"");
        assert_eq!(mode, "option listen.mode: only a UNIX socket has one, and a:1 is none");
        let twice = message("address = \"a:1\"\nprotocols = [\"redis\", \"redis\"]");
        assert_eq!(twice, "option listen.protocols: a:1 names one twice");
    }
}
