//! A load generator: any number of connections to a server, in a closed loop or at a fixed rate.
//!
//! [`Load`] says what is sent, [`run`] sends it, and [`Outcome`] is the result: how long requests
//! took, where the time went ([`Usage`]), and whether server or generator was the limit
//! ([`Verdict`]). `protocol/` has the client sides of the protocols, none of which does any I/O.
//!
//! In a *closed* loop, a connection sends its next requests when the last ones are answered. A server that stalls then
//! receives no requests, so the stall shows in as many requests as there are connections, and in no percentile. At a
//! *rate*, requests are due at certain times, and all their waiting counts, wherever they wait.

mod ceiling;
mod command;
mod connection;
mod histogram;
mod idle;
mod keys;
mod lookaside;
mod operation;
mod process;
pub mod protocol;
mod report;
mod requests;
mod run;
mod socket;
mod timer;
mod values;
mod verdict;
mod worker;

pub use ceiling::{Ceiling, measure as measure_ceiling};
pub use command::{Command, CommandError};
pub use histogram::{Latency, Tally};
pub use idle::Idle;
pub(crate) use keys::generate as generate_key;
pub use keys::{KEYS_MAX, Keys, KeysError};
pub use lookaside::LookAside;
pub use operation::{Kind, Mix, MixError};
pub use process::{Usage, of_port, of_unix_socket};
pub use protocol::{Protocol, UnknownProtocol};
pub use report::{CSV_HEAD, Report, interval_csv, interval_json};
pub use run::{Interval, Load, LoadError, Outcome, Pace, run};
pub use socket::{Address, AddressError};
pub use values::{Values, ValuesError};
pub use verdict::Verdict;
