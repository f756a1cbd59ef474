//! Scenarios that compare Tokaido with the systems that people would otherwise use, in one run: `tokaido bench suite`.
//!
//! [`PEERS`] are those systems, [`Scenario`] says what is measured, and [`run`] finds the peers,
//! starts them, measures in turn, and returns a [`Run`], which can be stored, reported and compared
//! with another one. Tokaido is started like the peers: as a program, with its settings stated.

mod companies;
mod contest;
mod cores;
mod dictionary;
mod error;
mod library;
mod peer;
mod plan;
mod program;
mod request;
mod room;
mod run;
mod scenario;
mod scripts;
mod server;
mod servers;
mod worker;

pub use companies::{ListError, Rows};
pub use dictionary::{Dictionary, NOT_THERE, OpenDictionary};
pub use error::SuiteError;
pub use peer::{PEERS, Peer, Presence};
pub use plan::{Plan, Scale};
pub use run::{Axis, Curve, Item, Problem, RUN_FORMAT, Row, Run, RunError, Split, Unit};
pub use scenario::{SCENARIOS, Scenario, run};
pub use scripts::kyoto_tycoon_script;
