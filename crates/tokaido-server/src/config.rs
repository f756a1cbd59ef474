//! The operator's options, and what is refused before anything starts.
//!
//! `tokaido.toml` at the root of the repository is the manual of these options. A test compares it
//! with this file: every option is in it, with the default as its value.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tokaido_store::{
    composite::{self, Mount},
    tree::{self, SyncMode},
};

mod apache;
mod databases;
mod kyoto;
mod limits;
mod listen;
mod memcached;
mod ngx;
mod redis;
mod rewrite;
mod scripts;
mod tyrant;

pub(crate) use apache::ApacheConfig;
pub use databases::{Bytes, DatabaseConfig, Databases};
pub use kyoto::KyotoConfig;
pub use limits::{LIMITS, Limit, Limits};
pub use listen::{Address, AddressError, Listen, Mode};
pub use memcached::MemcachedConfig;
pub(crate) use ngx::NgxConfig;
pub use redis::{DebugCommand, RedisConfig};
pub(crate) use redis::{SLOW_ENTRIES_MAX, TRACKED_KEYS_MAX};
pub(crate) use rewrite::rewrite;
pub use scripts::ScriptConfig;
pub use tyrant::TyrantConfig;

use crate::{detect::ProtocolName, pool};

/// The default port: 53 stations, from 7 in the morning.
pub const PORT_DEFAULT: u16 = 7653;

/// Maximum number of worker threads; more of them would only add switching.
pub const WORKERS_MAX: usize = 256;

/// A server's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen.
    pub listen: Vec<Listen>,
    /// Host names that HTTP clients may use for the server, besides `localhost` and those that are
    /// listened on.
    pub hosts: Vec<String>,
    /// The directory of the store.
    pub directory: PathBuf,
    /// Where the backups that clients ask for go; `None`: they are refused.
    #[serde(with = "empty_is_none")]
    pub backups: Option<PathBuf>,
    /// The directory of the procedure files; `None`: no procedures.
    #[serde(with = "empty_is_none")]
    pub procedures: Option<PathBuf>,
    /// Whether the server refuses to start if any of the procedures cannot be loaded.
    pub strict: bool,
    /// Whether the procedures are reloaded whenever one of their files changes.
    pub watch: bool,
    /// Whether the writes of an `EVAL` script that fails are kept, as in Redis.
    pub keep_failed_scripts: bool,
    /// Threads that serve connections; 0: one for each core.
    pub workers: usize,
    /// Whether each worker is bound to a core of its own, if there are as many workers as cores.
    pub pin_workers: bool,
    /// The password that clients must give before anything else; `None`: no password.
    #[serde(with = "empty_is_none")]
    pub password: Option<Password>,
    /// The ACL file, in Redis' format; `None`: there is only the default user.
    #[serde(with = "empty_is_none")]
    pub acl_file: Option<PathBuf>,
    /// When a write is made durable.
    #[serde(with = "text")]
    pub sync: SyncMode,
    /// What is logged, as a `tracing` filter.
    pub log: String,
    /// Databases of engines other than `tree`.
    #[serde(skip_serializing_if = "Databases::is_empty")]
    pub databases: Databases,
    /// Procedure files besides those of the directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptConfig>,
    /// What memcached clients see.
    pub memcached: MemcachedConfig,
    /// What Kyoto Tycoon clients see.
    pub kyoto: KyotoConfig,
    /// What Tokyo Tyrant clients see.
    pub tyrant: TyrantConfig,
    /// What Redis clients see.
    pub redis: RedisConfig,
    /// What OpenResty handlers may use.
    pub ngx: NgxConfig,
    /// What scripts of Apache's mod_lua may use.
    pub mod_lua: ApacheConfig,
    /// The same for mod_mruby.
    pub mod_mruby: ApacheConfig,
    /// Sizes and times.
    pub limits: Limits,
    /// The file that this was read from, to which `CONFIG REWRITE` writes; `None`: there is none.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                Address::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port: PORT_DEFAULT }.into(),
            ],
            hosts: Vec::new(),
            directory: PathBuf::from("tokaido-data"),
            backups: None,
            procedures: None,
            strict: false,
            watch: false,
            keep_failed_scripts: false,
            workers: 0,
            pin_workers: true,
            password: None,
            acl_file: None,
            sync: SyncMode::Always,
            log: "info".to_owned(),
            databases: Databases::new(),
            scripts: Vec::new(),
            memcached: MemcachedConfig::default(),
            kyoto: KyotoConfig::default(),
            tyrant: TyrantConfig::default(),
            redis: RedisConfig::default(),
            ngx: NgxConfig::default(),
            mod_lua: ApacheConfig::default(),
            mod_mruby: ApacheConfig::default(),
            limits: Limits::default(),
            file: None,
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not a configuration. The message shows the place.
    #[error("{}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
    /// An option has a value that it cannot have.
    #[error("option {option}: {message}")]
    Value {
        /// The option's name.
        option: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
}

