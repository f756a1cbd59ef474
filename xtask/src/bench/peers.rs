//! The servers that are measured: ours and those of others, as far as they are installed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::records::Wire;
use crate::{
    failure::Outcome,
    files,
    process::{self, Command},
    server::{self, Server},
};

/// What the servers run that run Lua, from the root.
const SCRIPTS: &str = "crates/tokaido-bench/scripts/procedures";

/// Where Debian keeps the modules of nginx.
const NGINX_MODULES: &str = "/usr/lib/nginx/modules";

/// Apache's program, and where Debian keeps its modules.
pub(super) const APACHE: &str = "/usr/sbin/apache2";
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// What a cache is given, in MiB: all keys stay.
const CACHE_MIB: u32 = 1024;

/// Options of ours beside peers that have two threads, with room for a crowd of connections.
const OF_TWO_WORKERS: [&str; 4] = ["--workers", "2", "--connections-max", "20000"];

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tokaido,
    /// The same, asked for what a handler of Lua answers.
    TokaidoOfLua,
    /// Ours with a cache for memcached's clients, and as many threads as memcached is given.
    TokaidoCache,
    Memcached,
    /// Ours with two workers, and the protocol that its load speaks.
    TokaidoByRedis,
    TokaidoByKyoto,
    TokaidoByTyrant,
    /// Ours with two workers, and what is on disk up to a second old.
    TokaidoInterval,
    /// As those by memcached's and by Redis' protocol, with a crowd of connections that do nothing.
    TokaidoCacheCrowded,
    TokaidoByRedisCrowded,
    /// Redis that keeps nothing on disk.
    Redis,
    /// Redis that syncs every write, as Tokaido does.
    RedisSynced,
    /// Redis that syncs once a second.
    RedisEverySecond,
    Nginx,
    Apache,
}

impl Peer {
    /// How a table names it, with its sync mode.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tokaido => "Tokaido, 1 worker, every write synced",
            Self::TokaidoOfLua => "Tokaido, 1 worker, a Lua route",
            Self::TokaidoCache => "Tokaido, 2 workers, a cache",
            Self::Memcached => "memcached -t 2",
            Self::TokaidoByRedis => "Tokaido, 2 workers, Redis protocol",
            Self::TokaidoByKyoto => "Tokaido, 2 workers, Kyoto Tycoon's protocol",
            Self::TokaidoByTyrant => "Tokaido, 2 workers, Tokyo Tyrant's protocol",
            Self::TokaidoInterval => "Tokaido, 2 workers, a sync each second",
            Self::TokaidoCacheCrowded => "Tokaido, 10,000 idle connections beside",
            Self::TokaidoByRedisCrowded => "Tokaido, 10,000 idle connections beside",
            Self::Redis => "Redis, nothing on disk",
            Self::RedisSynced => "Redis, appendfsync always",
            Self::RedisEverySecond => "Redis, appendfsync everysec",
            Self::Nginx => "nginx with Lua, 1 worker",
            Self::Apache => "Apache with mod_lua, 1 process",
        }
    }

    /// Whether it is there; ours always is.
    pub(super) fn is_installed(self) -> bool {
        match self {
            Self::Tokaido
            | Self::TokaidoOfLua
            | Self::TokaidoCache
            | Self::TokaidoByRedis
            | Self::TokaidoByKyoto
            | Self::TokaidoByTyrant
            | Self::TokaidoInterval
            | Self::TokaidoCacheCrowded
            | Self::TokaidoByRedisCrowded => true,
            Self::Memcached => process::is_installed("memcached"),
            Self::Redis | Self::RedisSynced | Self::RedisEverySecond => {
                process::is_installed("redis-server")
            }
            Self::Nginx => {
                let lua = Path::new(NGINX_MODULES).join("ngx_http_lua_module.so");
                process::is_installed("nginx") && lua.exists()
            }
            Self::Apache => Path::new(APACHE_MODULES).join("mod_lua.so").exists(),
        }
    }

    /// The protocol of the crowd that does nothing, if it has one.
    pub(super) fn crowd(self) -> Option<Wire> {
        match self {
            Self::TokaidoCacheCrowded => Some(Wire::Memcached),
            Self::TokaidoByRedisCrowded => Some(Wire::Redis),
            _ => None,
        }
    }

    /// Starts it in a directory of its own.
    pub(super) fn start(self, tokaido: &Path) -> Outcome<Server> {
        let port = server::free_port()?;
        match self {
            // One worker, as each peer has one: the client needs the other core of a small machine.
            // No call is to be stopped, however busy the machine is.
            Self::Tokaido | Self::TokaidoOfLua => {
                let options = ["--workers", "1", "--script-ms", "60000"];
                Server::start(tokaido, SCRIPTS, &options)
            }
            Self::TokaidoCache | Self::TokaidoCacheCrowded => {
                let bytes = format!("{CACHE_MIB}MiB");
                let options = ["--memcached-bytes", &bytes];
                Server::start(tokaido, SCRIPTS, &[&OF_TWO_WORKERS[..], &options].concat())
            }
            Self::TokaidoByRedis
            | Self::TokaidoByKyoto
            | Self::TokaidoByTyrant
            | Self::TokaidoByRedisCrowded => Server::start(tokaido, SCRIPTS, &OF_TWO_WORKERS),
            Self::TokaidoInterval => {
                let options = ["--sync", "interval:1s"];
                Server::start(tokaido, SCRIPTS, &[&OF_TWO_WORKERS[..], &options].concat())
            }
            Self::Memcached => memcached(port),
            Self::Redis => redis(port, &["--appendonly", "no"]),
            Self::RedisSynced => redis(port, &["--appendonly", "yes", "--appendfsync", "always"]),
            Self::RedisEverySecond => {
                redis(port, &["--appendonly", "yes", "--appendfsync", "everysec"])
            }
            Self::Nginx => nginx(port),
            Self::Apache => apache(port),
        }
    }
}

