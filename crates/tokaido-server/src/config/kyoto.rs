//! `[kyoto]`: what clients of Kyoto Tycoon see.

use serde::{Deserialize, Serialize};
use tokaido_store::check_database_name;

use super::ConfigError;

/// Maximum number of databases with numbers: numbers in the binary protocol have 16 bits.
const DATABASES_MAX: usize = 1 << 16;

/// What clients of Kyoto Tycoon see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KyotoConfig {
    /// The databases with numbers, from 0 on. Others are only reached by name.
    pub databases: Vec<String>,
}

impl Default for KyotoConfig {
    fn default() -> Self {
        Self { databases: vec!["main".to_owned()] }
    }
}

impl KyotoConfig {
    /// Refuses names that no database can have.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let value = |message| Err(ConfigError::Value { option: "kyoto.databases", message });
        if self.databases.is_empty() || self.databases.len() > DATABASES_MAX {
            return value(format!("name 1 to {DATABASES_MAX} databases"));
        }
        let wrong = self.databases.iter().find_map(|name| check_database_name(name).err());
        wrong.map_or(Ok(()), |error| value(error.to_string()))
    }
}
