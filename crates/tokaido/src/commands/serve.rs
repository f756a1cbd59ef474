//! `tokaido serve`: the server, configured by a file and by flags, which take precedence.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use tokaido_script::Dialect;
use tokaido_server::{
    AllowedPeer, Bytes, Config, ConfigError, DebugCommand, Listen, Password, ScriptConfig, Server,
    Signals, announce,
};
use tokaido_store::tree::SyncMode;

use self::limit_flags::LimitFlags;
use crate::{error::Error, logging};

mod limit_flags;

/// The configuration file that is read if it exists.
const CONFIG_PATH: &str = "tokaido.toml";

/// Start a server
///
/// Options come from the configuration file, and flags override them. Each option has a flag of the same
/// name; for options of the sections [memcached], [kyoto], [tyrant], [redis], [ngx], [mod_lua] and
/// [mod_mruby], the flag begins with the name of the section. The example file tokaido.toml describes each
/// option. The flags of its section [limits] are not shown by -h.
///
/// The server answers every protocol on the same port. It stops on SIGINT and SIGTERM, once it has
/// answered and stored the requests it has accepted.
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = help_tail())]
pub(crate) struct ServeArgs {
    /// Configuration file [default: tokaido.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on: HOST:PORT, where port 0 chooses a free one, or unix:PATH; may be given
    /// several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Listen>,
    /// Name by which HTTP clients may address the server, in addition to localhost, addresses and the
    /// names it listens on; * allows any name; may be given several times
    #[arg(long, value_name = "NAME")]
    hosts: Vec<String>,
    /// Directory of the store; created if it does not exist
    #[arg(long = "dir", visible_alias = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Directory for backups that clients request; without it, they are refused
    #[arg(long, value_name = "DIR")]
    backups: Option<PathBuf>,
    /// Directory of the procedure files
    #[arg(long, value_name = "DIR")]
    procedures: Option<PathBuf>,
    /// Procedure file, in addition to those in the directory; may be given several times
    #[arg(long, value_name = "FILE")]
    script: Vec<PathBuf>,
    /// Kyoto Tycoon script, whose functions play_script calls; may be given several times
    #[arg(long, value_name = "FILE")]
    kyototycoon: Vec<PathBuf>,
    /// Tokyo Tyrant script, whose functions ext calls; may be given several times
    #[arg(long, value_name = "FILE")]
    tokyotyrant: Vec<PathBuf>,
    /// OpenResty handler, after the path that it answers unless the file declares that, as in
    /// /hello=hello.lua; a FILE that begins with / and contains = needs ROUTE; may be given several times
    #[arg(long, value_name = "[ROUTE=]FILE")]
    ngx: Vec<String>,
    /// Apache mod_lua handler, after the path that it answers unless that is /NAME.lua or the file declares it;
    /// a FILE that begins with / and contains = needs ROUTE; may be given several times
    #[arg(long, value_name = "[ROUTE=]FILE")]
    mod_lua: Vec<String>,
    /// Apache mod_mruby script, after the path that it answers unless that is /NAME.rb or the file declares it;
    /// a FILE that begins with / and contains = needs ROUTE; may be given several times
    #[arg(long, value_name = "[ROUTE=]FILE")]
    mod_mruby: Vec<String>,
    /// Refuse to start if any of the procedures cannot be loaded
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    strict: Option<bool>,
    /// Reload the procedures whenever one of their files changes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    watch: Option<bool>,
    /// Keep what an EVAL script wrote before it failed, as Redis does, instead of rolling it back
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    keep_failed_scripts: Option<bool>,
    /// Number of threads that serve connections; 0: one for each core
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Bind each worker to a core of its own, if there are as many workers as cores
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pin_workers: Option<bool>,
    /// Password that clients must give before anything else
    #[arg(long, value_name = "PASSWORD", env = "TOKAIDO_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// File of users, in Redis' format
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// When a write is made durable: always (before it is answered), interval:1s, or os
    #[arg(long, value_name = "MODE")]
    sync: Option<SyncMode>,
    /// What is logged: error, warn, info, debug, trace, or a filter such as tokaido_server=debug
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Database of memcached clients: a cache, unless the configuration says otherwise
    #[arg(long, value_name = "NAME")]
    memcached_database: Option<String>,
    /// Size of that cache, such as 64MiB
    #[arg(long, value_name = "SIZE")]
    memcached_bytes: Option<Bytes>,
    /// Databases that Kyoto Tycoon clients can address by number, from 0 on
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kyoto_databases: Option<Vec<String>>,
    /// Database of Tokyo Tyrant clients
    #[arg(long, value_name = "NAME")]
    tyrant_database: Option<String>,
    /// Commands and groups of commands that Tokyo Tyrant clients may not run, such as allwrite
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tyrant_mask: Option<Vec<String>>,
    /// Commands and groups of commands to remove from --tyrant-mask again
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tyrant_unmask: Option<Vec<String>>,
    /// Functions that the server calls periodically, with the interval in seconds, such as sweep:60
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tyrant_periodic: Option<Vec<String>>,
    /// Keyspace events to publish, in Redis' letters, such as KEA
    #[arg(long, value_name = "LETTERS")]
    redis_notify_keyspace_events: Option<String>,
    /// Log commands that take at least this many microseconds in the slow log; -1: none
    #[arg(long, value_name = "US", allow_hyphen_values = true)]
    redis_slowlog_slower_than_us: Option<i64>,
    /// Number of entries that the slow log keeps
    #[arg(long, value_name = "N")]
    redis_slowlog_entries_max: Option<usize>,
    /// Record events that take at least this many milliseconds for LATENCY; 0: none
    #[arg(long, value_name = "MS")]
    redis_latency_threshold_ms: Option<u64>,
    /// Number of keys whose readers the server remembers, for CLIENT TRACKING
    #[arg(long, value_name = "N")]
    redis_tracked_keys_max: Option<usize>,
    /// Who may call DEBUG: no (nobody), local (clients on the same machine) or yes (everybody)
    #[arg(long, value_name = "WHO")]
    redis_debug_command: Option<DebugCommand>,
    /// Peer that sockets of OpenResty handlers may connect to: HOST:PORT, either of which may be *, or unix:PATH; may be
    /// given several times
    #[arg(long, value_name = "PEER")]
    ngx_socket_allow: Vec<AllowedPeer>,
    /// Directory whose files mod_lua handlers may read and send; without it, they may not
    #[arg(long, value_name = "DIR")]
    mod_lua_document_root: Option<PathBuf>,
    /// Directory whose files mod_mruby scripts may look at; without it, they may not
    #[arg(long, value_name = "DIR")]
    mod_mruby_document_root: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags,
}