fn memcached(port: u16) -> Outcome<Server> {
    let (port_text, mib) = (port.to_string(), CACHE_MIB.to_string());
    // It does not run as root unless it is told to.
    let options = ["-u", "root", "-l", "127.0.0.1", "-U", "0", "-t", "2", "-c", "20000"];
    Server::run(port, |_| {
        Command::new("memcached", options).arguments(&["-p", &port_text, "-m", &mib])
    })
}

fn redis(port: u16, persistence: &[&str]) -> Outcome<Server> {
    let text = port.to_string();
    Server::run(port, |directory| {
        Command::new("redis-server", ["--port", &text, "--bind", "127.0.0.1", "--save", ""])
            .arguments(persistence)
            .argument("--dir")
            .argument(directory)
    })
}

fn nginx(port: u16) -> Outcome<Server> {
    let template = files::read("crates/tokaido-bench/scripts/nginx.conf")?;
    Server::run(port, |directory| {
        let path = configure(directory, "nginx.conf", &template, NGINX_MODULES, port);
        Command::new("nginx", ["-p"]).argument(directory).argument("-c").argument(path)
    })
}

fn apache(port: u16) -> Outcome<Server> {
    let template = files::read("crates/tokaido-bench/scripts/apache.conf")?;
    Server::run(port, |directory| {
        let path = configure(directory, "apache.conf", &template, APACHE_MODULES, port);
        // One process, which is the one that is started.
        Command::new(APACHE, ["-X", "-f"]).argument(path)
    })
}

/// Fills in a configuration and gives its path.
fn configure(directory: &Path, name: &str, template: &str, modules: &str, port: u16) -> PathBuf {
    let text = template
        .replace("MODULES", modules)
        // The worker is the process that is started, so that its processor time is all there is.
        .replace("WORKERS;", "1; master_process off;")
        .replace("DIRECTORY", &directory.to_string_lossy())
        .replace("SCRIPTS", &files::root().join(SCRIPTS).to_string_lossy())
        .replace("PORT", &port.to_string());
    let path = directory.join(name);
    // A file that could not be written shows as a server that does not start.
    drop(fs::write(&path, text));
    path
}
