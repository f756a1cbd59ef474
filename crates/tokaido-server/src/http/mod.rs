//! HTTP/1.1: records and listings under `/v1/db`, procedures under `/v1/call`, the routes that
//! procedures declare, what operators look at, and the procedures and records of Kyoto Tycoon
//! and Tokyo Tyrant. The manual is `docs/http.md`.

mod auth;
mod body;
mod call;
mod connection;
mod dispatch;
mod error;
mod exchange;
mod kyoto;
mod listing;
mod preconditions;
mod query;
mod records;
mod route;
mod router;
mod site;
mod socket;
mod status;
mod streamed;
mod suspended;
mod tyrant;
mod wait;

pub(crate) use connection::{raw_error, serve};
pub(crate) use exchange::Paths;
pub(crate) use router::{RouteError, Router};
pub(crate) use site::Hosts;
