//! The servers that are measured: ours and those of others, as far as they are installed.

use std::{fs, path::Path};

use crate::{
    failure::Outcome,
    files,
    process::{self, Command},
    server::{self, Server},
};

/// Where Debian keeps the modules of nginx.
const NGINX_MODULES: &str = "/usr/lib/nginx/modules";

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tokaido,
    /// Redis that keeps nothing on disk.
    Redis,
    /// Redis that syncs every write, as Tokaido does.
    RedisSynced,
    Nginx,
}

impl Peer {
    /// How a table names it, with its sync mode.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tokaido => "Tokaido, every write synced",
            Self::Redis => "Redis, nothing on disk",
            Self::RedisSynced => "Redis, appendfsync always",
            Self::Nginx => "nginx with Lua, 1 worker",
        }
    }

    /// Whether it is there; ours always is.
    pub(super) fn is_installed(self) -> bool {
        match self {
            Self::Tokaido => true,
            Self::Redis | Self::RedisSynced => process::is_installed("redis-server"),
            Self::Nginx => {
                let lua = Path::new(NGINX_MODULES).join("ngx_http_lua_module.so");
                process::is_installed("nginx") && lua.exists()
            }
        }
    }

    /// Starts it in a directory of its own.
    pub(super) fn start(self, tokaido: &Path) -> Outcome<Server> {
        let port = server::free_port()?;
        match self {
            // No call is to be stopped, however busy the machine is.
            Self::Tokaido => Server::start(tokaido, "xtask/bench", &["--script-ms", "60000"]),
            Self::Redis => redis(port, &["--appendonly", "no"]),
            Self::RedisSynced => redis(port, &["--appendonly", "yes", "--appendfsync", "always"]),
            Self::Nginx => nginx(port),
        }
    }
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
    let template = files::read("xtask/bench/nginx.conf")?;
    Server::run(port, |directory| {
        let text = template
            .replace("MODULES", NGINX_MODULES)
            .replace("DIRECTORY", &directory.to_string_lossy())
            .replace("PORT", &port.to_string());
        let path = directory.join("nginx.conf");
        // A file that could not be written shows as nginx not starting.
        drop(fs::write(&path, text));
        Command::new("nginx", ["-p"]).argument(directory).argument("-c").argument(path)
    })
}
