//! `[memcached]`: what clients of the memcached protocol see.

use serde::{Deserialize, Serialize};
use tokaido_store::check_database_name;

use super::{
    ConfigError,
    databases::{Bytes, DatabaseConfig, Databases},
};
use crate::shared::MAIN;

/// The default name of the database.
const DATABASE_DEFAULT: &str = "memcached";

/// The default size of the cache, as in memcached.
const BYTES_DEFAULT: usize = 64 << 20;

/// What clients of the memcached protocol see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemcachedConfig {
    /// The database that clients read and write.
    pub database: String,
    /// The size of its cache, if `[databases]` does not define the database.
    pub bytes: Bytes,
}

impl Default for MemcachedConfig {
    fn default() -> Self {
        Self { database: DATABASE_DEFAULT.to_owned(), bytes: Bytes(BYTES_DEFAULT) }
    }
}

impl MemcachedConfig {
    /// The cache behind the database, unless something else in the configuration defines it.
    pub(super) fn cache(&self, databases: &Databases) -> Option<DatabaseConfig> {
        let is_own = self.database != MAIN && !databases.contains_key(&self.database);
        is_own.then_some(DatabaseConfig::Cache { bytes: self.bytes, shards: 0 })
    }

    /// Refuses a database that cannot be written to.
    pub(super) fn validate(&self, databases: &Databases) -> Result<(), ConfigError> {
        let value = |message| Err(ConfigError::Value { option: "memcached.database", message });
        if let Err(error) = check_database_name(&self.database) {
            return value(error.to_string());
        }
        if let Some(DatabaseConfig::Cdb { .. }) = databases.get(&self.database) {
            let name = &self.database;
            return value(format!(
                "{name} is a constant database, which is only read; name another"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(database: &str, text: &str) -> Option<DatabaseConfig> {
        let databases: Databases = toml::from_str(text).expect("it parses");
        let config = MemcachedConfig { database: database.to_owned(), ..Default::default() };
        config.cache(&databases)
    }

    #[test]
    fn the_database_is_a_cache_unless_told_otherwise() {
        let own = DatabaseConfig::Cache { bytes: Bytes(64 << 20), shards: 0 };
        assert_eq!(cache("memcached", ""), Some(own));
        assert_eq!(cache("main", ""), None);
        assert_eq!(cache("t", "[t]\nengine = \"tree\""), None);
        assert_eq!(cache("c", "[c]\nengine = \"cache\"\nbytes = \"1 MiB\""), None);
        assert!(cache("other", "[t]\nengine = \"tree\"").is_some());
    }

    #[test]
    fn a_database_that_is_only_read_is_refused() {
        let databases =
            toml::from_str("[c]\nengine = \"cdb\"\nfile = \"c.cdb\"").expect("it parses");
        let config = MemcachedConfig { database: "c".to_owned(), ..Default::default() };
        let error = config.validate(&databases).expect_err("it is constant").to_string();
        assert!(error.starts_with("option memcached.database: c is a constant"), "{error}");
        let unnamed = MemcachedConfig { database: String::new(), ..Default::default() };
        assert!(unnamed.validate(&Databases::new()).is_err());
    }
}
