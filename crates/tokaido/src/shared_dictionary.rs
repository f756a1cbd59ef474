//! A dictionary of `ngx.shared` for a script, in the notation of `resty`: `dogs 1m`.

use std::{fmt, str::FromStr};

use tokaido_server::Bytes;
use tokaido_store::{
    cache,
    composite::{Mount, MountEngine},
};

/// The dictionary's name and maximum size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedDictionary {
    name: String,
    bytes: usize,
}

/// Units as nginx writes them.
const UNITS: [(char, usize); 2] = [('k', 1 << 10), ('m', 1 << 20)];

impl FromStr for SharedDictionary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no dictionary; write its name and size, as \"dogs 1m\"");
        let (name, size) = text.trim().split_once(char::is_whitespace).ok_or_else(bad)?;
        let size = size.trim();
        let of_nginx = UNITS.iter().find_map(|(unit, bytes)| {
            let number = size.strip_suffix([*unit, unit.to_ascii_uppercase()])?;
            number.parse::<usize>().ok()?.checked_mul(*bytes)
        });
        let bytes = match of_nginx {
            Some(bytes) => bytes,
            None => size.parse::<Bytes>().map_err(|_| bad())?.0,
        };
        Ok(Self { name: name.to_owned(), bytes })
    }
}

impl fmt::Display for SharedDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.bytes)
    }
}

impl SharedDictionary {
    /// The cache to mount for it.
    pub(crate) fn mount(&self) -> Mount {
        let options = cache::Options { bytes_max: self.bytes, ..cache::Options::default() };
        Mount { name: self.name.clone(), engine: MountEngine::Cache(options) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_nginx_or_ours() {
        let bytes = |text: &str| text.parse::<SharedDictionary>().map(|found| found.bytes).ok();
        assert_eq!(bytes("dogs 1m"), Some(1 << 20));
        assert_eq!(bytes(" dogs  100K "), Some(100 << 10));
        assert_eq!(bytes("dogs 2 MiB"), Some(2 << 20));
        assert_eq!(bytes("dogs 65536"), Some(65_536));
        for bad in ["dogs", "dogs m", "dogs 1g", "1m", ""] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
        let dogs: SharedDictionary = "dogs 1m".parse().unwrap();
        assert_eq!(dogs.to_string().parse(), Ok(dogs));
    }
}
