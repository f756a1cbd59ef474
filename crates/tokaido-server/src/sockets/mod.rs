//! Connections that handlers make to other machines: which ones are allowed, those of one request,
//! and those that are kept for the next one.

mod allow;
mod datagrams;
mod input;
mod names;
mod pools;
mod request;
mod stream;
mod until;
mod worker;

pub use allow::{AllowedPeer, AllowedPeerError};
pub(crate) use request::RequestSockets;
pub(crate) use worker::WorkerSockets;
