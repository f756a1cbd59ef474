//! The server: workers that answer reads on snapshots, one writer that commits in groups, and the
//! protocols that clients speak to them.
//!
//! A request goes from a socket ([`Server`] owns the threads that hold them) through the codec of
//! its protocol to a worker's snapshot or, if it writes, to the writer, and back.

mod acceptor;
mod config;
mod connection;
mod conversation;
mod detect;
mod http;
mod link;
mod metrics;
mod pool;
mod procedures;
pub mod redis;
mod resp_connection;
mod server;
mod service;
mod shared;
mod threads;
mod worker;
mod writer;

pub use config::{
    Bytes, Config, ConfigError, DatabaseConfig, Databases, LIMITS, Limit, Limits, PORT_DEFAULT,
    Password, WORKERS_MAX,
};
pub use server::{Server, StartError};
pub use shared::{Counters, Shared, SharedOptions};
