//! The server: workers that answer reads on snapshots, one writer that commits in groups, and the
//! protocols that clients speak to them.
//!
//! A request goes from a socket ([`Server`] owns the threads that hold them) through its
//! protocol's codec to a worker's snapshot or, if it writes, to the writer, and back.

mod acceptor;
mod access;
mod admission;
mod affinity;
mod backups;
mod buffers;
mod call_statistics;
mod config;
mod connection;
mod conversation;
mod detect;
mod faults;
mod file_replacement;
mod hooks;
mod http;
pub mod kyoto;
mod listeners;
mod loading;
mod log;
mod mailbox;
pub mod memcached;
mod metrics;
mod outbox;
mod pause;
mod permit;
mod placement;
mod pool;
mod procedure_watch;
mod procedures;
mod program;
mod protocol;
mod read_context;
pub mod redis;
mod reload;
mod search;
mod selected;
mod server;
mod service;
mod shared;
mod signals;
mod sockets;
mod stream;
mod system;
mod threads;
mod timers;
mod transport;
mod turn;
pub mod tyrant;
mod watch;
mod worker;
mod writer;

pub use access::{AclFileError, Users};
pub use config::{
    Address, AddressError, Bytes, Config, ConfigError, DatabaseConfig, Databases, DebugCommand,
    KyotoConfig, LIMITS, Limit, Limits, Listen, MemcachedConfig, Mode, PORT_DEFAULT, Password,
    RedisConfig, ScriptConfig, TyrantConfig, WORKERS_MAX,
};
pub use detect::ProtocolName;
pub use listeners::ListenError;
pub use log::{LogWriter, announce};
pub use mailbox::{Mailbox, PushError};
pub use procedures::Procedures;
pub use program::{Program, languages_beside_lua};
pub use protocol::{Context, Progress, Protocol, Target};
pub use reload::{ReloadError, SourcesError};
pub use server::{Server, StartError};
pub use shared::{Shared, SharedOptions};
pub use signals::Signals;
pub use sockets::{AllowedPeer, AllowedPeerError};
pub use transport::SocketAddress;
