//! HTTP/1.1: records and listings under `/v1/db`, procedures under `/v1/call`, the routes that
//! procedures declare, and what operators look at. `docs/http.md` is its manual.

mod auth;
mod base64;
mod body;
mod call;
mod connection;
mod dispatch;
mod error;
mod json;
mod listing;
mod percent;
mod query;
mod records;
mod route;
mod router;
mod socket;
mod status;

pub(crate) use connection::{raw_error, serve};
pub(crate) use router::Router;