impl Config {
    /// Reads a file. Options that it does not name have their defaults.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Parse`]. Call [`validate`](Self::validate) once
    /// flags have been applied on top.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config = Self::parse(&text, path)?;
        config.file = std::path::absolute(path).ok();
        Ok(config)
    }

    /// Parses the text of a file; `path` is only named in errors.
    ///
    /// # Errors
    /// [`ConfigError::Parse`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })
    }

    /// Checks the options, and that they fit together.
    ///
    /// # Errors
    /// [`ConfigError::Value`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let value = |option, message: String| Err(ConfigError::Value { option, message });
        if self.listen.is_empty() {
            return value("listen", "name at least one address".to_owned());
        }
        self.listen.iter().try_for_each(Listen::validate)?;
        if let Some(host) =
            self.hosts.iter().find(|host| host.is_empty() || host.contains([':', '/', ' ']))
        {
            let message = format!("{host:?} is no name; write it without a port, or \"*\" for any");
            return value("hosts", message);
        }
        if self.workers > WORKERS_MAX {
            return value("workers", format!("at most {WORKERS_MAX}; 0 takes one for each core"));
        }
        if self.directory.as_os_str().is_empty() {
            return value("directory", "name a directory for the data".to_owned());
        }
        self.scripts.iter().try_for_each(ScriptConfig::validate)?;
        self.memcached.validate(&self.databases)?;
        self.kyoto.validate()?;
        self.tyrant.validate()?;
        self.redis.validate()?;
        self.mod_lua.validate("mod_lua.document_root")?;
        self.mod_mruby.validate("mod_mruby.document_root")?;
        self.limits.validate()?;
        let (given, min) = (self.limits.snapshots_max, self.snapshots_min());
        if given < min {
            let message =
                format!("{given} is too few; it takes {min}: two for each thread that reads");
            return value("limits.snapshots_max", message);
        }
        Ok(())
    }

    /// How the store is opened.
    #[must_use]
    pub fn store_options(&self) -> tree::Options {
        tree::Options { sync: self.sync, ..self.limits.store() }
    }

    /// What is mounted besides the store.
    #[must_use]
    pub fn mounts(&self) -> Vec<Mount> {
        let mount = |name: &String, database: &DatabaseConfig| database.mount(name, &self.limits);
        let mut mounts: Vec<_> =
            self.databases.iter().filter_map(|(name, database)| mount(name, database)).collect();
        // Where nobody can speak the protocol, its cache would only take up memory and a name.
        if self.listen.iter().any(|listen| listen.allowed().contains(&ProtocolName::Memcached)) {
            let own = self.memcached.cache(&self.databases);
            mounts.extend(own.and_then(|cache| mount(&self.memcached.database, &cache)));
        }
        mounts
    }

    /// The names of the databases that are tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        let tables = self.databases.iter();
        let tables = tables.filter(|(_, database)| **database == DatabaseConfig::Table {});
        tables.map(|(name, _)| name.as_str())
    }

    /// The options that define the database of that name.
    pub(crate) fn options_of_database(&self, name: &str) -> &'static str {
        let is_own = name == self.memcached.database && !self.databases.contains_key(name);
        if is_own { "memcached.database and memcached.bytes" } else { "[databases]" }
    }

    /// The options for all mounted databases.
    #[must_use]
    pub fn mount_options(&self) -> composite::Options {
        self.limits.mounting()
    }

    /// The number of worker threads on this machine.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX)),
            n => n,
        }
    }

    /// The number of threads for reads that may take long.
    #[must_use]
    pub fn pool_thread_count(&self) -> usize {
        let max = self.limits.pool_threads_max;
        self.worker_count().clamp(pool::THREADS_MIN.min(max), max)
    }

    /// Each worker, each pool thread and the writer has a view, and takes another one while it
    /// counts records.
    fn snapshots_min(&self) -> u32 {
        2 * (self.worker_count() + self.limits.pool_threads_max + 1) as u32
    }

    /// The limits of a procedure call.
    #[must_use]
    pub fn script_limits(&self) -> tokaido_script::Limits {
        self.limits.script()
    }

    /// Where the procedure files are.
    #[must_use]
    pub fn source_places(&self) -> tokaido_script::SourcePlaces {
        tokaido_script::SourcePlaces {
            directory: self.procedures.clone(),
            scripts: scripts::files(&self.scripts),
        }
    }

    /// The limits of the procedure files.
    #[must_use]
    pub fn source_limits(&self) -> tokaido_script::SourceLimits {
        self.limits.sources()
    }
}

