//! `[memcached]`: what clients of the memcached protocol see.

use serde::{Deserialize, Serialize};
use tokaido_store::{
    cache, check_database_name,
    composite::{Mount, MountEngine},
};

use super::{
    ConfigError, Limits,
    databases::{Bytes, DatabaseConfig, Databases},
};
use crate::shared::MAIN;

/// The name of the database unless told otherwise.
const DATABASE_DEFAULT: &str = "memcached";

/// The size of the cache unless told otherwise, as memcached has it.
const BYTES_DEFAULT: usize = 64 << 20;

/// A shard of the cache has at least this many bytes, so that half of it, which is the longest record,
/// is longer than memcached's longest value.
const SHARD_BYTES_MIN: usize = 4 << 20;

/// Maximum number of shards, as caches choose it.
const SHARDS_MAX: usize = 64;

/// What clients of the memcached protocol see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemcachedConfig {
    /// The database that they read and write.
    pub database: String,
    /// The size of the cache that it is, if `[databases]` says nothing of it.
    pub bytes: Bytes,
}

impl Default for MemcachedConfig {
    fn default() -> Self {
        Self { database: DATABASE_DEFAULT.to_owned(), bytes: Bytes(BYTES_DEFAULT) }
    }
}

impl MemcachedConfig {
    /// Whether the database is a cache that nothing else in the configuration tells of.
    fn is_own(&self, databases: &Databases) -> bool {
        self.database != MAIN && !databases.contains_key(&self.database)
    }

    /// The cache, if it is to be mounted.
    pub(super) fn mount(&self, databases: &Databases, limits: &Limits) -> Option<Mount> {
        let shards = (self.bytes.0 / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let options = cache::Options {
            bytes_max: self.bytes.0,
            shards: 1 << shards.ilog2(),
            key_len_max: limits.key_bytes_max,
            value_len_max: limits.value_bytes_max,
            ..cache::Options::default()
        };
        let engine = MountEngine::Cache(options);
        self.is_own(databases).then(|| Mount { name: self.database.clone(), engine })
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

    fn mount(database: &str, text: &str) -> Option<Mount> {
        let databases: Databases = toml::from_str(text).expect("it parses");
        let config = MemcachedConfig { database: database.to_owned(), ..Default::default() };
        config.mount(&databases, &Limits::default())
    }

    #[test]
    fn the_database_is_a_cache_unless_told_otherwise() {
        let own = mount("memcached", "").expect("a mount");
        let MountEngine::Cache(options) = own.engine else { panic!("{}", own.name) };
        assert_eq!((options.bytes_max, options.shards), (64 << 20, 16));
        assert!(mount("main", "").is_none());
        assert!(mount("t", "[t]\nengine = \"tree\"").is_none());
        assert!(mount("c", "[c]\nengine = \"cache\"\nbytes = \"1 MiB\"").is_none());
        assert!(mount("other", "[t]\nengine = \"tree\"").is_some());
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
