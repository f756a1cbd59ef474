//! `[databases.NAME]`: databases that are not part of the store, and tables, which are.

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tokaido_store::{
    cache,
    composite::{Mount, MountEngine},
};

use super::Limits;

/// What the configuration says about databases, by name. Those that it does not name use the
/// engine `tree`.
pub type Databases = BTreeMap<String, DatabaseConfig>;

/// What the configuration says about one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "engine", rename_all = "lowercase", deny_unknown_fields)]
pub enum DatabaseConfig {
    /// Part of the store, as without an entry.
    Tree {},
    /// Part of the store, with rows that can have indexes.
    Table {},
    /// In memory, bounded, and not transactional.
    Cache {
        /// Maximum number of bytes in use, for records, index and everything else.
        bytes: Bytes,
        /// Parts, each with its own lock: a power of two; 0 lets the cache choose.
        #[serde(default)]
        shards: usize,
    },
    /// A constant database, which is read-only.
    Cdb {
        /// The file.
        file: PathBuf,
    },
}

impl DatabaseConfig {
    /// What is to be mounted besides the store under that name.
    pub(super) fn mount(&self, name: &str, limits: &Limits) -> Option<Mount> {
        let engine = match self {
            Self::Tree {} | Self::Table {} => return None,
            Self::Cache { bytes, shards } => MountEngine::Cache(cache::Options {
                bytes_max: bytes.0,
                shards: *shards,
                key_len_max: limits.key_bytes_max,
                value_len_max: limits.value_bytes_max,
                ..cache::Options::default()
            }),
            Self::Cdb { file } => MountEngine::Cdb(file.clone()),
        };
        Some(Mount { name: name.to_owned(), engine })
    }
}

/// A number of bytes, as `268435456` or `"256 MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

/// Units with their names, the largest first.
const UNITS: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("{text:?} is no number of bytes; write \"256 MiB\" (KiB, MiB, GiB) or a number")
        };
        let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, unit) = text.split_at(digits_len);
        let number: usize = digits.parse().map_err(|_| bad())?;
        let unit = match unit.trim_start() {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1,
        };
        number.checked_mul(unit).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        let (name, unit) = unit.unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, as \"256 MiB\"")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Bytes, E> {
                usize::try_from(number).map(Bytes).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Bytes, E> {
                usize::try_from(number).map(Bytes).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_with_a_unit_or_without() {
        for (text, bytes) in
            [("256 MiB", 256 << 20), ("1GiB", 1 << 30), ("64 KiB", 64 << 10), ("7", 7), ("7 B", 7)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1 MB", "1.5 GiB", "1 GiB x", "99999999999999999999 GiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(3 << 20).to_string(), "3 MiB");
    }
}