/// A password, which no log or debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Password {
    fn from(password: String) -> Self {
        Self(password)
    }
}

impl From<&str> for Password {
    fn from(password: &str) -> Self {
        Self(password.to_owned())
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl AsRef<std::ffi::OsStr> for Password {
    fn as_ref(&self) -> &std::ffi::OsStr {
        self.0.as_ref()
    }
}

/// An option that is written as a word.
mod text {
    use std::{fmt::Display, str::FromStr};

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// TOML has no way to write "none", and an option that is left out cannot be shown in the example.
/// So the empty string stands for "none".
mod empty_is_none {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: AsRef<std::ffi::OsStr>, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = value.as_ref().map(|v| v.as_ref().to_string_lossy()).unwrap_or_default();
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, T: From<String>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok((!text.is_empty()).then(|| T::from(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../tokaido.toml");

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("tokaido.toml"))
    }

    #[test]
    fn the_example_names_every_option_with_its_default() {
        let example: toml::Table = toml::from_str(EXAMPLE).expect("the example parses");
        let defaults = toml::Table::try_from(Config::default()).expect("defaults serialise");
        assert_eq!(example, defaults);
        assert_eq!(parse(EXAMPLE).expect("the example is a configuration"), Config::default());
    }

    #[test]
    fn every_option_of_the_example_says_what_it_is_for() {
        let mut comment_above = false;
        for line in EXAMPLE.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(comment_above, "no comment above: {line}");
            }
            comment_above = line.starts_with('#');
        }
    }

    #[test]
    fn a_misspelt_option_is_named_with_its_line() {
        let error = parse("workers = 2\nlissten = []\n").expect_err("unknown option");
        insta::assert_snapshot!(error, @r"
        tokaido.toml: TOML parse error at line 2, column 1
          |
        2 | lissten = []
          | ^^^^^^^
        unknown field `lissten`, expected one of `listen`, `hosts`, `directory`, `backups`, `procedures`, `strict`, `watch`, `keep_failed_scripts`, `workers`, `pin_workers`, `password`, `acl_file`, `sync`, `log`, `databases`, `scripts`, `memcached`, `kyoto`, `tyrant`, `redis`, `ngx`, `mod_lua`, `mod_mruby`, `limits`
        ");
        let message = |text: &str| parse(text).expect_err(text).to_string();
        let no_port = message("[[listen]]\naddress = \"localhost\"");
        assert!(no_port.contains("\"localhost\" is no address; write HOST:PORT"), "{no_port}");
        let protocol = message("[[listen]]\naddress = \"a:1\"\nprotocols = [\"resp\"]");
        assert!(
            protocol.contains(
                "unknown variant `resp`, expected one of `redis`, `http`, `memcached`, `kyoto`, `tyrant`"
            ),
            "{protocol}"
        );
        assert!(parse("listen = [\"127.0.0.1:1\"]").is_err());
        assert!(parse("[limits]\nidle_ms = -1").is_err());
        assert!(parse("sync = \"sometimes\"").is_err());
    }

    /// Parses the options that the example shows in a comment from `line` on.
    fn shown_in_comment(line: &str) -> Config {
        let shown = EXAMPLE.lines().skip_while(|l| *l != line);
        let shown = shown.take_while(|line| line.starts_with('#'));
        let text: String = shown.map(|line| format!("{}\n", line[1..].trim_start())).collect();
        parse(&text).expect("it parses")
    }

    #[test]
    fn the_further_listeners_of_the_example_are_what_they_look_like() {
        let config = shown_in_comment("# [[listen]]");
        assert!(config.validate().is_ok());
        let redis = vec![ProtocolName::Redis];
        let port = Address::Tcp { host: "localhost".to_owned(), port: 6379 };
        let expected = [
            Listen { protocols: redis, ..Listen::from(port) },
            Listen {
                mode: Some(Mode(0o660)),
                ..Listen::from(Address::Unix("/run/tokaido.sock".into()))
            },
        ];
        assert_eq!(config.listen, expected);
    }

    /// The example defines no databases, so it shows them in comments.
    #[test]
    fn the_databases_of_the_example_are_what_they_look_like() {
        let config = shown_in_comment("# [databases.people]");
        let cache = DatabaseConfig::Cache { bytes: Bytes(256 << 20), shards: 0 };
        let cdb = DatabaseConfig::Cdb { file: PathBuf::from("files/companies.cdb") };
        let expected = [
            ("companies".to_owned(), cdb),
            ("people".to_owned(), DatabaseConfig::Table {}),
            ("sessions".to_owned(), cache),
        ];
        assert_eq!(config.databases, Databases::from(expected));
        // memcached clients have a database of their own besides these.
        assert_eq!(config.mounts().len(), 3);
    }

    #[test]
    fn the_scripts_of_the_example_are_what_they_look_like() {
        let config = shown_in_comment("# [[scripts]]");
        let expected = ScriptConfig {
            path: PathBuf::from("scripts/hits.lua"),
            dialect: Some("kyototycoon".to_owned()),
            settings: std::collections::BTreeMap::new(),
        };
        assert_eq!(config.scripts, [expected]);
    }

    #[test]
    fn a_mistake_in_a_database_is_named() {
        let message = |text: &str| parse(text).expect_err(text).to_string();
        let misspelt = message("[databases.a]\nengine = \"cache\"\nbytes = 1\nshard = 1");
        assert!(misspelt.contains("unknown field `shard`"), "{misspelt}");
        let unknown = message("[databases.a]\nengine = \"hash\"");
        assert!(unknown.contains("expected one of `tree`, `table`, `cache`, `cdb`"), "{unknown}");
        let unit = message("[databases.a]\nengine = \"cache\"\nbytes = \"1 MB\"");
        assert!(unit.contains("\"1 MB\" is no number of bytes"), "{unit}");
        assert!(message("[databases.a]\nengine = \"cache\"").contains("missing field `bytes`"));
        assert!(message("[databases.a]\nengine = \"cdb\"").contains("missing field `file`"));
        assert!(message("[databases.a]\nbytes = 1").contains("missing field `engine`"));
        let tree = parse("[databases.a]\nengine = \"tree\"").expect("an entry that says nothing");
        assert_eq!((tree.mounts().len(), tree.tables().count()), (1, 0));
        let table = parse("[databases.a]\nengine = \"table\"").expect("a table");
        assert_eq!((table.mounts().len(), table.tables().collect::<Vec<_>>()), (1, vec!["a"]));
    }

    #[test]
    fn a_cache_for_memcached_is_there_where_somebody_listens_for_it() {
        let mounted = |protocols: &str| {
            let text = format!("[[listen]]\naddress = \"127.0.0.1:1\"\nprotocols = {protocols}");
            parse(&text).expect("it parses").mounts().len()
        };
        assert_eq!(mounted("[\"redis\", \"http\"]"), 0);
        assert_eq!((mounted("[\"redis\", \"memcached\"]"), mounted("[]")), (1, 1));
    }

    #[test]
    fn every_thread_that_reads_must_get_its_view() {
        let config = parse("workers = 4\n[limits]\nsnapshots_max = 41").expect("it parses");
        let error = config.validate().expect_err("too few").to_string();
        assert!(
            error.starts_with("option limits.snapshots_max: 41 is too few; it takes 42"),
            "{error}"
        );
        let largest = Config { workers: WORKERS_MAX, ..Config::default() };
        assert!(largest.validate().is_ok(), "the default is enough for any machine");
    }

    #[test]
    fn a_password_is_never_shown() {
        let config = Config { password: Some("sesame".into()), ..Config::default() };
        assert!(!format!("{config:?}").contains("sesame"));
    }
}
