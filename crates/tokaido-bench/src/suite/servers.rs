//! How each server is started: with the settings that its manual recommends for the load, stated in its name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    contest::Name,
    error::SuiteError,
    peer::{APACHE_MODULES, NGINX_MODULES},
    plan::Context,
    run::Problem,
    scripts,
    server::{Cores, Server},
};

/// Maximum size of memcached and of our cache, in MiB: all records of a load fit.
const CACHE_MIB: u64 = 1024;

/// Maximum number of connections of a server.
const CONNECTIONS_MAX: &str = "20000";

/// When a write is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Whenever the system decides, or never.
    None,
    /// Up to a second after the answer.
    Interval,
    /// Before the answer.
    Always,
}

impl Durability {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Interval, Self::Always];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "no sync",
            Self::Interval => "a sync each second",
            Self::Always => "every write synced",
        }
    }
}

/// A participant and its server, or why there is none.
pub(super) struct Started {
    pub(super) name: Name,
    pub(super) server: Result<Server, Problem>,
}

impl Started {
    fn of(name: Name, server: Result<Server, SuiteError>) -> Result<Self, SuiteError> {
        match server {
            Err(SuiteError::Stopped) => Err(SuiteError::Stopped),
            Err(error) => Ok(Self { name, server: Err(Problem::Failed(error.to_string())) }),
            Ok(server) => Ok(Self { name, server: Ok(server) }),
        }
    }

    /// A peer's server, if the peer is installed and is to take part.
    fn peer(
        context: &Context<'_>,
        peer: &str,
        name: Name,
        cores: Cores,
        command: impl FnOnce(Command, &Path, u16) -> Result<Command, SuiteError>,
    ) -> Result<Option<Self>, SuiteError> {
        let program = match context.find(peer) {
            None => return Ok(None),
            Some(Err(problem)) => return Ok(Some(Self { name, server: Err(problem) })),
            Some(Ok(presence)) => presence.path.clone(),
        };
        let server = Server::start(context, cores, |directory, port| {
            command(Command::new(&program), directory, port)
        });
        Self::of(name, server).map(Some)
    }

    /// See [`Name::beside`].
    pub(super) fn beside(self, ours: usize) -> Self {
        Self { name: self.name.beside(ours), ..self }
    }

    pub(super) fn port(&self) -> Result<u16, Problem> {
        self.server.as_ref().map(Server::port).map_err(Clone::clone)
    }
}

/// Ours, with this many workers, the suite's scripts as procedures, and further options.
pub(super) fn tokaido(
    context: &Context<'_>,
    cores: Cores,
    workers: usize,
    settings: &str,
    options: &[&str],
) -> Result<Started, SuiteError> {
    let server = Server::start(context, cores, |directory, port| {
        let procedures = directory.join("procedures");
        scripts::write_procedures(&procedures)?;
        let mut command = serve(context, workers, directory, port);
        // No call must be interrupted, however slow the machine is.
        command.args(["--script-ms", "600000"]);
        command.arg("--procedures").arg(procedures).args(options);
        Ok(command)
    });
    Started::of(Name::ours(settings), server)
}

fn serve(context: &Context<'_>, workers: usize, directory: &Path, port: u16) -> Command {
    let mut command = Command::new(&context.plan.tokaido);
    command.arg("serve").args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--workers", &workers.to_string(), "--connections-max", CONNECTIONS_MAX]);
    command.arg("--dir").arg(directory.join("data"));
    command
}

/// Ours with this durability, over the Redis protocol.
pub(super) fn tokaido_of(
    context: &Context<'_>,
    durability: Durability,
) -> Result<Started, SuiteError> {
    let sync = match durability {
        Durability::None => "os",
        Durability::Interval => "interval:1s",
        Durability::Always => "always",
    };
    let settings = format!("1 worker, {}", durability.name());
    tokaido(context, Cores::All, 1, &settings, &["--sync", sync])
}

/// Ours as a growing store: no procedures, a sync every second, and this many MiB of writes between two checkpoints.
pub(super) fn tokaido_growing(
    context: &Context<'_>,
    memtable_mib: u64,
) -> Result<Started, SuiteError> {
    let settings = format!("1 worker, {}", Durability::Interval.name());
    let memtable = (memtable_mib << 20).to_string();
    let server = Server::start(context, Cores::All, |directory, port| {
        let mut command = serve(context, 1, directory, port);
        command.args(["--sync", "interval:1s", "--memtable-bytes", &memtable]);
        Ok(command)
    });
    Started::of(Name::ours(&settings), server)
}

/// Ours with a cache for memcached clients, in which all records of a load fit.
pub(super) fn tokaido_cache(context: &Context<'_>) -> Result<Started, SuiteError> {
    tokaido_cache_of(context, CACHE_MIB)
}