const EXAMPLES: &str = "\
Examples:
  tokaido serve --dir data --procedures procedures
  tokaido serve --dir data --kyototycoon procedures.lua
  TOKAIDO_PASSWORD=… tokaido serve --listen 0.0.0.0:7653

Exit status: 0 after a signal, 1 on failure, 2 for a wrong command line or configuration, 3 if
the store cannot be opened.";

/// The end of the help: the default options, taken from where they are set.
fn help_tail() -> String {
    let defaults = toml::to_string(&Config::default()).unwrap_or_default();
    // The flags of limits show their own defaults.
    let options = defaults.split("\n[limits]").next().unwrap_or_default();
    let indent = |line: &str| if line.is_empty() { "\n".into() } else { format!("  {line}\n") };
    let lines: String = options.lines().map(indent).collect();
    format!(
        "Default values of the options, as they would appear in the configuration file:\n{lines}\n{EXAMPLES}"
    )
}

/// Overrides an option by a flag if the flag was given.
fn put<T>(option: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *option = value;
    }
}

impl ServeArgs {
    fn configuration(self) -> Result<Config, Error> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None if Path::new(CONFIG_PATH).exists() => Config::read(Path::new(CONFIG_PATH))?,
            None => Config::default(),
        };
        self.put_over(&mut config)?;
        config.validate()?;
        Ok(config)
    }

    fn put_over(self, config: &mut Config) -> Result<(), ConfigError> {
        if !self.listen.is_empty() {
            config.listen = self.listen;
        }
        if !self.hosts.is_empty() {
            config.hosts = self.hosts;
        }
        put(&mut config.directory, self.directory);
        put(&mut config.backups, self.backups.map(Some));
        put(&mut config.procedures, self.procedures.map(Some));
        let script = |path, dialect: Option<&Dialect>| ScriptConfig {
            path,
            dialect: dialect.map(|dialect| dialect.name.to_owned()),
            settings: BTreeMap::new(),
        };
        let own = self.script.into_iter().map(|path| script(path, None));
        let kyoto = self.kyototycoon.into_iter();
        let kyoto = kyoto.map(|path| script(path, Some(&Dialect::KYOTO_TYCOON)));
        let tyrant = self.tokyotyrant.into_iter();
        let tyrant = tyrant.map(|path| script(path, Some(&Dialect::TOKYO_TYRANT)));
        let routed = |given: String, dialect| {
            let (route, path) = match given.split_once('=') {
                Some((route, path)) if route.starts_with('/') => (Some(route), path),
                _ => (None, &*given),
            };
            let settings = route.map(|route| ("route".to_owned(), route.to_owned()));
            let settings = settings.into_iter().collect();
            ScriptConfig { settings, ..script(path.into(), Some(dialect)) }
        };
        let ngx = self.ngx.into_iter().map(|given| routed(given, &Dialect::OPENRESTY));
        let mod_lua = self.mod_lua.into_iter().map(|given| routed(given, &Dialect::MOD_LUA));
        let mod_mruby = self.mod_mruby.into_iter();
        let mod_mruby = mod_mruby.map(|given| routed(given, &Dialect::MOD_MRUBY));
        let lua = own.chain(kyoto).chain(tyrant).chain(ngx).chain(mod_lua);
        let scripts: Vec<_> = lua.chain(mod_mruby).collect();
        if !scripts.is_empty() {
            config.scripts = scripts;
        }
        put(&mut config.strict, self.strict);
        put(&mut config.watch, self.watch);
        put(&mut config.keep_failed_scripts, self.keep_failed_scripts);
        put(&mut config.workers, self.workers);
        put(&mut config.pin_workers, self.pin_workers);
        // As in the file, an empty password means none, and must not count as one.
        let password = self.password.map(|p| (!p.is_empty()).then(|| Password::from(p)));
        put(&mut config.password, password);
        put(&mut config.acl_file, self.acl_file.map(Some));
        put(&mut config.sync, self.sync);
        put(&mut config.log, self.log);
        put(&mut config.memcached.database, self.memcached_database);
        put(&mut config.memcached.bytes, self.memcached_bytes);
        put(&mut config.kyoto.databases, self.kyoto_databases);
        put(&mut config.tyrant.database, self.tyrant_database);
        put(&mut config.tyrant.mask, self.tyrant_mask);
        put(&mut config.tyrant.unmask, self.tyrant_unmask);
        put(&mut config.tyrant.periodic, self.tyrant_periodic);
        put(&mut config.redis.notify_keyspace_events, self.redis_notify_keyspace_events);
        put(&mut config.redis.slowlog_slower_than_us, self.redis_slowlog_slower_than_us);
        put(&mut config.redis.slowlog_entries_max, self.redis_slowlog_entries_max);
        put(&mut config.redis.latency_threshold_ms, self.redis_latency_threshold_ms);
        put(&mut config.redis.tracked_keys_max, self.redis_tracked_keys_max);
        put(&mut config.redis.debug_command, self.redis_debug_command);
        if !self.ngx_socket_allow.is_empty() {
            config.ngx.socket_allow = self.ngx_socket_allow;
        }
        put(&mut config.mod_lua.document_root, self.mod_lua_document_root.map(Some));
        put(&mut config.mod_mruby.document_root, self.mod_mruby_document_root.map(Some));
        self.limits.put_over(&mut config.limits)
    }
}

