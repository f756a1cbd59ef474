//! Killed processes, power failures, full and broken disks: nothing that was acknowledged is
//! lost, and nothing half done remains.

mod clean;
mod disk;
mod fate;
mod faults;
mod journal;
mod ledger;
mod lives;
mod power_loss;
mod preload;
mod random;
mod store;
mod upkeep;
mod upkeep_faults;
mod whole_disk;