/// The same with this many MiB.
pub(super) fn tokaido_cache_of(context: &Context<'_>, mib: u64) -> Result<Started, SuiteError> {
    let settings = "1 worker, a cache, memcached's protocol";
    let bytes = format!("{mib}MiB");
    tokaido(context, Cores::All, 1, settings, &["--memcached-bytes", &bytes])
}

/// Redis, or another server with the same options.
pub(super) fn redis(
    context: &Context<'_>,
    peer: &str,
    durability: Durability,
) -> Result<Option<Started>, SuiteError> {
    let policy: &[&str] = match durability {
        Durability::None => &["--appendonly", "no"],
        Durability::Interval => &["--appendonly", "yes", "--appendfsync", "everysec"],
        Durability::Always => &["--appendonly", "yes", "--appendfsync", "always"],
    };
    let settings = match durability {
        Durability::None => "nothing on disk",
        Durability::Interval => "appendfsync everysec",
        Durability::Always => "appendfsync always",
    };
    redis_with(context, peer, Name::peer(peer, settings), policy)
}

/// Redis as a cache of this many MiB, with an eviction policy.
pub(super) fn redis_cache(
    context: &Context<'_>,
    mib: u64,
    policy: &str,
) -> Result<Option<Started>, SuiteError> {
    let name = Name::peer("redis", &format!("maxmemory-policy {policy}"));
    let limit = format!("{mib}mb");
    let options = ["--appendonly", "no", "--maxmemory", &limit, "--maxmemory-policy", policy];
    redis_with(context, "redis", name, &options)
}

fn redis_with(
    context: &Context<'_>,
    peer: &str,
    name: Name,
    options: &[&str],
) -> Result<Option<Started>, SuiteError> {
    Started::peer(context, peer, name, Cores::All, |mut command, directory, port| {
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--maxclients", CONNECTIONS_MAX]);
        command.args(options).arg("--dir").arg(directory);
        Ok(command)
    })
}

/// Dragonfly, which has no write log.
pub(super) fn dragonfly(context: &Context<'_>) -> Result<Option<Started>, SuiteError> {
    let name = Name::peer("dragonfly", "1 thread, nothing on disk");
    Started::peer(context, "dragonfly", name, Cores::All, |mut command, directory, port| {
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--proactor_threads", "1", "--dbfilename", ""]).arg("--dir").arg(directory);
        Ok(command)
    })
}

/// memcached, in which all records of a load fit.
pub(super) fn memcached(context: &Context<'_>) -> Result<Option<Started>, SuiteError> {
    memcached_of(context, CACHE_MIB)
}

/// The same with this many MiB.
pub(super) fn memcached_of(context: &Context<'_>, mib: u64) -> Result<Option<Started>, SuiteError> {
    let name = Name::peer("memcached", "-t 1");
    Started::peer(context, "memcached", name, Cores::All, |mut command, _, port| {
        // It runs as root only if told to.
        command.args(["-u", "root", "-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"]);
        command.args(["-t", "1", "-m", &mib.to_string(), "-c", CONNECTIONS_MAX]);
        Ok(command)
    })
}

/// nginx with its Lua module; the name says what is requested.
pub(super) fn nginx(
    context: &Context<'_>,
    cores: Cores,
    workers: usize,
    name: Name,
) -> Result<Option<Started>, SuiteError> {
    Started::peer(context, "nginx", name, cores, |mut command, directory, port| {
        let workers = workers.to_string();
        let path = configure(directory, "nginx.conf", NGINX_MODULES, port, &workers)?;
        command.arg("-p").arg(directory).arg("-c").arg(path);
        Ok(command)
    })
}

/// Apache with mod_lua: one process, whose threads use any core that they may.
pub(super) fn apache(
    context: &Context<'_>,
    cores: Cores,
    name: Name,
) -> Result<Option<Started>, SuiteError> {
    Started::peer(context, "apache", name, cores, |mut command, directory, port| {
        let path = configure(directory, "apache.conf", APACHE_MODULES, port, "1")?;
        // A single process, which is the one that is started.
        command.args(["-X", "-f"]).arg(path);
        Ok(command)
    })
}

/// Fills in a configuration and returns its path.
fn configure(
    directory: &Path,
    name: &str,
    modules: &str,
    port: u16,
    workers: &str,
) -> Result<PathBuf, SuiteError> {
    scripts::write(directory)?;
    let text = scripts::text(name)
        .replace("MODULES", modules)
        .replace("DIRECTORY", &directory.to_string_lossy())
        .replace("SCRIPTS", &directory.to_string_lossy())
        .replace("WORKERS", workers)
        .replace("PORT", &port.to_string());
    let path = directory.join(name);
    fs::write(&path, text).map_err(SuiteError::system("cannot write a configuration"))?;
    Ok(path)
}