pub(crate) fn serve(args: ServeArgs) -> Result<ExitCode, Error> {
    let config = args.configuration()?;
    logging::start(&config.log)?;
    let directory = config.directory.clone();
    let signals = Signals::catch().map_err(Error::signal)?;
    let server = Server::start(config)?;
    if let Err(error) = announce(&start_text(&server, &directory)) {
        tracing::warn!(%error, "cannot write to standard output what the server starts with");
    }
    server.run_until_signal(signals).map_err(Error::signal)?;
    Ok(ExitCode::SUCCESS)
}

/// What the server prints when it starts.
fn start_text(server: &Server, directory: &Path) -> String {
    let procedures = server.procedures();
    let mut text = format!("store       {}\n", directory.display());
    text += &format!("procedures  {}\n", procedures.len());
    for procedure in procedures {
        text += &format!("            {}\n", procedure.name);
    }
    for error in server.load_errors() {
        text += &format!("not loaded  {error}\n");
    }
    // Last, so that whoever waits for it has seen the rest.
    for address in server.addresses() {
        text += &format!("listening   {address}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[derive(clap::Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: ServeArgs,
    }

    /// The names of all options; those of `[limits]` without the section.
    fn options() -> Vec<(String, toml::Value)> {
        let table = toml::Table::try_from(Config::default()).unwrap();
        let flatten = |(name, value): (String, toml::Value)| match value {
            toml::Value::Table(section) if name == "limits" => section.into_iter().collect(),
            toml::Value::Table(section) => section
                .into_iter()
                .map(|(option, value)| (format!("{name}_{option}"), value))
                .collect(),
            value => vec![(name, value)],
        };
        table.into_iter().flat_map(flatten).collect()
    }

    #[test]
    fn every_option_has_its_flag() {
        let command = Wrapper::command();
        for (option, _) in options() {
            let flag = option.replace('_', "-");
            let found = command.get_arguments().any(|argument| {
                let names = argument.get_long_and_visible_aliases().unwrap_or_default();
                names.contains(&flag.as_str())
            });
            assert!(found, "option {option} has no flag --{flag}");
        }
    }

    #[test]
    fn a_handler_has_a_route_before_it_if_that_begins_with_a_slash() {
        for (given, path, route) in [
            ("/hello=a=b/h.lua", "a=b/h.lua", Some("/hello")),
            ("./a=b/h.lua", "./a=b/h.lua", None),
            ("h.lua", "h.lua", None),
        ] {
            let flag = format!("--ngx={given}");
            let args = <Wrapper as clap::Parser>::parse_from(["serve", &flag]).args;
            let mut config = Config::default();
            args.put_over(&mut config).unwrap();
            assert_eq!(config.scripts[0].path, PathBuf::from(path));
            assert_eq!(config.scripts[0].settings.get("route").map(String::as_str), route);
        }
    }

    #[test]
    fn every_flag_goes_over_its_option() {
        for (option, default) in options() {
            let given = match (option.as_str(), &default) {
                ("listen", _) => "127.0.0.1:1".to_owned(),
                ("sync", _) => "os".to_owned(),
                ("redis_debug_command", _) => "local".to_owned(),
                ("ngx_socket_allow", _) => "localhost:7654".to_owned(),
                ("memcached_bytes", _) => "32 MiB".to_owned(),
                (_, toml::Value::Boolean(value)) => (!value).to_string(),
                // Some are at their maximum already.
                (_, toml::Value::Integer(0)) => "1".to_owned(),
                (_, toml::Value::Integer(number)) => (number - 1).to_string(),
                _ => "something".to_owned(),
            };
            let flag = format!("--{}={given}", option.replace('_', "-"));
            let args = <Wrapper as clap::Parser>::parse_from(["serve", &flag]).args;
            let mut config = Config::default();
            args.put_over(&mut config).unwrap();
            assert_ne!(config, Config::default(), "{flag}");
            let shown = toml::to_string(&config).unwrap();
            assert!(shown.contains(&given), "{flag} gives {shown}");
        }
    }
}
