//! The systems that Tokaido is compared with, and whether they are installed.

use std::path::{Path, PathBuf};

use super::{
    library::{self, ClientFinder, Finder},
    program,
};

/// Where Debian keeps the modules of nginx and Apache.
pub(super) const NGINX_MODULES: &str = "/usr/lib/nginx/modules";
pub(super) const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// A system that Tokaido is compared with.
#[derive(Debug)]
pub struct Peer {
    /// Its name, on the command line and in reports.
    pub name: &'static str,
    /// The Debian packages that contain it; empty if there are none.
    pub packages: &'static str,
    /// The peer whose Debian packages conflict with its own.
    pub apart_from: Option<&'static str>,
    kind: Kind,
}

/// What it is, and how to find it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Program {
        /// The names of the program.
        names: &'static [&'static str],
        /// The arguments that make it print its version.
        version: &'static [&'static str],
        /// A module that must be installed.
        module: Option<&'static str>,
    },
    Library(Finder),
    /// A C library that is a client of a server.
    Client(ClientFinder),
    /// A library of an interpreter.
    Module {
        /// The names of the interpreter.
        interpreters: &'static [&'static str],
        /// The arguments that make it load the library and print its version.
        version: &'static [&'static str],
    },
}

/// Where a peer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Its program, or the name of its library.
    pub path: PathBuf,
    /// The version that it reports.
    pub version: String,
}

const fn of_kind(name: &'static str, packages: &'static str, kind: Kind) -> Peer {
    Peer { name, packages, apart_from: None, kind }
}

const fn program(
    name: &'static str,
    packages: &'static str,
    names: &'static [&'static str],
    version: &'static [&'static str],
) -> Peer {
    of_kind(name, packages, Kind::Program { names, version, module: None })
}

/// A program that is useful only with a module.
const fn with_module(
    name: &'static str,
    packages: &'static str,
    names: &'static [&'static str],
    module: &'static str,
) -> Peer {
    of_kind(name, packages, Kind::Program { names, version: &["-v"], module: Some(module) })
}

const fn library(name: &'static str, packages: &'static str, finder: Finder) -> Peer {
    of_kind(name, packages, Kind::Library(finder))
}

const fn client(name: &'static str, packages: &'static str, finder: ClientFinder) -> Peer {
    of_kind(name, packages, Kind::Client(finder))
}

const fn of_python(
    name: &'static str,
    packages: &'static str,
    version: &'static [&'static str],
) -> Peer {
    of_kind(name, packages, Kind::Module { interpreters: &["python3"], version })
}

const fn of_ruby(
    name: &'static str,
    packages: &'static str,
    version: &'static [&'static str],
) -> Peer {
    of_kind(name, packages, Kind::Module { interpreters: &["ruby"], version })
}

/// All peers.
pub const PEERS: &[Peer] = &[
    program("redis", "redis-server", &["redis-server"], &["--version"]),
    program("valkey", "", &["valkey-server"], &["--version"]),
    program("keydb", "", &["keydb-server"], &["--version"]),
    program("dragonfly", "", &["dragonfly", "dragonfly-x86_64"], &["--version"]),
    program("memcached", "memcached", &["memcached"], &["--version"]),
    with_module(
        "nginx",
        "nginx libnginx-mod-http-lua lua-cjson",
        &["nginx"],
        "/usr/lib/nginx/modules/ngx_http_lua_module.so",
    ),
    with_module("apache", "apache2", &["apache2"], "/usr/lib/apache2/modules/mod_lua.so"),
    program("tarantool", "tarantool", &["tarantool"], &["--version"]),
    program("lua5.1", "lua5.1", &["lua5.1"], &["-v"]),
    // nginx's module has its LuaJIT from another package, and only one of the two can be installed.
    Peer { apart_from: Some("nginx"), ..program("luajit", "luajit", &["luajit"], &["-v"]) },
    program("python3", "python3", &["python3"], &["--version"]),
    program("ruby", "ruby", &["ruby"], &["--version"]),
    program("mruby", "mruby", &["mruby"], &["--version"]),
    library("tinycdb", "libcdb1", library::TINYCDB),
    library("qdbm", "libqdbm14", library::QDBM),
    library("tokyocabinet", "libtokyocabinet9", library::TOKYO_CABINET),
    library("kyotocabinet", "libkyotocabinet16v5", library::KYOTO_CABINET),
    library("lmdb", "liblmdb0", library::LMDB),
    library("rocksdb", "librocksdb7.8", library::ROCKSDB),
    library("sqlite", "libsqlite3-0", library::SQLITE),
    of_python("redis-py", "python3-redis", &["-c", "import redis; print(redis.__version__)"]),
    of_python(
        "pymemcache",
        "python3-pymemcache",
        &["-c", "import pymemcache; print(pymemcache.__version__)"],
    ),
    of_python("pylibmc", "python3-pylibmc", &["-c", "import pylibmc; print(pylibmc.__version__)"]),
    of_ruby("redis-rb", "ruby-redis", &["-rredis", "-e", "puts Redis::VERSION"]),
    of_ruby("dalli", "ruby-dalli", &["-rdalli", "-e", "puts Dalli::VERSION"]),
    client("hiredis", "libhiredis0.14", library::HIREDIS),
    client("libmemcached", "libmemcached11", library::LIBMEMCACHED),
];

impl Peer {
    /// The peer of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
    }

    /// Where it is, if it is installed.
    #[must_use]
    pub fn find(&self) -> Option<Presence> {
        match self.kind {
            Kind::Program { names, version, module } => {
                let path = program::find(names)?;
                if module.is_some_and(|module| !Path::new(module).exists()) {
                    return None;
                }
                let version = program::version(&path, version);
                Some(Presence { path, version: version.unwrap_or_else(|| "unknown".to_owned()) })
            }
            Kind::Library(find) => {
                let found = find()?;
                Some(Presence { path: found.name.into(), version: found.version })
            }
            Kind::Client(find) => {
                let found = find()?;
                Some(Presence { path: found.name.into(), version: found.version })
            }
            // The first interpreter may be one without Debian's libraries.
            Kind::Module { interpreters, version } => {
                program::find_all(interpreters).into_iter().find_map(|path| {
                    let version = program::printed_version(&path, version)?;
                    Some(Presence { path, version })
                })
            }
        }
    }

    /// The function that looks for it, if it is a library.
    pub(super) fn finder(&self) -> Option<Finder> {
        match self.kind {
            Kind::Library(find) => Some(find),
            _ => None,
        }
    }

    /// The function that looks for it, if it is a C client library.
    pub(super) fn client_finder(&self) -> Option<ClientFinder> {
        match self.kind {
            Kind::Client(find) => Some(find),
            _ => None,
        }
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
        assert_eq!(with_module("shell", "", &["sh"], "/no/such/module.so").find(), None);
    }

    #[test]
    fn a_library_is_there_if_an_interpreter_loads_it() {
        let module = |version: &'static [&'static str]| {
            let kind = Kind::Module { interpreters: &["sh"], version };
            of_kind("module", "", kind).find().map(|presence| presence.version)
        };
        assert_eq!(module(&["-c", "echo 1.2"]).as_deref(), Some("1.2"));
        assert_eq!(module(&["-c", "echo 1.2; exit 1"]), None);
    }
}
