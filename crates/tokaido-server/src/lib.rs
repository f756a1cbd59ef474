//! The server: workers that answer reads on snapshots, one writer that commits in groups, and the
//! protocols that clients speak to them.

mod config;

pub use config::{Config, ConfigError, Limits, PORT_DEFAULT, Password, WORKERS_MAX};
