//! The systems that Tokaido is measured beside, and whether they are there.

use std::path::{Path, PathBuf};

use super::program;

/// Where Debian keeps the modules of nginx and of Apache.
pub(super) const NGINX_MODULES: &str = "/usr/lib/nginx/modules";
pub(super) const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// A system that Tokaido is measured beside.
#[derive(Debug)]
pub struct Peer {
    /// Its name, on the command line and in reports.
    pub name: &'static str,
    /// The packages of Debian that bring it; empty if there is none.
    pub packages: &'static str,
    /// Names that its program has.
    programs: &'static [&'static str],
    /// What makes the program print its version.
    version: &'static [&'static str],
    /// A module that it must have.
    module: Option<&'static str>,
}

/// Where a peer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Its program.
    pub path: PathBuf,
    /// The version that it says it is.
    pub version: String,
}

const fn program(
    name: &'static str,
    packages: &'static str,
    programs: &'static [&'static str],
    version: &'static [&'static str],
) -> Peer {
    Peer { name, packages, programs, version, module: None }
}

/// All of them.
pub const PEERS: &[Peer] = &[
    program("redis", "redis-server", &["redis-server"], &["--version"]),
    program("valkey", "", &["valkey-server"], &["--version"]),
    program("keydb", "", &["keydb-server"], &["--version"]),
    program("dragonfly", "", &["dragonfly", "dragonfly-x86_64"], &["--version"]),
    program("memcached", "memcached", &["memcached"], &["--version"]),
    Peer {
        module: Some("/usr/lib/nginx/modules/ngx_http_lua_module.so"),
        ..program("nginx", "nginx libnginx-mod-http-lua lua-cjson", &["nginx"], &["-v"])
    },
    Peer {
        module: Some("/usr/lib/apache2/modules/mod_lua.so"),
        ..program("apache", "apache2", &["apache2"], &["-v"])
    },
    program("tarantool", "tarantool", &["tarantool"], &["--version"]),
    program("lua5.1", "lua5.1", &["lua5.1"], &["-v"]),
    program("luajit", "luajit", &["luajit"], &["-v"]),
    program("python3", "python3", &["python3"], &["--version"]),
    program("ruby", "ruby", &["ruby"], &["--version"]),
    program("mruby", "mruby", &["mruby"], &["--version"]),
];

impl Peer {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
    }

    /// Where it is, if it is there.
    #[must_use]
    pub fn find(&self) -> Option<Presence> {
        let path = program::find(self.programs)?;
        if self.module.is_some_and(|module| !Path::new(module).exists()) {
            return None;
        }
        let version = program::version(&path, self.version);
        Some(Presence { path, version: version.unwrap_or_else(|| "unknown".to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
        assert!(Peer::named("redis").is_some() && Peer::named("Redis").is_none());
    }

    #[test]
    fn a_program_without_its_module_is_not_there() {
        let shell = program("shell", "", &["sh"], &["--version"]);
        assert!(shell.find().is_some());
        assert_eq!(Peer { module: Some("/no/such/module.so"), ..shell }.find(), None);
    }
}
